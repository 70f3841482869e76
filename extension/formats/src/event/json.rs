//! An event as one JSON object, for machines that want every format in the same words.
//!
//! ```text
//! {"type":"kernel","pid":1234,"app":"trainer","start_ns":30,"duration_ns":10,
//!  "name":"vectorAdd","dynamic_shared_bytes":0,"grid":[128,1,1],"block":[256,1,1]}
//! ```
//!
//! (Broken here for reading.) Keys are the names of the model's fields, instants and spans end in
//! `_ns` and are whole numbers. What the log does not tell has no key.

use super::{
    Copy, Device, Dim3, Event, Host, Kernel, KernelDetails, Phase, Profile, Sampling, Scope, Start,
    StaticDevice, System, What,
};
use crate::json::write::Object;
use crate::time::Timestamp;

impl What<'_> {
    /// The name of what happened: `start`, `end`, `sampling_start`, `sampling_stop`, `kernel`,
    /// `kernel_details`, `copy`, `scope_begin`, `scope_end`, `scope_continue`, `scope_suspend`,
    /// `scope_sample`, `profile_sample`, `system_sample`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start(_) => "start",
            Self::End(_) => "end",
            Self::Sampling(Sampling { began: true, .. }) => "sampling_start",
            Self::Sampling(_) => "sampling_stop",
            Self::Kernel(_) => "kernel",
            Self::KernelDetails(_) => "kernel_details",
            Self::Copy(_) => "copy",
            Self::Scope(scope) => match scope.phase {
                Phase::Begin => "scope_begin",
                Phase::End => "scope_end",
                Phase::Continue => "scope_continue",
                Phase::Suspend => "scope_suspend",
                Phase::Sample => "scope_sample",
            },
            Self::Profile(_) => "profile_sample",
            Self::System(_) => "system_sample",
        }
    }
}

impl Event<'_> {
    /// Appends the event as one JSON object, without a newline, to `out`.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = Object::open(out);
        object.text("type", self.what.name());
        object.some_text("session", self.source.session.as_deref());
        object.some_integer("pid", self.source.pid);
        object.some_text("app", self.source.app.as_deref());
        match &self.what {
            What::Start(one) => start(&mut object, one),
            What::End(one) => time(&mut object, "time_ns", *one),
            What::Sampling(one) => sampling(&mut object, one),
            What::Kernel(one) => kernel(&mut object, one),
            What::KernelDetails(one) => details(&mut object, one),
            What::Copy(one) => copy(&mut object, one),
            What::Scope(one) => scope(&mut object, one),
            What::Profile(one) => profile(&mut object, one),
            What::System(one) => system(&mut object, one),
        }
        object.close();
    }
}

fn time(object: &mut Object<'_>, key: &str, time: Timestamp) {
    object.integer(key, time.0);
}

fn some_time(object: &mut Object<'_>, key: &str, value: Option<Timestamp>) {
    object.some_integer(key, value.map(|time| time.0));
}
fn some_integers<const N: usize>(object: &mut Object<'_>, values: [(&str, Option<i64>); N]) {
    for (key, value) in values {
        object.some_integer(key, value);
    }
}

fn some_float(object: &mut Object<'_>, key: &str, value: Option<f64>) {
    if let Some(value) = value {
        object.float(key, value);
    }
}
fn some_extents(object: &mut Object<'_>, key: &str, value: Option<Dim3>) {
    if let Some(extents) = value {
        object.integers(key, extents);
    }
}

fn objects<T>(object: &mut Object<'_>, key: &str, items: &[T], write: fn(&mut Object<'_>, &T)) {
    if items.is_empty() {
        return;
    }
    object.objects(key, items, write);
}

fn state(object: &mut Object<'_>, host: Option<Host>, devices: &[Device<'_>]) {
    if let Some(host) = host {
        let mut entry = Object::open(object.key("host"));
        entry.some_integer("cpu_centipercent", host.cpu_centipercent);
        entry.some_integer("ram_used_mib", host.ram_used_mib);
        entry.some_integer("ram_total_mib", host.ram_total_mib);
        entry.close();
    }
    objects(object, "devices", devices, device);
}

