//! All keys that a line of a gpumon log may have, whatever its type.

use crate::event::Text;
use crate::json::Number;
use crate::record::{Extents, Slot, Unknown, Whole, record};

record! {
    /// One line.
    struct GpumonLine<'a> {
        kind: Text<'a> = "type",
        pid: Whole<'a> = "pid",
        app: Text<'a> = "app",
        name: Text<'a> = "name",
        tag: Text<'a> = "tag",
        time: Whole<'a> = "ts_ns",
        start: Whole<'a> = "ts_start_ns",
        end: Whole<'a> = "ts_end_ns",
        duration: Whole<'a> = "duration_ns",
        log_path: Text<'a> = "logPath",
        memory: Vec<MemoryEntry<'a>> = "memory",
        kernel: Text<'a> = "kernel",
        grid: Extents = "grid",
        block: Extents = "block",
        shared_bytes: Whole<'a> = "shared_mem_bytes",
        error: Text<'a> = "cuda_error",
        /// Of later producers, from here on.
        dynamic_shared_bytes: Whole<'a> = "dyn_shared_bytes",
        registers: Whole<'a> = "num_regs",
        devices: Vec<DeviceEntry<'a>> = "devices",
        host: HostEntry<'a> = "host",
        scope_rate_ms: Whole<'a> = "scope_rate_ms",
        system_rate_ms: Whole<'a> = "system_rate_ms",
    }
}

record! {
    /// An entry of `memory`.
    struct MemoryEntry<'a> {
        device: Whole<'a> = "device",
        used: Whole<'a> = "used_mib",
        free: Whole<'a> = "free_mib",
        total: Whole<'a> = "total_mib",
    }
}

record! {
    /// An entry of `devices`. GPU Flight's one-line events write the same with a few other names.
    struct DeviceEntry<'a> {
        index: i64 = "id" | "device",
        name: Text<'a> = "name",
        uuid: Text<'a> = "uuid",
        vendor: Text<'a> = "vendor",
        pci_bus: i64 = "pci_bus",
        used: i64 = "used_mib",
        free: i64 = "free_mib",
        total: i64 = "total_mib",
        gpu_percent: i64 = "util_gpu" | "util_gpu_pct",
        memory_percent: i64 = "util_mem" | "util_mem_pct",
        temperature: i64 = "temp_c",
        power: i64 = "power_mw",
        graphics: i64 = "clk_gfx" | "clk_gfx_mhz",
        multiprocessor: i64 = "clk_sm" | "clk_sm_mhz",
        memory: i64 = "clk_mem" | "clk_mem_mhz",
        throttled_by_power: i64 = "throttle_pwr",
        throttled_by_heat: i64 = "throttle_therm",
        received: i64 = "pcie_rx_bw_bps",
        sent: i64 = "pcie_tx_bw_bps",
    }
}

record! {
    /// `host`.
    struct HostEntry<'a> {
        cpu_percent: Number<'a> = "cpu_pct",
        ram_used: i64 = "ram_used_mib",
        ram_total: i64 = "ram_total_mib",
    }
}

impl GpumonLine<'_> {
    /// A line that was read by the schema alone means nothing by what the schema does not name: that
    /// becomes unknown.
    pub(super) fn forget_what_the_schema_does_not_know(&mut self) {
        fn forget<'a, T>(slot: &mut Slot<'a, T>, key: &'static str, unknown: &mut Unknown<'a>) {
            if std::mem::take(slot).is_there() {
                unknown.push(key.into());
            }
        }
        let unknown = &mut self.unknown;
        if self.kind.get().is_some_and(|kind| kind == "init") {
            forget(&mut self.memory, "memory", unknown);
        }
        forget(&mut self.dynamic_shared_bytes, "dyn_shared_bytes", unknown);
        forget(&mut self.registers, "num_regs", unknown);
        forget(&mut self.devices, "devices", unknown);
        forget(&mut self.host, "host", unknown);
        forget(&mut self.scope_rate_ms, "scope_rate_ms", unknown);
        forget(&mut self.system_rate_ms, "system_rate_ms", unknown);
    }
}
