//! The lines that both forms share: a session's beginning and end, and the state of its devices.

use crate::event::{Device, Dim3, Host, KernelDetails, Sampling, Source, Start, StaticDevice};
use crate::json::write::{Object, integer};
use crate::loss::Losses;
use crate::time::Timestamp;

/// Opens a line with its type and, where they are known, the process and the session.
pub(super) fn open<'o>(out: &'o mut Vec<u8>, kind: &str, source: &Source<'_>) -> Object<'o> {
    let mut line = Object::open(out);
    line.text("type", kind);
    line.some_integer("pid", source.pid);
    line.some_text("app", source.app.as_deref());
    line.text("session_id", &session_id(source));
    line
}

/// The session's id; a log that has none is named by its process.
pub(super) fn session_id<'s>(source: &'s Source<'_>) -> std::borrow::Cow<'s, str> {
    match (&source.session, source.pid) {
        (Some(session), _) => session.as_ref().into(),
        (None, Some(pid)) => format!("pid-{pid}").into(),
        (None, None) => "no-session".into(),
    }
}
/// A share, which may be absent; JSON has no word for one that is not finite.
fn some_share(line: &mut Object<'_>, key: &str, value: Option<f64>, losses: &mut Losses) {
    match value {
        Some(value) if value.is_finite() => drop(line.float(key, value)),
        Some(_) => losses.count("kernel.occupancy that is not finite"),
        None => {}
    }
}

/// `"(64,1,1)"`
pub(super) fn some_extents(line: &mut Object<'_>, key: &str, value: Option<Dim3>) {
    let Some([x, y, z]) = value else { return };
    let out = line.key(key);
    out.extend_from_slice(b"\"(");
    integer(out, x);
    out.push(b',');
    integer(out, y);
    out.push(b',');
    integer(out, z);
    out.extend_from_slice(b")\"");
}

/// `job_start` of today or `init` of old.
pub(super) fn start(out: &mut Vec<u8>, kind: &str, source: &Source<'_>, start: &Start<'_>) {
    let mut line = open(out, kind, source);
    line.some_text("log_path", start.log_path.as_deref());
    line.integer("ts_ns", start.time.0);
    line.some_integer("scope_rate_ms", start.scope_rate_ms);
    line.some_integer("system_rate_ms", start.system_rate_ms);
    state(&mut line, start.host, &start.devices);
    if !start.static_devices.is_empty() {
        line.objects("cuda_static_devices", &start.static_devices, static_device);
    }
    line.close_line();
}

/// `shutdown`
pub(super) fn end(out: &mut Vec<u8>, source: &Source<'_>, time: Timestamp) {
    let mut line = open(out, "shutdown", source);
    line.integer("ts_ns", time.0);
    line.close_line();
}

/// `system_start` or `system_stop`
pub(super) fn sampling(out: &mut Vec<u8>, source: &Source<'_>, sampling: &Sampling<'_>) {
    let kind = if sampling.began { "system_start" } else { "system_stop" };
    let mut line = open(out, kind, source);
    line.some_text("name", sampling.name.as_deref());
    line.integer("ts_ns", sampling.time.0);
    state(&mut line, sampling.host, &sampling.devices);
    line.close_line();
}

/// `host` and `devices`, where there are any.
pub(super) fn state(line: &mut Object<'_>, host: Option<Host>, devices: &[Device<'_>]) {
    if let Some(host) = host {
        let mut entry = Object::open(line.key("host"));
        if let Some(hundredths) = host.cpu_centipercent {
            percent(entry.key("cpu_pct"), hundredths);
        }
        entry.some_integer("ram_used_mib", host.ram_used_mib);
        entry.some_integer("ram_total_mib", host.ram_total_mib);
        entry.close();
    }
    if !devices.is_empty() {
        line.objects("devices", devices, device);
    }
}

/// Hundredths as a decimal, exactly.
fn percent(out: &mut Vec<u8>, hundredths: i64) {
    if hundredths < 0 {
        out.push(b'-');
    }
    integer(out, hundredths.unsigned_abs() / 100);
    out.push(b'.');
    let rest = hundredths.unsigned_abs() % 100;
    if rest < 10 {
        out.push(b'0');
    }
    integer(out, rest);
}
fn device(entry: &mut Object<'_>, device: &Device<'_>) {
    entry.integer("id", device.index);
    entry.some_text("name", device.name.as_deref());
    entry.some_text("uuid", device.uuid.as_deref());
    entry.some_text("vendor", device.vendor.as_deref());
    for (key, value) in [
        ("pci_bus", device.pci_bus),
        ("used_mib", device.used_mib),
        ("free_mib", device.free_mib),
        ("total_mib", device.total_mib),
        ("util_gpu_pct", device.gpu_percent),
        ("util_mem_pct", device.memory_percent),
        ("temp_c", device.temperature_celsius),
        ("power_mw", device.power_milliwatts),
        ("clk_gfx_mhz", device.graphics_mhz),
        ("clk_sm_mhz", device.multiprocessor_mhz),
        ("clk_mem_mhz", device.memory_mhz),
        ("throttle_pwr", device.throttled_by_power),
        ("throttle_therm", device.throttled_by_heat),
        ("pcie_rx_bw_bps", device.pcie_received_bytes_per_second),
        ("pcie_tx_bw_bps", device.pcie_sent_bytes_per_second),
    ] {
        entry.some_integer(key, value);
    }
}

fn static_device(entry: &mut Object<'_>, device: &StaticDevice<'_>) {
    entry.integer("id", device.index);
    entry.some_text("name", device.name.as_deref());
    entry.some_text("uuid", device.uuid.as_deref());
    entry.some_text("vendor", device.vendor.as_deref());
    for (key, value) in [
        ("compute_major", device.compute_major),
        ("compute_minor", device.compute_minor),
        ("l2_cache_size_bytes", device.l2_cache_bytes),
        ("shared_mem_per_block_bytes", device.shared_bytes_per_block),
        ("regs_per_block", device.registers_per_block),
        ("multi_processor_count", device.multiprocessors),
        ("warp_size", device.warp_size),
    ] {
        entry.some_integer(key, value);
    }
}

/// The members of a kernel's details, in the order of the original; `static_shared` has another
/// name in a line of its own than in the wide line of a kernel.
pub(super) fn details(
    line: &mut Object<'_>,
    details: &KernelDetails<'_>,
    static_shared: &str,
    losses: &mut Losses,
) {
    line.some_integer(static_shared, details.static_shared_bytes);
    line.some_integer("local_bytes", details.local_bytes);
    line.some_integer("const_bytes", details.const_bytes);
    some_share(line, "occupancy", details.occupancy, losses);
    some_share(line, "reg_occupancy", details.register_occupancy, losses);
    some_share(line, "smem_occupancy", details.shared_memory_occupancy, losses);
    some_share(line, "warp_occupancy", details.warp_occupancy, losses);
    some_share(line, "block_occupancy", details.block_occupancy, losses);
    line.some_text("limiting_resource", details.limiting_resource.as_deref());
    line.some_integer("max_active_blocks", details.max_active_blocks);
    line.some_integer("local_mem_total_bytes", details.local_total_bytes);
    line.some_integer("local_mem_per_thread_bytes", details.local_bytes_per_thread);
    line.some_integer("cache_config_requested", details.cache_config_requested);
    line.some_integer("cache_config_executed", details.cache_config_executed);
    line.some_integer("shared_mem_executed_bytes", details.shared_executed_bytes);
    line.some_text("user_scope", details.scope_path.as_deref());
    line.some_text("stack_trace", details.stack.as_deref());
}