fn device(object: &mut Object<'_>, device: &Device<'_>) {
    object.integer("index", device.index);
    object.some_text("name", device.name.as_deref());
    object.some_text("uuid", device.uuid.as_deref());
    object.some_text("vendor", device.vendor.as_deref());
    some_integers(
        object,
        [
            ("pci_bus", device.pci_bus),
            ("used_mib", device.used_mib),
            ("free_mib", device.free_mib),
            ("total_mib", device.total_mib),
            ("gpu_percent", device.gpu_percent),
            ("memory_percent", device.memory_percent),
            ("temperature_celsius", device.temperature_celsius),
            ("power_milliwatts", device.power_milliwatts),
            ("graphics_mhz", device.graphics_mhz),
            ("multiprocessor_mhz", device.multiprocessor_mhz),
            ("memory_mhz", device.memory_mhz),
            ("throttled_by_power", device.throttled_by_power),
            ("throttled_by_heat", device.throttled_by_heat),
            ("pcie_received_bytes_per_second", device.pcie_received_bytes_per_second),
            ("pcie_sent_bytes_per_second", device.pcie_sent_bytes_per_second),
        ],
    );
}

fn static_device(object: &mut Object<'_>, device: &StaticDevice<'_>) {
    object.integer("index", device.index);
    object.some_text("name", device.name.as_deref());
    object.some_text("uuid", device.uuid.as_deref());
    object.some_text("vendor", device.vendor.as_deref());
    some_integers(
        object,
        [
            ("compute_major", device.compute_major),
            ("compute_minor", device.compute_minor),
            ("l2_cache_bytes", device.l2_cache_bytes),
            ("shared_bytes_per_block", device.shared_bytes_per_block),
            ("registers_per_block", device.registers_per_block),
            ("multiprocessors", device.multiprocessors),
            ("warp_size", device.warp_size),
        ],
    );
}

fn start(object: &mut Object<'_>, start: &Start<'_>) {
    time(object, "time_ns", start.time);
    object.some_text("log_path", start.log_path.as_deref());
    object.some_integer("scope_rate_ms", start.scope_rate_ms);
    object.some_integer("system_rate_ms", start.system_rate_ms);
    state(object, start.host, &start.devices);
    objects(object, "static_devices", &start.static_devices, static_device);
}

fn sampling(object: &mut Object<'_>, sampling: &Sampling<'_>) {
    time(object, "time_ns", sampling.time);
    object.some_text("name", sampling.name.as_deref());
    state(object, sampling.host, &sampling.devices);
}

fn system(object: &mut Object<'_>, system: &System<'_>) {
    time(object, "time_ns", system.time);
    object.some_text("name", system.name.as_deref());
    state(object, system.host, &system.devices);
}

fn kernel(object: &mut Object<'_>, kernel: &Kernel<'_>) {
    time(object, "start_ns", kernel.start);
    object.integer("duration_ns", kernel.duration.0);
    object.text("name", &kernel.name);
    some_integers(
        object,
        [
            ("device", kernel.device),
            ("stream", kernel.stream),
            ("correlation", kernel.correlation),
            ("dynamic_shared_bytes", kernel.dynamic_shared_bytes),
            ("registers", kernel.registers),
        ],
    );
    some_extents(object, "grid", kernel.grid);
    some_extents(object, "block", kernel.block);
    if let Some(has_details) = kernel.has_details {
        object.boolean("has_details", has_details);
    }
    if let Some(told) = &kernel.details {
        let mut entry = Object::open(object.key("details"));
        details(&mut entry, told);
        entry.close();
    }
    some_time(object, "call_start_ns", kernel.call_start);
    some_time(object, "call_end_ns", kernel.call_end);
    object.some_integer("external_kind", kernel.external_kind);
    object.some_integer("external", kernel.external);
    object.some_text("platform", kernel.platform.as_deref());
    object.some_text("error", kernel.error.as_deref());
    object.some_text("tag", kernel.tag.as_deref());
}

fn details(object: &mut Object<'_>, details: &KernelDetails<'_>) {
    object.some_integer("correlation", details.correlation);
    some_extents(object, "grid", details.grid);
    some_extents(object, "block", details.block);
    some_integers(
        object,
        [
            ("static_shared_bytes", details.static_shared_bytes),
            ("local_bytes", details.local_bytes),
            ("const_bytes", details.const_bytes),
        ],
    );
    some_float(object, "occupancy", details.occupancy);
    some_float(object, "register_occupancy", details.register_occupancy);
    some_float(object, "shared_memory_occupancy", details.shared_memory_occupancy);
    some_float(object, "warp_occupancy", details.warp_occupancy);
    some_float(object, "block_occupancy", details.block_occupancy);
    object.some_text("limiting_resource", details.limiting_resource.as_deref());
    some_integers(
        object,
        [
            ("max_active_blocks", details.max_active_blocks),
            ("local_total_bytes", details.local_total_bytes),
            ("local_bytes_per_thread", details.local_bytes_per_thread),
            ("cache_config_requested", details.cache_config_requested),
            ("cache_config_executed", details.cache_config_executed),
            ("shared_executed_bytes", details.shared_executed_bytes),
        ],
    );
    object.some_text("scope_path", details.scope_path.as_deref());
    object.some_text("stack", details.stack.as_deref());
}

