//! A sample as TelemetryEvent v2 records, which trackers inside programs cannot write: with the
//! device's own figures.
//!
//! NVML knows what a device and what a process uses, and nothing of allocators; the format wants an
//! allocator's figures in every record. They say what is used, as the format's reference has it of
//! records with a device's figures alone, and `metadata.allocator` says that they do (decision 11).

use std::collections::BTreeMap;

use warpgauge_formats::json::write;
use warpgauge_formats::telemetry::{Broken, Metadata, TelemetryEvent};

use super::{Device, Memory, Sample};

/// The `collector` of the records.
pub const COLLECTOR: &str = "warpgauge.nvml";

/// What a sample does not say of itself.
#[derive(Debug, Clone, Copy)]
pub struct Context<'c> {
    /// The machine's name.
    pub host: &'c str,
    /// How long ago the sample before was taken, in milliseconds; 0 where that is not known.
    pub interval_ms: u64,
    /// The monitored processes and the groups that they are in.
    pub monitored: &'c BTreeMap<u32, Option<&'c str>>,
}

/// A line for each GPU and for each monitored process on one, each with its line feed. What is not
/// known to have used any memory has no record.
///
/// # Errors
/// The first rule of the format that a record would break; there is then none at all.
pub fn lines(sample: &Sample, context: Context<'_>) -> Result<Vec<Vec<u8>>, Broken> {
    let mut lines = Vec::new();
    for device in &sample.devices {
        let Some(memory) = device.memory else { continue };
        // The memory of MIG instances is their GPU's again.
        if device.parent.is_none() {
            lines.push(line(sample, device, memory, None, memory.used, context)?);
        }
        for process in &device.processes {
            let Some(group) = context.monitored.get(&process.pid) else { continue };
            let Some(used) = process.used else { continue };
            lines.push(line(sample, device, memory, Some((process.pid, *group)), used, context)?);
        }
    }
    Ok(lines)
}

fn line(
    sample: &Sample,
    device: &Device,
    memory: Memory,
    process: Option<(u32, Option<&str>)>,
    allocated: u64,
    context: Context<'_>,
) -> Result<Vec<u8>, Broken> {
    let metadata = metadata(device, memory, process);
    let event = TelemetryEvent {
        timestamp_ns: sample.time_ns.into(),
        event_type: "sample".into(),
        collector: COLLECTOR.into(),
        sampling_interval_ms: context.interval_ms.into(),
        pid: process.map_or(-1, |(pid, _)| pid.into()),
        host: match context.host.trim() {
            "" => "unknown".into(),
            host => host.into(),
        },
        distributed: None,
        device_id: device.index.into(),
        allocator_allocated_bytes: allocated.into(),
        allocator_reserved_bytes: allocated.into(),
        allocator_active_bytes: None,
        allocator_inactive_bytes: None,
        allocator_change_bytes: 0,
        device_used_bytes: memory.used.into(),
        device_free_bytes: Some(memory.free.into()),
        device_total_bytes: Some(memory.total.into()),
        context: None,
        metadata: Metadata::from_json(&metadata).unwrap_or_default(),
    };
    event.check()?;
    let mut line = Vec::new();
    event.write(&mut line);
    line.push(b'\n');
    Ok(line)
}

fn metadata(device: &Device, memory: Memory, process: Option<(u32, Option<&str>)>) -> String {
    let mut out = Vec::new();
    let group = process.and_then(|(_, group)| group);
    let texts = [
        ("backend", Some("cuda")),
        ("source", Some("nvml")),
        ("allocator", Some("unknown")),
        ("scope", Some(if process.is_some() { "process" } else { "device" })),
        ("device_uuid", Some(&*device.id)),
        ("device_name", device.name.as_deref()),
        ("parent_uuid", device.parent.as_deref()),
        ("group", group),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            out.push(if out.is_empty() { b'{' } else { b',' });
            write::text(&mut out, key);
            out.push(b':');
            write::text(&mut out, text);
        }
    }
    out.extend_from_slice(b",\"device_reserved_bytes\":");
    write::integer(&mut out, memory.reserved);
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use warpgauge_formats::telemetry::Options;

    use super::*;
    use crate::devices::Process;

    fn device(processes: Vec<Process>) -> Device {
        let memory = Some(Memory { total: 1_000, used: 300, free: 600, reserved: 100 });
        Device { index: 3, id: "GPU-\"1".into(), memory, processes, ..Device::default() }
    }

    fn events(devices: Vec<Device>) -> Vec<TelemetryEvent<'static>> {
        let sample = Sample { devices, time_ns: 7, ..Sample::default() };
        let monitored = BTreeMap::from([(12, Some("trainer")), (13, None)]);
        let context = Context { host: " ", interval_ms: 60_000, monitored: &monitored };
        let lines = lines(&sample, context).unwrap();
        let texts = lines.iter().map(|line| std::str::from_utf8(line).unwrap());
        texts
            .map(|line| {
                let line = line.strip_suffix('\n').unwrap();
                let event = TelemetryEvent::from_v2_json(line, &Options::default()).unwrap();
                event.into_owned()
            })
            .collect()
    }

    #[test]
    fn a_device_and_each_monitored_process_on_it_have_a_record() {
        let used = |pid, used| Process { pid, used };
        let events =
            events(vec![device(vec![used(12, Some(200)), used(13, None), used(14, Some(9))])]);
        let shown: Vec<_> = events
            .iter()
            .map(|event| {
                let allocated = (event.allocator_allocated_bytes, event.allocator_reserved_bytes);
                (event.pid, event.device_id, allocated, event.device_used_bytes)
            })
            .collect();
        assert_eq!(shown, [(-1, 3, (300, 300), 300), (12, 3, (200, 200), 300)]);
        let process = &events[1];
        assert_eq!(process.metadata.get("allocator"), Some("\"unknown\""));
        assert_eq!(process.metadata.get("group"), Some("\"trainer\""));
        assert_eq!(process.metadata.get("device_uuid"), Some(r#""GPU-\"1""#));
        assert_eq!((&*process.host, process.sampling_interval_ms), ("unknown", 60_000));
    }

    #[test]
    fn the_memory_of_an_instance_is_not_told_of_twice() {
        let processes = vec![Process { pid: 12, used: Some(5) }];
        let instance = Device { parent: Some("GPU-1".into()), ..device(processes) };
        let events = events(vec![Device { memory: None, ..device(vec![]) }, instance]);
        assert_eq!(events.iter().map(|event| event.pid).collect::<Vec<_>>(), [12]);
    }
}
