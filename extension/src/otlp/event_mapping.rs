//! What event logs said to OTLP points. Pure; every sum is a delta, as in `mapping`.

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric as OtlpMetric,
    NumberDataPoint, ResourceMetrics, Sum, metric::Data, number_data_point::Value,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::mapping::{Number, Window, described, resource_metrics};
use super::resource::text;
use crate::event_metrics::EventTally;
use crate::event_metrics::devices::DeviceTally;
use crate::event_metrics::durations::{BOUNDS_NS, Durations};
use crate::event_metrics::memory::{MemorySample, MemoryTally};
use crate::metrics::{self, Kind, Metric};

/// The name of all that have no series of their own, as OpenTelemetry names it.
pub const OTHER: &str = "_OTHER";

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// All that logs said of one source, the first `limit` kernels and scopes by name.
#[must_use]
pub fn event_tally(
    resource: Resource,
    tally: &EventTally,
    limit: usize,
    window: Window,
) -> ResourceMetrics {
    let mut out = Points { window, metrics: Vec::new() };
    let kernels = tally.kernels.top(limit);
    let named = |name: &'static str, value: Option<&str>| {
        vec![text(name, value.unwrap_or(OTHER).to_owned())]
    };
    let kernel = |name| named("gpu.kernel.name", name);
    let executions =
        kernels.iter().map(|(name, durations)| (kernel(*name), durations.count().into()));
    out.numbers(metrics::KERNEL_EXECUTIONS, executions);
    out.durations(metrics::KERNEL_DURATION, kernels.iter().map(|(name, of)| (kernel(*name), of)));
    let scopes = tally.scopes.top(limit);
    let scope = |name| named("gpu.scope.name", name);
    out.durations(metrics::SCOPE_DURATION, scopes.iter().map(|(name, of)| (scope(*name), of)));
    let copy = |kind: warpgauge_formats::event::CopyKind| {
        let name = kind.name().map_or_else(|| kind.0.to_string(), str::to_owned);
        vec![text("gpu.memory.copy.kind", name)]
    };
    let copies = || tally.copies.iter().map(|(kind, of)| (copy(*kind), of));
    out.numbers(metrics::COPIES, copies().map(|(kind, of)| (kind, of.durations.count().into())));
    out.numbers(metrics::COPIED, copies().map(|(kind, of)| (kind, of.bytes.into())));
    out.durations(metrics::COPY_DURATION, copies().map(|(kind, of)| (kind, &of.durations)));
    out.devices(tally);
    out.memory(tally);
    resource_metrics(resource, out.metrics)
}

/// How a device's tally gives one metric's number.
type Reading<'r> = &'r dyn Fn(&DeviceTally) -> Option<Number>;

/// How a sample of memory gives one metric's number.
type SampleReading<'r> = &'r dyn Fn(&MemorySample) -> Option<Number>;

pub(super) struct Points {
    pub(super) window: Window,
    pub(super) metrics: Vec<OtlpMetric>,
}

