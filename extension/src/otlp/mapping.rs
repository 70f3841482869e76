//! Tallies to OTLP points. Pure; every sum is a delta here, `cumulative` turns it where that is
//! wanted.

use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram,
    HistogramDataPoint, Metric as OtlpMetric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
    exponential_histogram_data_point, metric::Data, number_data_point::Value,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::aggregate::distribution::{Buckets, EXPLICIT_BOUNDS, EXPONENTIAL_SCALE, ZERO_THRESHOLD};
use crate::aggregate::{Distribution, PERCENTAGES, Tally};
use crate::metrics::{self, Metric};

/// Between which times the numbers were measured, nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Window {
    /// The end of the window before.
    pub start_ns: u64,
    /// The claim.
    pub end_ns: u64,
}

/// A metric's number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Whole.
    Int(i64),
    /// With a fraction.
    Double(f64),
}

impl From<u128> for Number {
    /// Beyond 63 bits the number is rounded to a double rather than cut.
    fn from(value: u128) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "rounded on purpose, see above")]
        i64::try_from(value).map_or(Self::Double(value as f64), Self::Int)
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        u128::from(value).into()
    }
}

/// All that is known of one entity, as metrics. Nothing is made for what was not reported.
#[must_use]
pub fn tally(resource: Resource, tally: &Tally, window: Window) -> ResourceMetrics {
    let mut metrics = Vec::new();
    if let Some(instructions) = tally.instructions {
        metrics.push(number(metrics::INSTRUCTIONS, instructions.into(), Vec::new(), window));
    }
    if let Some(launches) = tally.launches {
        metrics.push(number(metrics::LAUNCHES, launches.into(), Vec::new(), window));
    }
    for function in PERCENTAGES {
        let (Some(distribution), Some((gauge, histogram))) =
            (tally.percentage(function), metrics::of_percentage(function))
        else {
            continue;
        };
        let Some(mean) = distribution.mean() else { continue };
        metrics.push(number(gauge, Number::Double(mean), Vec::new(), window));
        metrics.extend(distribution_of(histogram, distribution, window));
    }
    resource_metrics(resource, metrics)
}

/// One resource with its metrics, under the extension's own instrumentation scope.
#[must_use]
pub fn resource_metrics(resource: Resource, metrics: Vec<OtlpMetric>) -> ResourceMetrics {
    let scope = InstrumentationScope {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let scope_metrics =
        vec![ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() }];
    ResourceMetrics { resource: Some(resource), scope_metrics, ..ResourceMetrics::default() }
}

/// One point of a gauge or a sum.
#[must_use]
pub fn number(
    metric: Metric,
    value: Number,
    attributes: Vec<KeyValue>,
    window: Window,
) -> OtlpMetric {
    let value = Some(match value {
        Number::Int(value) => Value::AsInt(value),
        Number::Double(value) => Value::AsDouble(value),
    });
    let point = NumberDataPoint {
        attributes,
        start_time_unix_nano: window.start_ns,
        time_unix_nano: window.end_ns,
        value,
        ..NumberDataPoint::default()
    };
    let data = match metric.kind {
        metrics::Kind::Gauge => Data::Gauge(Gauge { data_points: vec![point] }),
        metrics::Kind::MonotonicSum | metrics::Kind::Histogram => Data::Sum(Sum {
            data_points: vec![point],
            aggregation_temporality: AggregationTemporality::Delta.into(),
            is_monotonic: true,
        }),
    };
    described(metric, data)
}

