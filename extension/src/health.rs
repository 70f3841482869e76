//! The extension's own metrics.
//!
//! Recorded through OpenTelemetry's API and SDK with a reader that is read once, then appended to
//! the pass's own request. The SDK stamps the times of its own life, a few milliseconds; the
//! window's take their place.

use std::sync::{Arc, Weak};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::{
    Metric as OtlpMetric, ResourceMetrics, metric::Data,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics as SdkResourceMetrics;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{
    InstrumentKind, ManualReader, Pipeline, SdkMeterProvider, Temporality,
};

use crate::carried::{Carried, Forwarded, GivenUpBy};
use crate::metrics::{self, Metric};
use crate::otlp::mapping::{Window, resource_metrics};
use crate::skips::Skips;

/// What a pass says of itself.
#[derive(Debug)]
pub struct Health<'a> {
    /// Measurements that were read and attributed.
    pub read: u64,
    /// What was refused, by reason.
    pub refused: &'a Skips,
    /// Measurements of processes that nobody listed.
    pub unattributed: u64,
    /// From the pass before, with the points that got lost since.
    pub carried: &'a Carried,
    /// Bytes that waited when the pass began.
    pub spool_bytes: u64,
    /// How long the oldest of them had waited.
    pub spool_age: Duration,
    /// Processes in the runtime configuration.
    pub processes: usize,
    /// Health files of killed processes that were removed.
    pub health_files_removed: u64,
    /// What the event logs said; `None` where none are configured.
    pub events: Option<EventHealth<'a>>,
    /// What could not be read from the devices.
    pub device_faults: &'a Skips,
}

/// What a pass says of the event logs.
#[derive(Debug, Clone, Copy)]
pub struct EventHealth<'a> {
    /// Lines that were read.
    pub lines: u64,
    /// What was not taken, by reason.
    pub skipped: &'a Skips,
    /// Findings about lines that were taken.
    pub suspect: u64,
}

/// The extension's metrics of one window.
///
/// # Errors
/// What the SDK says of the collection.
pub fn collect(
    health: &Health<'_>,
    resource: Resource,
    window: Window,
) -> Result<ResourceMetrics, opentelemetry_sdk::error::OTelSdkError> {
    let reader = SharedReader(Arc::new(
        ManualReader::builder().with_temporality(Temporality::Delta).build(),
    ));
    let provider = SdkMeterProvider::builder().with_reader(reader.clone()).build();
    record(health, &provider.meter(env!("CARGO_PKG_NAME")));
    let mut collected = SdkResourceMetrics::default();
    reader.collect(&mut collected)?;
    let request = ExportMetricsServiceRequest::from(&collected);
    let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
    let mut metrics: Vec<_> = scopes.flat_map(|scope| scope.metrics).collect();
    metrics.iter_mut().for_each(|metric| stamp(metric, window));
    Ok(resource_metrics(resource, metrics))
}

fn record(health: &Health<'_>, meter: &Meter) {
    let Health { read, refused, unattributed, carried, spool_bytes, spool_age, .. } = health;
    let Health { processes, events, .. } = health;
    sum(meter, metrics::MEASUREMENTS_READ, *read, None);
    for (reason, skip) in refused.iter() {
        sum(meter, metrics::MEASUREMENTS_REFUSED, skip.count, Some(reason));
    }
    if *unattributed > 0 {
        let reason = Some("pid_not_listed");
        sum(meter, metrics::MEASUREMENTS_UNATTRIBUTED, *unattributed, reason);
    }
    if health.health_files_removed > 0 {
        sum(meter, metrics::HEALTH_FILES_REMOVED, health.health_files_removed, None);
    }
    for ((by, reason), points) in carried.owed_by_reason() {
        let metric = match by {
            GivenUpBy::Spool => metrics::DROPPED_POINTS,
            GivenUpBy::Receiver => metrics::REJECTED_POINTS,
        };
        sum(meter, metric, points, Some(reason));
    }
    if let Some(EventHealth { lines, skipped, suspect }) = events {
        sum(meter, metrics::EVENT_LINES, *lines, None);
        sum(meter, metrics::EVENTS_SUSPECT, *suspect, None);
        for (reason, skip) in skipped.iter() {
            sum(meter, metrics::EVENTS_SKIPPED, skip.count, Some(reason));
        }
    }
    for (reason, skip) in health.device_faults.iter() {
        sum(meter, metrics::DEVICE_FAULTS, skip.count, Some(reason));
    }
    forwarded(meter, &carried.forwarded);
    gauge_u64(meter, metrics::SPOOL_SIZE, *spool_bytes);
    gauge_f64(meter, metrics::SPOOL_AGE, spool_age.as_secs_f64());
    gauge_u64(meter, metrics::PROCESSES, *processes as u64);
    if let Some(duration_ns) = carried.last_duration_ns {
        gauge_f64(meter, metrics::RUN_DURATION, Duration::from_nanos(duration_ns).as_secs_f64());
    }
    if let Some(success_ns) = carried.last_success_ns {
        // Whole seconds: a nanosecond time does not survive a float.
        gauge_u64(meter, metrics::LAST_SUCCESS, success_ns / 1_000_000_000);
    }
}