impl Points {
    fn devices(&mut self, tally: &EventTally) {
        let mib = |mib: i64| Some(Number::Int(mib.checked_mul(1 << 20)?));
        let readings: [(Metric, Reading<'_>); 5] = [
            (metrics::DEVICE_MEMORY_USAGE, &|device| mib(device.used_mib.get()?)),
            (metrics::DEVICE_MEMORY_LIMIT, &|device| mib(device.total_mib.get()?)),
            (metrics::DEVICE_UTILIZATION, &|device| {
                Some(Number::Double(device.utilization_percent.get()? / 100.0))
            }),
            (metrics::DEVICE_TEMPERATURE, &|device| {
                device.temperature_celsius.get().map(Number::Int)
            }),
            (metrics::DEVICE_POWER, &|device| {
                Some(Number::Double(device.power_milliwatts.get()? / 1_000.0))
            }),
        ];
        for (metric, reading) in readings {
            let points = tally.devices.iter().filter_map(|(index, device)| {
                Some((attributes(*index, device, tally), reading(device)?))
            });
            self.numbers(metric, points);
        }
    }

    /// What telemetry says of the devices' memory.
    fn memory(&mut self, tally: &EventTally) {
        let bytes = |bytes: Option<i64>| bytes.map(Number::Int);
        let readings: [(Metric, SampleReading<'_>); 9] = [
            (metrics::MEMORY_ALLOCATED, &|sample| bytes(Some(sample.allocated))),
            (metrics::MEMORY_RESERVED, &|sample| bytes(Some(sample.reserved))),
            (metrics::MEMORY_ACTIVE, &|sample| bytes(sample.active)),
            (metrics::MEMORY_INACTIVE, &|sample| bytes(sample.inactive)),
            (metrics::DEVICE_MEMORY_USAGE, &|sample| bytes(Some(sample.used))),
            (metrics::MEMORY_FREE, &|sample| bytes(sample.free)),
            (metrics::DEVICE_MEMORY_LIMIT, &|sample| bytes(sample.total)),
            (metrics::MEMORY_GAP, &|sample| bytes(Some(sample.gap))),
            (metrics::MEMORY_FRAGMENTATION, &|sample| sample.fragmentation.map(Number::Double)),
        ];
        let memory = || tally.memory.iter();
        for (metric, reading) in readings {
            let points = memory().filter_map(|(device, memory)| {
                Some((device_number(*device), reading(&memory.last()?)?))
            });
            self.numbers(metric, points);
        }
        let peak = |most: fn(&MemoryTally) -> i64| {
            memory()
                .map(move |(device, memory)| (device_number(*device), Number::Int(most(memory))))
        };
        self.numbers(metrics::MEMORY_ALLOCATED_MAX, peak(|memory| memory.most_allocated));
        self.numbers(metrics::MEMORY_RESERVED_MAX, peak(|memory| memory.most_reserved));
        let events = memory().flat_map(|(device, memory)| {
            memory.events.iter().map(|(name, count)| {
                let mut attributes = device_number(*device);
                let name = name.as_deref().unwrap_or(OTHER);
                attributes.push(text("warpgauge.event.type", name.to_owned()));
                (attributes, (*count).into())
            })
        });
        self.numbers(metrics::MEMORY_EVENTS, events);
        let ran_out = memory().filter(|(_, memory)| memory.out_of_memory > 0);
        let ran_out =
            ran_out.map(|(device, memory)| (device_number(*device), memory.out_of_memory.into()));
        self.numbers(metrics::OUT_OF_MEMORY, ran_out);
    }

    /// One metric with its points; none where there is no point.
    pub(super) fn numbers(
        &mut self,
        metric: Metric,
        points: impl Iterator<Item = (Vec<KeyValue>, Number)>,
    ) {
        let Window { start_ns, end_ns } = self.window;
        let data_points: Vec<_> = points
            .map(|(attributes, value)| NumberDataPoint {
                attributes,
                start_time_unix_nano: start_ns,
                time_unix_nano: end_ns,
                value: Some(match value {
                    Number::Int(value) => Value::AsInt(value),
                    Number::Double(value) => Value::AsDouble(value),
                }),
                ..NumberDataPoint::default()
            })
            .collect();
        if data_points.is_empty() {
            return;
        }
        self.metrics.push(described(
            metric,
            match metric.kind {
                Kind::Gauge => Data::Gauge(Gauge { data_points }),
                Kind::MonotonicSum | Kind::Histogram => Data::Sum(Sum {
                    data_points,
                    aggregation_temporality: AggregationTemporality::Delta.into(),
                    is_monotonic: true,
                }),
            },
        ));
    }

    fn durations<'d>(
        &mut self,
        metric: Metric,
        points: impl Iterator<Item = (Vec<KeyValue>, &'d Durations)>,
    ) {
        let Window { start_ns, end_ns } = self.window;
        #[expect(clippy::cast_precision_loss, reason = "seconds are doubles in OTLP")]
        let seconds = |nanoseconds: u128| nanoseconds as f64 / SECOND;
        let data_points: Vec<_> = points
            .map(|(attributes, durations)| HistogramDataPoint {
                attributes,
                start_time_unix_nano: start_ns,
                time_unix_nano: end_ns,
                count: durations.count(),
                sum: Some(seconds(durations.sum_ns())),
                min: durations.range_ns().map(|(min, _)| seconds(min.into())),
                max: durations.range_ns().map(|(_, max)| seconds(max.into())),
                bucket_counts: durations.buckets().to_vec(),
                explicit_bounds: BOUNDS_NS.iter().map(|bound| seconds((*bound).into())).collect(),
                ..HistogramDataPoint::default()
            })
            .collect();
        if !data_points.is_empty() {
            let aggregation_temporality = AggregationTemporality::Delta.into();
            let data = Data::Histogram(Histogram { data_points, aggregation_temporality });
            self.metrics.push(described(metric, data));
        }
    }
}

/// Telemetry knows a device by its number; a negative one is none.
fn device_number(device: i64) -> Vec<KeyValue> {
    match device {
        0.. => vec![text("hw.id", device.to_string()), text("hw.type", "gpu".to_owned())],
        _ => vec![],
    }
}

/// A device is known by its UUID where the log has one for each, else by its place in the
/// producer's count.
fn attributes(index: i64, device: &DeviceTally, tally: &EventTally) -> Vec<KeyValue> {
    let named = tally.devices.values().filter(|other| other.uuid == device.uuid).count();
    let uuid = device.uuid.clone().filter(|_| named == 1);
    let id = uuid.unwrap_or_else(|| index.to_string());
    let mut attributes = vec![text("hw.id", id), text("hw.type", "gpu".to_owned())];
    attributes.extend(device.name.clone().map(|name| text("hw.name", name)));
    attributes
}

#[cfg(test)]
mod tests {
    use warpgauge_formats::event::{CopyKind, Device};
    use warpgauge_formats::time::Timestamp;

    use super::*;
    use crate::event_metrics::Copies;

    #[test]
    fn every_number_finds_its_metric_and_unit() {
        let mut tally = EventTally::default();
        tally.kernels.add("gemm", 2_000_000_000);
        tally.kernels.add("relu", 1_000);
        tally.scopes.add("step", 5_000);
        let mut durations = Durations::default();
        [3_000, 4_000].into_iter().for_each(|duration| durations.add(duration));
        tally.copies.insert(CopyKind(1), Copies { durations, bytes: 99 });
        let device = Device {
            uuid: Some("GPU-1".into()),
            used_mib: Some(3),
            gpu_percent: Some(50),
            power_milliwatts: Some(70_500),
            ..Device::default()
        };
        tally.devices.entry(0).or_default().add(Timestamp(1), &device);
        let window = Window { start_ns: 1, end_ns: 2 };
        let mapped = event_tally(Resource::default(), &tally, 1, window);
        let metrics = &mapped.scope_metrics[0].metrics;
        let shown: Vec<_> = metrics
            .iter()
            .map(|metric| {
                let values: Vec<String> = match metric.data.as_ref().unwrap() {
                    Data::Gauge(Gauge { data_points }) | Data::Sum(Sum { data_points, .. }) => {
                        data_points
                            .iter()
                            .map(|point| format!("{:?}", point.value.unwrap()))
                            .collect()
                    }
                    Data::Histogram(histogram) => {
                        let points = histogram.data_points.iter();
                        points
                            .map(|point| format!("{} {}", point.count, point.sum.unwrap()))
                            .collect()
                    }
                    other => panic!("{other:?}"),
                };
                format!("{} {}", metric.name, values.join(", "))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "gpu.kernel.executions AsInt(1), AsInt(1)",
                "gpu.kernel.duration 1 2, 1 0.000001",
                "gpu.scope.duration 1 0.000005",
                "gpu.memory.copies AsInt(2)",
                "gpu.memory.copied AsInt(99)",
                "gpu.memory.copy.duration 2 0.000007",
                "hw.gpu.memory.usage AsInt(3145728)",
                "hw.gpu.utilization AsDouble(0.5)",
                "hw.power AsDouble(70.5)",
            ]
        );
    }
}
