//! The devices' own figures: into the window's series, and as records into a file.

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::tonic::metrics::v1::ResourceMetrics;

use crate::devices::records::{self, Context};
use crate::devices::sampling::Sampling;
use crate::devices::{Library, Sample, rotated_file};
use crate::listing::{ListedProcess, Listing};
use crate::otlp::device_mapping;
use crate::otlp::mapping::Window;
use crate::otlp::resource::Host;
use crate::report::DeviceReport;
use crate::setup::Setup;

/// Waits for what is left of the sample; an empty one where none was begun.
pub(super) fn finish(sampling: Option<Sampling>) -> Sample {
    let sample = sampling.map(Sampling::finish).unwrap_or_default();
    sample.log();
    sample
}

/// Adds the devices' series, and to those of monitored processes and their groups what they use.
pub(super) fn add_series(
    resources: &mut Vec<ResourceMetrics>,
    sample: &Sample,
    setup: &Setup,
    host: &Host,
    listing: &Listing,
    window: Window,
) {
    resources.extend(device_mapping::devices(host.devices(), &sample.devices, window));
    let mut groups = BTreeMap::<&str, Usage>::new();
    for (process, usage) in usage(sample, listing) {
        if setup.config.metrics.per_process || process.group.is_none() {
            let metrics = device_mapping::memory_of_process(&usage.used, &sample.devices, window);
            device_mapping::add(resources, host.process(process), metrics);
        }
        if let Some(group) = process.group.as_deref() {
            groups.entry(group).or_default().merge(usage);
        }
    }
    for (group, Usage { mut used, unknown }) in groups {
        // A sum of which a part is not known is none.
        used.retain(|device, _| !unknown.contains(device));
        let metrics = device_mapping::memory_of_process(&used, &sample.devices, window);
        device_mapping::add(resources, host.roll_up(group), metrics);
    }
}

/// Appends the sample's records where the configuration wants them, and reports. Nothing else of the
/// pass depends on it.
pub(super) fn write_records(
    sample: &Sample,
    setup: &Setup,
    host: &Host,
    listing: &Listing,
    window: Window,
) -> Option<DeviceReport> {
    let mut report = report(sample)?;
    let telemetry = &setup.config.telemetry;
    if let Some(output) = &telemetry.output {
        let monitored = alive(listing);
        let monitored: BTreeMap<_, _> =
            monitored.map(|process| (process.pid, process.group.as_deref())).collect();
        let interval_ms = (window.end_ns - window.start_ns) / 1_000_000;
        let context = Context { host: &host.name, interval_ms, monitored: &monitored };
        let written =
            records::lines(sample, context).map_err(anyhow::Error::from).and_then(|lines| {
                rotated_file::append(output, telemetry.max_bytes, &lines)?;
                Ok(lines.len())
            });
        match written {
            Ok(records) => report.records = Some(records),
            Err(fault) => report.failure = Some(format!("telemetry.output: {fault:#}")),
        }
    }
    Some(report)
}

/// What people and machines are told; `None` where nobody was asked.
pub(super) fn report(sample: &Sample) -> Option<DeviceReport> {
    let was_nobody_there = matches!(sample.library, Library::Absent(_))
        || (sample.library == Library::Unusable && sample.faults.total() == 0);
    let instances = sample.devices.iter().filter(|device| device.parent.is_some()).count();
    let gpus = sample.devices.len() - instances;
    (!was_nobody_there).then(|| DeviceReport::new(gpus, instances, &sample.faults))
}

/// What somebody uses of each device, by its place in the sample.
#[derive(Debug, Default)]
struct Usage {
    used: BTreeMap<usize, u64>,
    /// Where it uses something that the driver cannot tell.
    unknown: BTreeSet<usize>,
}

impl Usage {
    fn merge(&mut self, other: Self) {
        for (device, bytes) in other.used {
            let sum = self.used.entry(device).or_default();
            *sum = sum.saturating_add(bytes);
        }
        self.unknown.extend(other.unknown);
    }
}

/// The monitored processes that use a device.
fn usage<'l>(
    sample: &Sample,
    listing: &'l Listing,
) -> impl Iterator<Item = (&'l ListedProcess, Usage)> {
    let mut by_pid = BTreeMap::<u32, Usage>::new();
    for (place, device) in sample.devices.iter().enumerate() {
        for process in &device.processes {
            let usage = by_pid.entry(process.pid).or_default();
            match process.used {
                Some(bytes) => drop(usage.used.insert(place, bytes)),
                None => drop(usage.unknown.insert(place)),
            }
        }
    }
    alive(listing).filter_map(move |process| Some((process, by_pid.remove(&process.pid)?)))
}

/// Those who are listed now: an ended process's pid may be another's.
fn alive(listing: &Listing) -> impl Iterator<Item = &ListedProcess> {
    listing.processes().iter().filter(|process| process.gone_since_ns.is_none())
}
