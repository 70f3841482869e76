//! The keys of the lines that hold one event each.

use crate::event::Text;
use crate::gpumon::line::{DeviceEntry, HostEntry};
use crate::json::{self, Kind, Reader};
use crate::record::{Extents, Field, Whole, record};

/// A whole number, which older producers also write as a string, in decimal or as `0x1a0`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Loose(pub(super) i64);

impl<'a> Field<'a> for Loose {
    const EXPECTED: &'static str = "an integer of 64 bits";

    fn read(reader: &mut Reader<'a>) -> json::Result<Option<Self>> {
        if reader.peek()? != Kind::Text {
            return Ok(Whole::read(reader)?.and_then(Whole::fits).map(Self));
        }
        let text = reader.text()?;
        let number = match text.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        Ok(number.ok().map(Self))
    }
}

record! {
    /// A kernel, a copy, a profile sample, or the details of a kernel: the wide ones.
    struct DeviceLine<'a> {
        kind: Text<'a> = "type",
        version: i64 = "version",
        pid: i64 = "pid",
        app: Text<'a> = "app",
        session: Text<'a> = "session_id",
        name: Text<'a> = "name",
        platform: Text<'a> = "platform",
        has_details: bool = "has_details",
        device: Loose = "device_id",
        stream: Loose = "stream_id",
        start: i64 = "start_ns",
        end: i64 = "end_ns",
        call_start: i64 = "api_start_ns",
        call_end: i64 = "api_exit_ns",
        grid: Extents = "grid",
        block: Extents = "block",
        dynamic_shared: i64 = "dyn_shared_bytes",
        registers: i64 = "num_regs",
        static_shared: i64 = "static_shared_bytes" | "static_shared",
        local: i64 = "local_bytes",
        constant: i64 = "const_bytes",
        occupancy: f64 = "occupancy",
        register_occupancy: f64 = "reg_occupancy",
        shared_memory_occupancy: f64 = "smem_occupancy",
        warp_occupancy: f64 = "warp_occupancy",
        block_occupancy: f64 = "block_occupancy",
        limiting_resource: Text<'a> = "limiting_resource",
        max_active_blocks: i64 = "max_active_blocks",
        correlation: i64 = "corr_id",
        local_total: i64 = "local_mem_total_bytes",
        local_per_thread: i64 = "local_mem_per_thread_bytes",
        cache_requested: i64 = "cache_config_requested",
        cache_executed: i64 = "cache_config_executed",
        shared_executed: i64 = "shared_mem_executed_bytes",
        scope_path: Text<'a> = "user_scope",
        stack: Text<'a> = "stack_trace",
        /// Of copies, from here on.
        bytes: i64 = "bytes",
        copy_kind: Text<'a> = "copy_kind",
        source: Text<'a> = "src_kind",
        destination: Text<'a> = "dst_kind",
        scope_depth: i64 = "scope_depth",
        /// Of profile samples, from here on.
        time: i64 = "ts_ns",
        sample_kind: Text<'a> = "sample_kind",
        sample_count: i64 = "sample_count",
        stall_reason: i64 = "stall_reason",
        stall_name: Text<'a> = "reason_name",
        pc_offset: Loose = "pc_offset",
        source_file: Text<'a> = "source_file",
        function: Text<'a> = "function_name",
        source_line: i64 = "source_line",
        metric: Text<'a> = "metric_name",
        metric_value: i64 = "metric_value",
        scope_name: Text<'a> = "scope_name",
    }
}

record! {
    /// A session's beginning or end, a scope's, or a sample of the system: the narrow ones.
    struct SessionLine<'a> {
        kind: Text<'a> = "type",
        version: i64 = "version",
        pid: i64 = "pid",
        app: Text<'a> = "app",
        session: Text<'a> = "session_id",
        log_path: Text<'a> = "log_path" | "logPath",
        time: i64 = "ts_ns",
        name: Text<'a> = "name",
        tag: Text<'a> = "tag",
        scope_path: Text<'a> = "user_scope",
        depth: i64 = "scope_depth",
        instance: i64 = "scope_instance_id",
        scope_rate_ms: i64 = "scope_rate_ms",
        system_rate_ms: i64 = "system_rate_ms",
        host: HostEntry<'a> = "host",
        devices: Vec<DeviceEntry<'a>> = "devices",
        static_devices: Vec<StaticEntry<'a>> = "cuda_static_devices",
    }
}

record! {
    /// An entry of `cuda_static_devices`.
    struct StaticEntry<'a> {
        index: i64 = "id",
        name: Text<'a> = "name",
        uuid: Text<'a> = "uuid",
        vendor: Text<'a> = "vendor",
        compute_major: i64 = "compute_major",
        compute_minor: i64 = "compute_minor",
        l2_cache: i64 = "l2_cache_size_bytes",
        shared: i64 = "shared_mem_per_block_bytes",
        registers: i64 = "regs_per_block",
        multiprocessors: i64 = "multi_processor_count",
        warp_size: i64 = "warp_size",
    }
}