fn distribution_of(
    metric: Metric,
    distribution: &Distribution,
    window: Window,
) -> Option<OtlpMetric> {
    let aggregation_temporality = AggregationTemporality::Delta.into();
    let data = match distribution.buckets() {
        Buckets::None => return None,
        Buckets::Explicit(counts) => Data::Histogram(Histogram {
            data_points: vec![HistogramDataPoint {
                start_time_unix_nano: window.start_ns,
                time_unix_nano: window.end_ns,
                count: distribution.count(),
                sum: Some(distribution.sum()),
                min: distribution.min(),
                max: distribution.max(),
                bucket_counts: counts.to_vec(),
                explicit_bounds: EXPLICIT_BOUNDS.to_vec(),
                ..HistogramDataPoint::default()
            }],
            aggregation_temporality,
        }),
        Buckets::Exponential { zero, counts } => {
            let offset = counts.keys().next().copied().unwrap_or(0);
            let end = counts.keys().next_back().map_or(offset, |last| last + 1);
            let bucket_counts =
                (offset..end).map(|index| counts.get(&index).copied().unwrap_or(0)).collect();
            let positive = exponential_histogram_data_point::Buckets { offset, bucket_counts };
            Data::ExponentialHistogram(ExponentialHistogram {
                data_points: vec![ExponentialHistogramDataPoint {
                    start_time_unix_nano: window.start_ns,
                    time_unix_nano: window.end_ns,
                    count: distribution.count(),
                    sum: Some(distribution.sum()),
                    min: distribution.min(),
                    max: distribution.max(),
                    scale: EXPONENTIAL_SCALE,
                    zero_count: *zero,
                    zero_threshold: ZERO_THRESHOLD,
                    positive: Some(positive),
                    ..ExponentialHistogramDataPoint::default()
                }],
                aggregation_temporality,
            })
        }
    };
    Some(described(metric, data))
}

pub(super) fn described(metric: Metric, data: Data) -> OtlpMetric {
    OtlpMetric {
        name: metric.name.to_owned(),
        description: metric.description.to_owned(),
        unit: metric.unit.to_owned(),
        data: Some(data),
        ..OtlpMetric::default()
    }
}

#[cfg(test)]
mod tests {
    use warpgauge_wire::measurement::parse_line;

    use super::*;
    use crate::aggregate::{FileTally, Shape};

    const WINDOW: Window = Window { start_ns: 1, end_ns: 61 };

    fn mapped(lines: &str, shape: Shape) -> Vec<OtlpMetric> {
        let mut file = FileTally::new(shape);
        for line in lines.lines() {
            file.add(parse_line(line.as_bytes()).unwrap().unwrap());
        }
        let mut sum = Tally::default();
        sum.merge_file(&file);
        tally(Resource::default(), &sum, WINDOW).scope_metrics.remove(0).metrics
    }

    #[test]
    fn only_what_was_reported_becomes_a_metric() {
        let metrics = mapped("0:7\n1:25\n1:75", Shape::None);
        let names: Vec<_> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(
            names,
            ["gpu.kernel.instructions", "gpu.kernel.launches", "gpu.kernel.occupancy"]
        );
        let Some(Data::Gauge(gauge)) = &metrics[2].data else { panic!("{metrics:?}") };
        assert_eq!(gauge.data_points[0].value, Some(Value::AsDouble(0.5)));
    }

    #[test]
    fn a_sum_beyond_63_bits_is_rounded_and_not_cut() {
        assert_eq!(
            Number::from(u128::from(u64::MAX)),
            Number::Double(18_446_744_073_709_551_615.0)
        );
        assert_eq!(Number::from(7_u64), Number::Int(7));
    }

    #[test]
    fn histograms_count_every_launch() {
        for shape in [Shape::Explicit, Shape::Exponential] {
            let metrics = mapped("1:0\n1:12.5\n1:100\n4:9", shape);
            let (count, buckets) = match &metrics[2].data {
                Some(Data::Histogram(histogram)) => {
                    let point = &histogram.data_points[0];
                    (point.count, point.bucket_counts.iter().sum::<u64>())
                }
                Some(Data::ExponentialHistogram(histogram)) => {
                    let point = &histogram.data_points[0];
                    let positive = point.positive.as_ref().unwrap();
                    (point.count, point.zero_count + positive.bucket_counts.iter().sum::<u64>())
                }
                other => panic!("{other:?}"),
            };
            assert_eq!((count, buckets), (9, 9));
        }
    }
}
