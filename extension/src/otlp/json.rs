//! OTLP JSON: a request as one line (OTLP specification, "JSON Protobuf Encoding").
//!
//! The serde form of `opentelemetry-proto` (0.33.1) writes `null` for NaN and the infinities in
//! points, sums and exemplars, and so loses them; the mapping below keeps them. Its rules:
//!
//! - names in lowerCamelCase; what has its default value is left out;
//! - 64-bit integers are strings, enumerations are numbers;
//! - trace and span ids are hexadecimal, other bytes are base64;
//! - doubles that are not finite are `"NaN"`, `"Infinity"` and `"-Infinity"`.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, EntityRef, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogramDataPoint, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, SummaryDataPoint, exemplar, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use serde_json::{Map, Value, json};

/// The request as one line of JSON, with its newline.
pub(super) fn line(request: &ExportMetricsServiceRequest) -> Vec<u8> {
    let mut resources = Object::default();
    resources.list("resourceMetrics", &request.resource_metrics, resource_metrics);
    let mut line = resources.value().to_string().into_bytes();
    line.push(b'\n');
    line
}

/// A JSON object under construction, without what has its default value.
#[derive(Default)]
struct Object(Map<String, Value>);

impl Object {
    fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.set(name, json!(text));
        }
    }

    fn u64(&mut self, name: &str, number: u64) {
        if number != 0 {
            self.set(name, json!(number.to_string()));
        }
    }

    fn i32(&mut self, name: &str, number: i32) {
        if number != 0 {
            self.set(name, json!(number));
        }
    }

    fn u32(&mut self, name: &str, number: u32) {
        if number != 0 {
            self.set(name, json!(number));
        }
    }

    fn double(&mut self, name: &str, number: f64) {
        self.set(name, double(number));
    }

    fn some_double(&mut self, name: &str, number: Option<f64>) {
        if let Some(number) = number {
            self.double(name, number);
        }
    }

    fn hex(&mut self, name: &str, bytes: &[u8]) {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.text(name, &digits);
    }

    fn list<T>(&mut self, name: &str, items: &[T], map: impl Fn(&T) -> Value) {
        if !items.is_empty() {
            self.set(name, items.iter().map(map).collect());
        }
    }

    fn value(self) -> Value {
        Value::Object(self.0)
    }
}

fn double(number: f64) -> Value {
    if number.is_finite() {
        json!(number)
    } else if number.is_nan() {
        json!("NaN")
    } else if number > 0.0 {
        json!("Infinity")
    } else {
        json!("-Infinity")
    }
}

fn resource_metrics(metrics: &ResourceMetrics) -> Value {
    let mut object = Object::default();
    if let Some(resource) = &metrics.resource {
        object.set("resource", self::resource(resource));
    }
    object.list("scopeMetrics", &metrics.scope_metrics, scope_metrics);
    object.text("schemaUrl", &metrics.schema_url);
    object.value()
}

fn resource(resource: &Resource) -> Value {
    let mut object = Object::default();
    object.list("attributes", &resource.attributes, attribute);
    object.u32("droppedAttributesCount", resource.dropped_attributes_count);
    object.list("entityRefs", &resource.entity_refs, entity_ref);
    object.value()
}

