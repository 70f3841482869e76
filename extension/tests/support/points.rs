//! What arrived, taken apart into points; checked as strictly as a receiver could.

use std::collections::{BTreeMap, HashSet};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, HistogramDataPoint, Metric, NumberDataPoint, metric::Data,
    number_data_point,
};
use prost::Message;
use warpgauge::metrics;
use warpgauge::otlp::chunks::{MAX_BYTES, MAX_POINTS};
use warpgauge::otlp::resource::ROLL_UP;

/// One data point with everything that says what it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) resource: BTreeMap<String, String>,
    pub(crate) metric: String,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Of a sum; `None` for gauges.
    pub(crate) temporality: Option<AggregationTemporality>,
    /// Of a histogram, how many values it holds.
    pub(crate) value: number_data_point::Value,
    /// The sum of a histogram's values.
    pub(crate) sum: Option<f64>,
}

impl Point {
    pub(crate) fn is_roll_up(&self) -> bool {
        self.resource.contains_key(ROLL_UP)
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.resource.get("process.pid").map(|pid| pid.parse().unwrap())
    }

    pub(crate) fn instance(&self) -> &str {
        &self.resource["service.instance.id"]
    }

    pub(crate) fn reason(&self) -> Option<&str> {
        self.attributes.get("reason").map(String::as_str)
    }

    /// The value of a metric that counts.
    pub(crate) fn count(&self) -> u64 {
        match self.value {
            number_data_point::Value::AsInt(value) => value.try_into().unwrap(),
            number_data_point::Value::AsDouble(_) => panic!("{self:?} is no count"),
        }
    }

    /// The value of a metric that measures.
    pub(crate) fn double(&self) -> f64 {
        match self.value {
            number_data_point::Value::AsDouble(value) => value,
            number_data_point::Value::AsInt(_) => panic!("{self:?} is no double"),
        }
    }

    /// What tells its series from every other.
    pub(crate) fn series(&self) -> (String, String, BTreeMap<String, String>) {
        (self.instance().to_owned(), self.metric.clone(), self.attributes.clone())
    }
}

/// The sum of a metric over processes, or of the extension's own; roll-ups are left out.
pub(crate) fn sum(points: &[Point], metric: &str) -> u64 {
    let of_metric = points.iter().filter(|point| point.metric == metric && !point.is_roll_up());
    of_metric.map(Point::count).sum()
}

/// The sum of a metric for one of its reasons.
pub(crate) fn sum_for(points: &[Point], metric: &str, reason: &str) -> u64 {
    let of_metric = points.iter().filter(|point| point.metric == metric);
    of_metric.filter(|point| point.reason() == Some(reason)).map(Point::count).sum()
}

/// The points of one process.
pub(crate) fn of_process(points: &[Point], pid: u32) -> Vec<Point> {
    points.iter().filter(|point| point.pid() == Some(pid)).cloned().collect()
}

/// The points of the groups' roll-ups.
pub(crate) fn of_roll_ups(points: &[Point]) -> Vec<Point> {
    points.iter().filter(|point| point.is_roll_up()).cloned().collect()
}

/// Delta windows of one series never overlap, and the extension's own follow each other without a
/// gap: each begins where the one before ended.
pub(crate) fn assert_windows_follow(points: &[Point]) {
    let mut by_series = BTreeMap::<_, Vec<_>>::new();
    for point in points {
        by_series.entry(point.series()).or_default().push((point.start_ns, point.end_ns));
    }
    for ((instance, metric, _), mut windows) in by_series {
        windows.sort_unstable();
        for pair in windows.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{instance} {metric}: {pair:?} overlap");
            if metric == metrics::MEASUREMENTS_READ.name {
                assert_eq!(pair[0].1, pair[1].0, "{metric}: a gap between two windows");
            }
        }
    }
}

/// Decodes a request as it travelled.
///
/// # Errors
/// The first thing about it that a strict receiver would not take.
pub(crate) fn from_protobuf(bytes: &[u8]) -> Result<Vec<Point>, String> {
    let request =
        ExportMetricsServiceRequest::decode(bytes).map_err(|fault| format!("no OTLP: {fault}"))?;
    if request.encode_to_vec() != bytes {
        return Err("the request holds more than OTLP knows".to_owned());
    }
    if bytes.len() > MAX_BYTES {
        return Err(format!("{} bytes", bytes.len()));
    }
    take_apart(&request)
}

/// Decodes a line of the exported file.
pub(crate) fn from_json(line: &str) -> Vec<Point> {
    take_apart(&serde_json::from_str(line).unwrap()).unwrap()
}

