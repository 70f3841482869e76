//! How OTLP JSON is spelled.

use opentelemetry_proto::tonic::common::v1::{ArrayValue, KeyValueList};
use opentelemetry_proto::tonic::metrics::v1::summary_data_point::ValueAtQuantile;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, Gauge, Histogram, Sum, Summary,
};
use proptest::prelude::*;

use super::*;

fn any(value: Any) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn attributes() -> Vec<KeyValue> {
    let list =
        KeyValueList { values: vec![KeyValue { key: "inner".into(), ..KeyValue::default() }] };
    [
        ("text", Any::StringValue(String::new())),
        ("truth", Any::BoolValue(false)),
        ("int", Any::IntValue(i64::MIN)),
        ("double", Any::DoubleValue(f64::NAN)),
        ("bytes", Any::BytesValue(vec![0, 255])),
        ("array", Any::ArrayValue(ArrayValue { values: vec![AnyValue { value: None }] })),
        ("list", Any::KvlistValue(list)),
    ]
    .map(|(key, value)| KeyValue {
        key: key.into(),
        value: Some(any(value)),
        ..KeyValue::default()
    })
    .into()
}

fn written(data: Data) -> Value {
    let metric = Metric { name: "m".into(), data: Some(data), ..Metric::default() };
    super::metric(&metric)
}

#[test]
fn attributes_of_every_type_are_spelled_by_their_type() {
    let resource = Resource { attributes: attributes(), ..Resource::default() };
    assert_eq!(
        super::resource(&resource),
        json!({ "attributes": [
            { "key": "text", "value": { "stringValue": "" } },
            { "key": "truth", "value": { "boolValue": false } },
            { "key": "int", "value": { "intValue": "-9223372036854775808" } },
            { "key": "double", "value": { "doubleValue": "NaN" } },
            { "key": "bytes", "value": { "bytesValue": "AP8=" } },
            { "key": "array", "value": { "arrayValue": { "values": [{}] } } },
            { "key": "list", "value": { "kvlistValue": { "values": [{ "key": "inner" }] } } },
        ] })
    );
}

#[test]
fn a_zero_that_was_measured_is_written_and_an_absent_one_is_not() {
    let point = |value| NumberDataPoint { value, ..NumberDataPoint::default() };
    let gauge = Gauge {
        data_points: vec![
            point(Some(number_data_point::Value::AsDouble(0.0))),
            point(Some(number_data_point::Value::AsInt(0))),
            point(None),
        ],
    };
    let points = json!([{ "asDouble": 0.0 }, { "asInt": "0" }, {}]);
    assert_eq!(
        written(Data::Gauge(gauge)),
        json!({ "name": "m", "gauge": { "dataPoints": points } })
    );
    let sum = Sum { aggregation_temporality: 2, ..Sum::default() };
    assert_eq!(
        written(Data::Sum(sum)),
        json!({ "name": "m", "sum": { "aggregationTemporality": 2 } })
    );
}

#[test]
fn histograms_and_summaries_keep_every_field() {
    let exemplar = Exemplar {
        time_unix_nano: 5,
        trace_id: vec![0xab; 16],
        span_id: vec![1; 8],
        value: Some(exemplar::Value::AsDouble(f64::INFINITY)),
        ..Exemplar::default()
    };
    let point = HistogramDataPoint {
        start_time_unix_nano: 1,
        time_unix_nano: u64::MAX,
        count: 3,
        sum: Some(f64::NEG_INFINITY),
        bucket_counts: vec![1, 2],
        explicit_bounds: vec![0.5],
        exemplars: vec![exemplar],
        flags: 1,
        max: Some(0.0),
        ..HistogramDataPoint::default()
    };
    let histogram = Histogram { data_points: vec![point], aggregation_temporality: 1 };
    assert_eq!(
        written(Data::Histogram(histogram)),
        json!({ "name": "m", "histogram": { "aggregationTemporality": 1, "dataPoints": [{
            "startTimeUnixNano": "1",
            "timeUnixNano": "18446744073709551615",
            "count": "3",
            "sum": "-Infinity",
            "bucketCounts": ["1", "2"],
            "explicitBounds": [0.5],
            "exemplars": [{
                "timeUnixNano": "5",
                "traceId": "abababababababababababababababab",
                "spanId": "0101010101010101",
                "asDouble": "Infinity",
            }],
            "flags": 1,
            "max": 0.0,
        }] } })
    );

    let point = ExponentialHistogramDataPoint {
        count: 2,
        scale: -1,
        zero_count: 1,
        positive: Some(Buckets { offset: -3, bucket_counts: vec![1] }),
        zero_threshold: 0.25,
        ..ExponentialHistogramDataPoint::default()
    };
    let histogram = ExponentialHistogram { data_points: vec![point], aggregation_temporality: 1 };
    assert_eq!(
        written(Data::ExponentialHistogram(histogram)),
        json!({ "name": "m", "exponentialHistogram": {
            "aggregationTemporality": 1,
            "dataPoints": [{
                "count": "2",
                "scale": -1,
                "zeroCount": "1",
                "positive": { "offset": -3, "bucketCounts": ["1"] },
                "zeroThreshold": 0.25,
            }],
        } })
    );

    let quantile = ValueAtQuantile { quantile: 0.5, value: f64::NAN };
    let point = SummaryDataPoint {
        count: 1,
        sum: 4.0,
        quantile_values: vec![quantile],
        ..SummaryDataPoint::default()
    };
    assert_eq!(
        written(Data::Summary(Summary { data_points: vec![point] })),
        json!({ "name": "m", "summary": { "dataPoints": [{
            "count": "1",
            "sum": 4.0,
            "quantileValues": [{ "quantile": 0.5, "value": "NaN" }],
        }] } })
    );
}

proptest! {
    #[test]
    fn a_double_is_written_to_its_last_bit(number: f64) {
        // Read by the standard library, which is exact.
        let text = double(number).to_string();
        prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), number.to_bits());
    }

    #[test]
    fn what_is_written_is_read_back(
        integer: i64,
        start: u64,
        time: u64,
        text: String,
        bytes: Vec<u8>,
    ) {
        let attributes = [Any::StringValue(text), Any::BytesValue(bytes)];
        let attributes: Vec<_> = attributes
            .map(|value| KeyValue { key: "k".into(), value: Some(any(value)), ..KeyValue::default() })
            .into();
        let values = [
            number_data_point::Value::AsInt(integer),
            number_data_point::Value::AsDouble(0.5),
        ];
        let data_points = values.map(|value| NumberDataPoint {
            attributes: attributes.clone(),
            start_time_unix_nano: start,
            time_unix_nano: time,
            value: Some(value),
            ..NumberDataPoint::default()
        });
        let gauge = Gauge { data_points: data_points.into() };
        let metric = Metric {
            name: "m".into(),
            data: Some(Data::Gauge(gauge)),
            ..Metric::default()
        };
        let scope = ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() };
        let resource = ResourceMetrics { scope_metrics: vec![scope], ..ResourceMetrics::default() };
        let request = ExportMetricsServiceRequest { resource_metrics: vec![resource] };
        let line = line(&request);
        prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let read: ExportMetricsServiceRequest = serde_json::from_slice(&line).unwrap();
        prop_assert_eq!(read, request);
    }
}
