//! Delta to cumulative: a total for each series with a fixed start, kept in the state folder.
//!
//! Works on the finished OTLP points, so that every metric, the extension's own included, goes
//! through one piece of code.

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, ExponentialHistogramDataPoint, HistogramDataPoint, NumberDataPoint,
    ResourceMetrics, exponential_histogram_data_point::Buckets, metric::Data,
    number_data_point::Value,
};
use serde::{Deserialize, Serialize};

use super::resource::instance_of;

/// Totals by resource, then by metric and attributes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    by_instance: BTreeMap<String, BTreeMap<String, Total>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Total {
    start_ns: u64,
    sum: Accumulated,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Accumulated {
    Int(i64),
    Double(f64),
    Histogram(AccumulatedHistogram),
}

/// Counts by bucket index; explicit buckets from 0, exponential ones by their own index.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct AccumulatedHistogram {
    count: u64,
    sum: f64,
    min: Option<f64>,
    max: Option<f64>,
    zero: u64,
    counts: BTreeMap<i32, u64>,
}

impl Totals {
    /// Adds the window to the totals and puts the totals in its place.
    pub fn apply(&mut self, resources: &mut [ResourceMetrics]) {
        for resource in resources {
            let instance = resource.resource.as_ref().map(instance_of).unwrap_or_default();
            let totals = self.by_instance.entry(instance.to_owned()).or_default();
            let metrics = resource.scope_metrics.iter_mut().flat_map(|scope| &mut scope.metrics);
            for metric in metrics {
                let cumulative = AggregationTemporality::Cumulative.into();
                match &mut metric.data {
                    Some(Data::Sum(sum)) => {
                        sum.aggregation_temporality = cumulative;
                        for point in &mut sum.data_points {
                            add_number(totals, series(&metric.name, &point.attributes), point);
                        }
                    }
                    Some(Data::Histogram(histogram)) => {
                        histogram.aggregation_temporality = cumulative;
                        for point in &mut histogram.data_points {
                            add_histogram(totals, series(&metric.name, &point.attributes), point);
                        }
                    }
                    Some(Data::ExponentialHistogram(histogram)) => {
                        histogram.aggregation_temporality = cumulative;
                        for point in &mut histogram.data_points {
                            add_exponential(totals, series(&metric.name, &point.attributes), point);
                        }
                    }
                    Some(Data::Gauge(_) | Data::Summary(_)) | None => {}
                }
            }
        }
    }

    /// Forgets every resource but these: an ended process's series has ended.
    pub fn retain(&mut self, instances: &BTreeSet<String>) {
        self.by_instance.retain(|instance, _| instances.contains(instance));
    }
}

fn series(metric: &str, attributes: &[KeyValue]) -> String {
    let mut attributes: Vec<_> =
        attributes.iter().map(|pair| format!("{}={:?}", pair.key, pair.value)).collect();
    attributes.sort_unstable();
    format!("{metric}{{{}}}", attributes.join(","))
}

/// The new total. When the old one is of another kind, or the sum does not fit any more, the series
/// starts again with this window, which OTLP calls a reset.
fn add_number(totals: &mut BTreeMap<String, Total>, series: String, point: &mut NumberDataPoint) {
    let known = totals.get(&series);
    let added = known.and_then(|total| match (&total.sum, point.value) {
        (Accumulated::Int(sum), Some(Value::AsInt(more))) => {
            sum.checked_add(more).map(Accumulated::Int)
        }
        (Accumulated::Double(sum), Some(Value::AsDouble(more))) => {
            Some(Accumulated::Double(sum + more))
        }
        _ => None,
    });
    let start_ns = match (known, &added) {
        (Some(total), Some(_)) => total.start_ns,
        _ => point.start_time_unix_nano,
    };
    let sum = match (added, point.value) {
        (Some(sum), _) => sum,
        (None, Some(Value::AsInt(value))) => Accumulated::Int(value),
        (None, Some(Value::AsDouble(value))) => Accumulated::Double(value),
        (None, None) => return,
    };
    point.start_time_unix_nano = start_ns;
    point.value = match sum {
        Accumulated::Int(sum) => Some(Value::AsInt(sum)),
        Accumulated::Double(sum) => Some(Value::AsDouble(sum)),
        Accumulated::Histogram(_) => point.value,
    };
    totals.insert(series, Total { start_ns, sum });
}

fn add_histogram(
    totals: &mut BTreeMap<String, Total>,
    series: String,
    point: &mut HistogramDataPoint,
) {
    let window = AccumulatedHistogram {
        count: point.count,
        sum: point.sum.unwrap_or(0.0),
        min: point.min,
        max: point.max,
        zero: 0,
        counts: (0..).zip(point.bucket_counts.iter().copied()).collect(),
    };
    let (start_ns, sum) = accumulate(totals, series, point.start_time_unix_nano, &window);
    point.start_time_unix_nano = start_ns;
    (point.count, point.sum, point.min, point.max) = (sum.count, Some(sum.sum), sum.min, sum.max);
    for (index, count) in (0..).zip(&mut point.bucket_counts) {
        *count = sum.counts.get(&index).copied().unwrap_or(0);
    }
}