fn take_apart(request: &ExportMetricsServiceRequest) -> Result<Vec<Point>, String> {
    let mut points = Vec::new();
    let mut instances = HashSet::new();
    for resource_metrics in &request.resource_metrics {
        let resource = resource_metrics.resource.as_ref().ok_or("no resource")?;
        let attributes = attributes(&resource.attributes)?;
        for name in ["service.name", "service.instance.id", "host.name"] {
            if attributes.get(name).is_none_or(String::is_empty) {
                return Err(format!("a resource without {name}: {attributes:?}"));
            }
        }
        if !instances.insert(attributes["service.instance.id"].clone()) {
            return Err(format!("two resources of one instance: {attributes:?}"));
        }
        let mut series = HashSet::new();
        for scope in &resource_metrics.scope_metrics {
            if scope.scope.as_ref().is_none_or(|scope| scope.name != "warpgauge") {
                return Err("another scope".to_owned());
            }
            for metric in &scope.metrics {
                for point in points_of(metric, &attributes)? {
                    if !series.insert((point.metric.clone(), point.attributes.clone())) {
                        return Err(format!("two points of one series: {point:?}"));
                    }
                    points.push(point);
                }
            }
        }
    }
    match points.len() {
        0 => Err("a request without points".to_owned()),
        1..=MAX_POINTS => Ok(points),
        many => Err(format!("{many} points")),
    }
}

fn points_of(metric: &Metric, resource: &BTreeMap<String, String>) -> Result<Vec<Point>, String> {
    let known = metrics::CATALOGUE.iter().find(|known| known.name == metric.name);
    let known = known.ok_or_else(|| format!("{} is not in the catalogue", metric.name))?;
    if (metric.unit.as_str(), metric.description.as_str()) != (known.unit, known.description) {
        return Err(format!("{} is described in another way", metric.name));
    }
    if let Some(Data::Histogram(histogram)) = &metric.data
        && known.kind == metrics::Kind::Histogram
    {
        let temporality = Some(histogram.aggregation_temporality());
        let points = histogram.data_points.iter();
        return points.map(|point| distribution(metric, point, temporality, resource)).collect();
    }
    let (temporality, numbers) = match &metric.data {
        Some(Data::Sum(sum)) if sum.is_monotonic && known.kind == metrics::Kind::MonotonicSum => {
            (Some(sum.aggregation_temporality()), &sum.data_points)
        }
        Some(Data::Gauge(gauge)) if known.kind == metrics::Kind::Gauge => {
            (None, &gauge.data_points)
        }
        other => return Err(format!("{}: {other:?}", metric.name)),
    };
    if temporality == Some(AggregationTemporality::Unspecified) || numbers.is_empty() {
        return Err(format!("{}: {:?}", metric.name, metric.data));
    }
    numbers.iter().map(|number| point_of(metric, number, temporality, resource)).collect()
}

fn point_of(
    metric: &Metric,
    number: &NumberDataPoint,
    temporality: Option<AggregationTemporality>,
    resource: &BTreeMap<String, String>,
) -> Result<Point, String> {
    let value = number.value.ok_or_else(|| format!("{}: no value", metric.name))?;
    let possible = match value {
        number_data_point::Value::AsInt(value) => value >= 0,
        number_data_point::Value::AsDouble(value) if metric.unit == "1" => {
            (0.0..=1.0).contains(&value)
        }
        number_data_point::Value::AsDouble(value) => value.is_finite() && value >= 0.0,
    };
    if !possible || number.start_time_unix_nano >= number.time_unix_nano {
        return Err(format!("{}: {number:?}", metric.name));
    }
    Ok(Point {
        resource: resource.clone(),
        metric: metric.name.clone(),
        attributes: attributes(&number.attributes)?,
        start_ns: number.start_time_unix_nano,
        end_ns: number.time_unix_nano,
        temporality,
        value,
        sum: None,
    })
}

fn distribution(
    metric: &Metric,
    point: &HistogramDataPoint,
    temporality: Option<AggregationTemporality>,
    resource: &BTreeMap<String, String>,
) -> Result<Point, String> {
    let is_sound = point.bucket_counts.iter().sum::<u64>() == point.count
        && point.bucket_counts.len() == point.explicit_bounds.len() + 1
        && point.explicit_bounds.is_sorted_by(|a, b| a < b)
        && point.start_time_unix_nano < point.time_unix_nano;
    if !is_sound {
        return Err(format!("{}: {point:?}", metric.name));
    }
    Ok(Point {
        resource: resource.clone(),
        metric: metric.name.clone(),
        attributes: attributes(&point.attributes)?,
        start_ns: point.start_time_unix_nano,
        end_ns: point.time_unix_nano,
        temporality,
        value: number_data_point::Value::AsInt(point.count.try_into().unwrap()),
        sum: point.sum,
    })
}

fn attributes(pairs: &[KeyValue]) -> Result<BTreeMap<String, String>, String> {
    let mut attributes = BTreeMap::new();
    for pair in pairs {
        let text = match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
            Some(any_value::Value::StringValue(text)) => text.clone(),
            Some(any_value::Value::IntValue(number)) => number.to_string(),
            other => return Err(format!("attribute {}: {other:?}", pair.key)),
        };
        if attributes.insert(pair.key.clone(), text).is_some() {
            return Err(format!("attribute {} came twice", pair.key));
        }
    }
    Ok(attributes)
}