/// Who forwards nothing has no such metrics.
fn forwarded(meter: &Meter, forwarded: &Forwarded) {
    let Forwarded { lines, bytes, refused, retries, unread } = forwarded;
    let counts = [
        (metrics::FORWARDED_LINES, *lines),
        (metrics::FORWARDED_BYTES, *bytes),
        (metrics::FORWARD_RETRIES, *retries),
    ];
    for (metric, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        sum(meter, metric, count, None);
    }
    for (metric, counts) in [(metrics::FORWARD_REFUSED, refused), (metrics::FORWARD_UNREAD, unread)]
    {
        for (reason, count) in counts {
            sum(meter, metric, *count, Some(reason));
        }
    }
}

fn sum(meter: &Meter, metric: Metric, value: u64, reason: Option<&str>) {
    let counter = meter
        .u64_counter(metric.name)
        .with_unit(metric.unit)
        .with_description(metric.description)
        .build();
    match reason {
        Some(reason) => counter.add(value, &[KeyValue::new("reason", reason.to_owned())]),
        None => counter.add(value, &[]),
    }
}

fn gauge_u64(meter: &Meter, metric: Metric, value: u64) {
    let gauge = meter.u64_gauge(metric.name).with_unit(metric.unit);
    gauge.with_description(metric.description).build().record(value, &[]);
}

fn gauge_f64(meter: &Meter, metric: Metric, value: f64) {
    let gauge = meter.f64_gauge(metric.name).with_unit(metric.unit);
    gauge.with_description(metric.description).build().record(value, &[]);
}

fn stamp(metric: &mut OtlpMetric, window: Window) {
    let points = match &mut metric.data {
        Some(Data::Sum(sum)) => &mut sum.data_points,
        Some(Data::Gauge(gauge)) => &mut gauge.data_points,
        _ => return,
    };
    for point in points {
        point.start_time_unix_nano = window.start_ns;
        point.time_unix_nano = window.end_ns;
    }
}

/// The provider takes its reader for good; this lets two hold one.
#[derive(Debug, Clone)]
struct SharedReader(Arc<ManualReader>);

impl MetricReader for SharedReader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, into: &mut SdkResourceMetrics) -> OTelSdkResult {
        self.0.collect(into)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use opentelemetry_proto::tonic::metrics::v1::{
        AggregationTemporality, number_data_point::Value,
    };

    use super::*;
    use crate::carried::Owed;

    const WINDOW: Window = Window { start_ns: 60, end_ns: 120 };

    fn collected(read: u64, refused: &Skips, carried: &Carried) -> BTreeMap<String, OtlpMetric> {
        let health = Health {
            read,
            refused,
            unattributed: 0,
            carried,
            spool_bytes: 0,
            spool_age: Duration::ZERO,
            processes: 3,
            health_files_removed: 0,
            events: None,
            device_faults: &Skips::default(),
        };
        let resource = collect(&health, Resource::default(), WINDOW).unwrap();
        let metrics = resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
        metrics.map(|metric| (metric.name.clone(), metric)).collect()
    }

    #[test]
    fn counts_are_deltas_of_the_window_with_one_point_for_each_reason() {
        let mut refused = Skips::default();
        refused.note_many("negative", 2, String::new);
        refused.note_many("wrong_owner", 1, String::new);
        let metrics = collected(41, &refused, &Carried::default());
        let Some(Data::Sum(sum)) = &metrics[metrics::MEASUREMENTS_REFUSED.name].data else {
            panic!("{metrics:?}")
        };
        assert_eq!(sum.aggregation_temporality, AggregationTemporality::Delta as i32);
        assert_eq!(sum.data_points.len(), 2);
        let point = &sum.data_points[0];
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (60, 120));
        let Some(Data::Sum(sum)) = &metrics[metrics::MEASUREMENTS_READ.name].data else {
            panic!("{metrics:?}")
        };
        assert_eq!(sum.data_points[0].value, Some(Value::AsInt(41)));
    }

    #[test]
    fn what_never_happened_has_no_metric_and_all_that_do_are_in_the_catalogue() {
        let metrics = collected(0, &Skips::default(), &Carried::default());
        assert!(!metrics.contains_key(metrics::LAST_SUCCESS.name));
        assert!(!metrics.contains_key(metrics::DROPPED_POINTS.name));
        let owed = Owed { by: GivenUpBy::Receiver, reason: "partial".into(), points: 3 };
        let carried = Carried {
            owed: BTreeMap::from([("w/0000.otlp".into(), owed)]),
            forwarded: Forwarded {
                lines: 3,
                bytes: 4,
                refused: BTreeMap::from([("not_utf8".into(), 2)]),
                retries: 1,
                unread: BTreeMap::from([("not_a_file".into(), 1)]),
            },
            last_success_ns: Some(7_000_000_001),
            last_duration_ns: Some(1),
            ..Carried::default()
        };
        let metrics = collected(0, &Skips::default(), &carried);
        assert!(metrics.contains_key(metrics::REJECTED_POINTS.name));
        for forwarded in [
            metrics::FORWARDED_LINES,
            metrics::FORWARDED_BYTES,
            metrics::FORWARD_REFUSED,
            metrics::FORWARD_RETRIES,
            metrics::FORWARD_UNREAD,
        ] {
            assert!(metrics.contains_key(forwarded.name), "{}", forwarded.name);
        }
        for (name, metric) in metrics {
            let known = metrics::CATALOGUE.iter().find(|known| known.name == name).unwrap();
            assert_eq!(
                (known.unit, known.description),
                (metric.unit.as_str(), metric.description.as_str())
            );
        }
    }
}