fn copy(object: &mut Object<'_>, copy: &Copy<'_>) {
    time(object, "start_ns", copy.start);
    object.integer("duration_ns", copy.duration.0).integer("bytes", copy.bytes);
    object.integer("kind", copy.kind.0);
    if let Some(name) = copy.kind.name() {
        object.text("kind_name", name);
    }
    object.some_integer("stream", copy.stream);
    object.some_integer("correlation", copy.correlation);
    object.some_integer("device", copy.device);
    some_time(object, "call_start_ns", copy.call_start);
    some_time(object, "call_end_ns", copy.call_end);
    object.some_text("platform", copy.platform.as_deref());
    object.some_text("name", copy.name.as_deref());
    object.some_text("source", copy.source.as_deref());
    object.some_text("destination", copy.destination.as_deref());
    object.some_text("scope_path", copy.scope_path.as_deref());
    object.some_integer("scope_depth", copy.scope_depth);
    object.some_text("stack", copy.stack.as_deref());
}

fn scope(object: &mut Object<'_>, scope: &Scope<'_>) {
    time(object, "time_ns", scope.time);
    object.text("name", &scope.name);
    object.some_integer("instance", scope.instance);
    object.some_integer("depth", scope.depth);
    some_time(object, "began_ns", scope.began);
    object.some_integer("duration_ns", scope.duration.map(|span| span.0));
    object.some_text("tag", scope.tag.as_deref());
    object.some_text("path", scope.path.as_deref());
    object.some_integer("repeat", scope.repeat);
    object.some_integer("warmup", scope.warmup);
    some_time(object, "original_start_ns", scope.original_start);
    state(object, scope.host, &scope.devices);
}

fn profile(object: &mut Object<'_>, sample: &Profile<'_>) {
    time(object, "time_ns", sample.time);
    object.some_integer("correlation", sample.correlation);
    object.some_integer("device", sample.device);
    object.some_text("function", sample.function.as_deref());
    object.some_integer("pc_offset", sample.pc_offset);
    object.some_text("metric", sample.metric.as_deref());
    object.some_integer("value", sample.value);
    object.some_integer("stall_reason", sample.stall_reason);
    object.some_text("stall_name", sample.stall_name.as_deref());
    object.some_integer("kind", sample.kind);
    object.some_text("scope", sample.scope.as_deref());
    object.boolean("scope_ended", sample.scope_ended);
    object.some_text("source_file", sample.source_file.as_deref());
    object.some_integer("source_line", sample.source_line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Source;
    use crate::time::Span;

    fn json(event: &Event<'_>) -> serde_json::Value {
        let mut out = vec![];
        event.write_json(&mut out);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn what_the_log_does_not_tell_has_no_key() {
        let source = Source { pid: Some(7), app: Some("a\"b".into()), session: None };
        let what = What::Kernel(Kernel {
            start: Timestamp(i64::MAX - 1),
            duration: Span(-3),
            name: "k<int>\n".into(),
            grid: Some([1, 2, 3]),
            details: Some(KernelDetails { occupancy: Some(0.5), ..KernelDetails::default() }),
            ..Kernel::default()
        });
        let expected = serde_json::json!({
            "type": "kernel", "pid": 7, "app": "a\"b", "start_ns": i64::MAX - 1, "duration_ns": -3,
            "name": "k<int>\n", "grid": [1, 2, 3], "details": { "occupancy": 0.5 },
        });
        assert_eq!(json(&Event { source, what }), expected);
    }

    #[test]
    fn devices_stand_in_their_scope() {
        let devices = vec![Device { index: 1, used_mib: Some(5), ..Device::default() }];
        let host = Some(Host { cpu_centipercent: Some(710), ..Host::default() });
        let what = What::Scope(Scope {
            phase: Phase::Sample,
            time: Timestamp(9),
            name: "s".into(),
            host,
            devices,
            ..Scope::default()
        });
        let expected = serde_json::json!({
            "type": "scope_sample", "time_ns": 9, "name": "s", "host": { "cpu_centipercent": 710 },
            "devices": [{ "index": 1, "used_mib": 5 }],
        });
        assert_eq!(json(&Event { source: Source::default(), what }), expected);
    }
}
