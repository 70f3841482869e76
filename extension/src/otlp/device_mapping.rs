//! What the devices said to OTLP points. Pure; all are gauges.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::{Metric as OtlpMetric, ResourceMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::event_mapping::Points;
use super::mapping::{Number, Window, resource_metrics};
use super::resource::{instance_of, text};
use crate::devices::Device;
use crate::metrics::{self, Metric};

/// How a device gives one metric's number.
type Reading = fn(&Device) -> Option<Number>;

/// Each metric that a device has one of.
const READINGS: [(Metric, Reading); 7] = [
    (metrics::DEVICE_MEMORY_USAGE, |device| Some(device.memory?.used.into())),
    (metrics::DEVICE_MEMORY_LIMIT, |device| Some(device.memory?.total.into())),
    (metrics::DEVICE_MEMORY_RESERVED, |device| Some(device.memory?.reserved.into())),
    (metrics::DEVICE_UTILIZATION, |device| share(device.gpu_percent?)),
    (metrics::DEVICE_MEMORY_ACTIVITY, |device| share(device.memory_percent?)),
    (metrics::DEVICE_TEMPERATURE, |device| Some(Number::Int(device.temperature_celsius?.into()))),
    (metrics::DEVICE_POWER, |device| {
        Some(Number::Double(f64::from(device.power_milliwatts?) / 1_000.0))
    }),
];

fn share(percent: u32) -> Option<Number> {
    Some(Number::Double(f64::from(percent) / 100.0))
}

/// All that the devices said of themselves; `None` where they said nothing.
#[must_use]
pub fn devices(resource: Resource, devices: &[Device], window: Window) -> Option<ResourceMetrics> {
    let mut out = Points { window, metrics: Vec::new() };
    for (metric, reading) in READINGS {
        let points =
            devices.iter().filter_map(|device| Some((attributes(device), reading(device)?)));
        out.numbers(metric, points);
    }
    let throttling = devices.iter().flat_map(|device| {
        let reasons = device.throttling.into_iter().flat_map(|throttling| throttling.reasons());
        reasons.map(move |(reason, holds)| {
            let mut attributes = attributes(device);
            attributes.push(text("reason", reason.to_owned()));
            (attributes, Number::Int(holds.into()))
        })
    });
    out.numbers(metrics::DEVICE_THROTTLING, throttling);
    (!out.metrics.is_empty()).then(|| resource_metrics(resource, out.metrics))
}

/// What one entity uses of each device, by the device's place among `devices`.
#[must_use]
pub fn memory_of_process(
    used: &BTreeMap<usize, u64>,
    devices: &[Device],
    window: Window,
) -> Vec<OtlpMetric> {
    let mut out = Points { window, metrics: Vec::new() };
    let points = used
        .iter()
        .filter_map(|(place, used)| Some((attributes(devices.get(*place)?), (*used).into())));
    out.numbers(metrics::PROCESS_DEVICE_MEMORY, points);
    out.metrics
}

/// Adds metrics to an entity's, or the entity with them: a request has each entity once.
pub fn add(resources: &mut Vec<ResourceMetrics>, resource: Resource, metrics: Vec<OtlpMetric>) {
    if metrics.is_empty() {
        return;
    }
    let instance = instance_of(&resource);
    let known = resources
        .iter_mut()
        .find(|known| known.resource.as_ref().is_some_and(|known| instance_of(known) == instance))
        .and_then(|known| known.scope_metrics.first_mut());
    match known {
        Some(scope) => scope.metrics.extend(metrics),
        None => resources.push(resource_metrics(resource, metrics)),
    }
}

fn attributes(device: &Device) -> Vec<KeyValue> {
    let mut attributes = vec![text("hw.id", device.id.clone()), text("hw.type", "gpu".to_owned())];
    attributes.extend(device.name.clone().map(|name| text("hw.name", name)));
    attributes.extend(device.parent.clone().map(|parent| text("hw.parent", parent)));
    attributes
}