fn add_exponential(
    totals: &mut BTreeMap<String, Total>,
    series: String,
    point: &mut ExponentialHistogramDataPoint,
) {
    let positive = point.positive.take().unwrap_or_default();
    let window = AccumulatedHistogram {
        count: point.count,
        sum: point.sum.unwrap_or(0.0),
        min: point.min,
        max: point.max,
        zero: point.zero_count,
        counts: (positive.offset..).zip(positive.bucket_counts).collect(),
    };
    let (start_ns, sum) = accumulate(totals, series, point.start_time_unix_nano, &window);
    point.start_time_unix_nano = start_ns;
    (point.count, point.sum, point.min, point.max) = (sum.count, Some(sum.sum), sum.min, sum.max);
    point.zero_count = sum.zero;
    let offset = sum.counts.keys().next().copied().unwrap_or(0);
    let end = sum.counts.keys().next_back().map_or(offset, |last| last + 1);
    let bucket_counts =
        (offset..end).map(|index| sum.counts.get(&index).copied().unwrap_or(0)).collect();
    point.positive = Some(Buckets { offset, bucket_counts });
}

fn accumulate(
    totals: &mut BTreeMap<String, Total>,
    series: String,
    window_start_ns: u64,
    window: &AccumulatedHistogram,
) -> (u64, AccumulatedHistogram) {
    let (start_ns, mut sum) = match totals.remove(&series) {
        Some(Total { start_ns, sum: Accumulated::Histogram(sum) }) => (start_ns, sum),
        _ => (window_start_ns, AccumulatedHistogram::default()),
    };
    sum.count = sum.count.saturating_add(window.count);
    sum.sum += window.sum;
    sum.min = sum.min.into_iter().chain(window.min).reduce(f64::min);
    sum.max = sum.max.into_iter().chain(window.max).reduce(f64::max);
    sum.zero = sum.zero.saturating_add(window.zero);
    for (index, count) in &window.counts {
        let total = sum.counts.entry(*index).or_insert(0);
        *total = total.saturating_add(*count);
    }
    totals.insert(series, Total { start_ns, sum: Accumulated::Histogram(sum.clone()) });
    (start_ns, sum)
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::resource::v1::Resource;

    use super::super::mapping::{Number, Window, number, resource_metrics};
    use super::super::resource::text;
    use super::*;
    use crate::metrics::{LAUNCHES, MEASUREMENTS_REFUSED, OCCUPANCY};

    fn window(minute: u64) -> Window {
        Window { start_ns: minute * 60, end_ns: minute * 60 + 60 }
    }

    fn launches(instance: &str, value: i64, minute: u64) -> ResourceMetrics {
        let resource = Resource {
            attributes: vec![text("service.instance.id", instance.to_owned())],
            ..Resource::default()
        };
        let metrics = vec![
            number(LAUNCHES, Number::Int(value), Vec::new(), window(minute)),
            number(OCCUPANCY, Number::Double(0.5), Vec::new(), window(minute)),
        ];
        resource_metrics(resource, metrics)
    }

    fn first_sum(resource: &ResourceMetrics) -> (u64, u64, Option<Value>) {
        match &resource.scope_metrics[0].metrics[0].data {
            Some(Data::Sum(sum)) => {
                assert_eq!(sum.aggregation_temporality, AggregationTemporality::Cumulative as i32);
                let point = &sum.data_points[0];
                (point.start_time_unix_nano, point.time_unix_nano, point.value)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn totals_grow_from_a_fixed_start_and_gauges_stay_as_they_are() {
        let mut totals = Totals::default();
        for (minute, expected) in [(1, 5), (2, 10), (3, 15)] {
            let mut resources = [launches("a", 5, minute)];
            totals.apply(&mut resources);
            let end = minute * 60 + 60;
            assert_eq!(first_sum(&resources[0]), (60, end, Some(Value::AsInt(expected))));
            let gauge = &resources[0].scope_metrics[0].metrics[1].data;
            assert!(
                matches!(gauge, Some(Data::Gauge(gauge)) if gauge.data_points[0].start_time_unix_nano == minute * 60)
            );
        }
    }

    #[test]
    fn a_total_that_would_overflow_starts_again() {
        let mut totals = Totals::default();
        totals.apply(&mut [launches("a", i64::MAX, 1)]);
        let mut resources = [launches("a", 7, 2)];
        totals.apply(&mut resources);
        assert_eq!(first_sum(&resources[0]), (120, 180, Some(Value::AsInt(7))));
    }

    #[test]
    fn an_ended_process_is_forgotten_and_the_totals_survive_the_disk() {
        let mut totals = Totals::default();
        totals.apply(&mut [launches("a", 5, 1), launches("b", 6, 1)]);
        totals.retain(&BTreeSet::from(["b".to_owned()]));
        let text = serde_json::to_string(&totals).unwrap();
        let mut totals: Totals = serde_json::from_str(&text).unwrap();
        let mut resources = [launches("a", 1, 2), launches("b", 1, 2)];
        totals.apply(&mut resources);
        assert_eq!(first_sum(&resources[0]), (120, 180, Some(Value::AsInt(1))));
        assert_eq!(first_sum(&resources[1]), (60, 180, Some(Value::AsInt(7))));
    }

    #[test]
    fn series_are_told_apart_by_their_attributes() {
        let refused = |reason: &str| {
            let attributes = vec![text("reason", reason.to_owned())];
            number(MEASUREMENTS_REFUSED, Number::Int(1), attributes, window(1))
        };
        let mut totals = Totals::default();
        let mut resources =
            [resource_metrics(Resource::default(), vec![refused("x"), refused("y"), refused("x")])];
        totals.apply(&mut resources);
        let values: Vec<_> = resources[0].scope_metrics[0]
            .metrics
            .iter()
            .map(|metric| match &metric.data {
                Some(Data::Sum(sum)) => sum.data_points[0].value,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(values, [1, 1, 2].map(|value| Some(Value::AsInt(value))));
    }
}