fn entity_ref(entity: &EntityRef) -> Value {
    let mut object = Object::default();
    object.text("schemaUrl", &entity.schema_url);
    object.text("type", &entity.r#type);
    object.list("idKeys", &entity.id_keys, |key| json!(key));
    object.list("descriptionKeys", &entity.description_keys, |key| json!(key));
    object.value()
}

fn scope_metrics(metrics: &ScopeMetrics) -> Value {
    let mut object = Object::default();
    if let Some(scope) = &metrics.scope {
        object.set("scope", self::scope(scope));
    }
    object.list("metrics", &metrics.metrics, metric);
    object.text("schemaUrl", &metrics.schema_url);
    object.value()
}

fn scope(scope: &InstrumentationScope) -> Value {
    let mut object = Object::default();
    object.text("name", &scope.name);
    object.text("version", &scope.version);
    object.list("attributes", &scope.attributes, attribute);
    object.u32("droppedAttributesCount", scope.dropped_attributes_count);
    object.value()
}

fn metric(metric: &Metric) -> Value {
    let mut object = Object::default();
    object.text("name", &metric.name);
    object.text("description", &metric.description);
    object.text("unit", &metric.unit);
    object.list("metadata", &metric.metadata, attribute);
    let mut data = Object::default();
    let kind = match &metric.data {
        None => return object.value(),
        Some(Data::Gauge(gauge)) => {
            data.list("dataPoints", &gauge.data_points, number_point);
            "gauge"
        }
        Some(Data::Sum(sum)) => {
            data.list("dataPoints", &sum.data_points, number_point);
            data.i32("aggregationTemporality", sum.aggregation_temporality);
            if sum.is_monotonic {
                data.set("isMonotonic", json!(true));
            }
            "sum"
        }
        Some(Data::Histogram(histogram)) => {
            data.list("dataPoints", &histogram.data_points, histogram_point);
            data.i32("aggregationTemporality", histogram.aggregation_temporality);
            "histogram"
        }
        Some(Data::ExponentialHistogram(histogram)) => {
            data.list("dataPoints", &histogram.data_points, exponential_point);
            data.i32("aggregationTemporality", histogram.aggregation_temporality);
            "exponentialHistogram"
        }
        Some(Data::Summary(summary)) => {
            data.list("dataPoints", &summary.data_points, summary_point);
            "summary"
        }
    };
    object.set(kind, data.value());
    object.value()
}

/// What every point has.
fn point(attributes: &[KeyValue], start: u64, time: u64, flags: u32) -> Object {
    let mut object = Object::default();
    object.list("attributes", attributes, attribute);
    object.u64("startTimeUnixNano", start);
    object.u64("timeUnixNano", time);
    object.u32("flags", flags);
    object
}

fn number_point(p: &NumberDataPoint) -> Value {
    let mut object = point(&p.attributes, p.start_time_unix_nano, p.time_unix_nano, p.flags);
    match p.value {
        Some(number_data_point::Value::AsDouble(number)) => object.double("asDouble", number),
        Some(number_data_point::Value::AsInt(number)) => {
            object.set("asInt", json!(number.to_string()));
        }
        None => {}
    }
    object.list("exemplars", &p.exemplars, exemplar);
    object.value()
}

fn histogram_point(p: &HistogramDataPoint) -> Value {
    let mut object = point(&p.attributes, p.start_time_unix_nano, p.time_unix_nano, p.flags);
    object.u64("count", p.count);
    object.some_double("sum", p.sum);
    object.list("bucketCounts", &p.bucket_counts, |count| json!(count.to_string()));
    object.list("explicitBounds", &p.explicit_bounds, |bound| double(*bound));
    object.some_double("min", p.min);
    object.some_double("max", p.max);
    object.list("exemplars", &p.exemplars, exemplar);
    object.value()
}

fn exponential_point(p: &ExponentialHistogramDataPoint) -> Value {
    let mut object = point(&p.attributes, p.start_time_unix_nano, p.time_unix_nano, p.flags);
    object.u64("count", p.count);
    object.some_double("sum", p.sum);
    object.i32("scale", p.scale);
    object.u64("zeroCount", p.zero_count);
    if p.zero_threshold != 0.0 {
        object.double("zeroThreshold", p.zero_threshold);
    }
    for (name, range) in [("positive", &p.positive), ("negative", &p.negative)] {
        if let Some(range) = range {
            object.set(name, buckets(range));
        }
    }
    object.some_double("min", p.min);
    object.some_double("max", p.max);
    object.list("exemplars", &p.exemplars, exemplar);
    object.value()
}

fn buckets(buckets: &Buckets) -> Value {
    let mut object = Object::default();
    object.i32("offset", buckets.offset);
    object.list("bucketCounts", &buckets.bucket_counts, |count| json!(count.to_string()));
    object.value()
}

fn summary_point(p: &SummaryDataPoint) -> Value {
    let mut object = point(&p.attributes, p.start_time_unix_nano, p.time_unix_nano, p.flags);
    object.u64("count", p.count);
    object.double("sum", p.sum);
    object.list(
        "quantileValues",
        &p.quantile_values,
        |value| json!({ "quantile": double(value.quantile), "value": double(value.value) }),
    );
    object.value()
}

fn exemplar(exemplar: &Exemplar) -> Value {
    let mut object = Object::default();
    object.list("filteredAttributes", &exemplar.filtered_attributes, attribute);
    object.u64("timeUnixNano", exemplar.time_unix_nano);
    object.hex("traceId", &exemplar.trace_id);
    object.hex("spanId", &exemplar.span_id);
    match exemplar.value {
        Some(exemplar::Value::AsDouble(number)) => object.double("asDouble", number),
        Some(exemplar::Value::AsInt(number)) => object.set("asInt", json!(number.to_string())),
        None => {}
    }
    object.value()
}

fn attribute(attribute: &KeyValue) -> Value {
    let mut object = Object::default();
    object.text("key", &attribute.key);
    if let Some(value) = &attribute.value {
        object.set("value", any(value));
    }
    object.value()
}

fn any(value: &AnyValue) -> Value {
    let Some(content) = &value.value else {
        return json!({});
    };
    match content {
        Any::StringValue(text) => json!({ "stringValue": text }),
        Any::BoolValue(truth) => json!({ "boolValue": truth }),
        Any::IntValue(number) => json!({ "intValue": number.to_string() }),
        Any::DoubleValue(number) => json!({ "doubleValue": double(*number) }),
        Any::ArrayValue(array) => {
            let mut object = Object::default();
            object.list("values", &array.values, any);
            json!({ "arrayValue": object.value() })
        }
        Any::KvlistValue(list) => {
            let mut object = Object::default();
            object.list("values", &list.values, attribute);
            json!({ "kvlistValue": object.value() })
        }
        // The serde form gets this one right, and so has the base64.
        Any::BytesValue(_) => serde_json::to_value(value).unwrap_or_default(),
        // Of profiles only; elsewhere it counts as empty (opentelemetry-proto, `common.proto`).
        Any::StringValueStrindex(_) => json!({}),
    }
}

#[cfg(test)]
mod tests;
