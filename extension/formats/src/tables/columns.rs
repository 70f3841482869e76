//! The columns of each table, and how each is encoded.

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Whole numbers that rise or vary: delta encoded.
    Number,
    /// Whole numbers of which there are few: dictionary encoded.
    Code,
    /// Shares and the like: dictionary encoded, because they repeat with their kernel.
    Share,
    /// Texts: dictionary encoded.
    Text,
}

/// One column: its name and what it holds.
pub(super) type Column = (&'static str, Kind);

use Kind::{Code, Number, Share, Text};

/// Whose event a row is; the first columns of every table but those of devices.
pub(super) const SOURCE: [Column; 3] = [("session_id", Text), ("pid", Code), ("app", Text)];

/// The host's state, where an event tells it.
pub(super) const HOST: [Column; 3] =
    [("host_cpu_pct_x100", Number), ("host_ram_used_mib", Number), ("host_ram_total_mib", Code)];

/// What all launches of a kernel in the same way have in common.
pub(super) const SHAPE: [Column; 23] = [
    ("dyn_shared_bytes", Code),
    ("num_regs", Code),
    ("grid_x", Code),
    ("grid_y", Code),
    ("grid_z", Code),
    ("block_x", Code),
    ("block_y", Code),
    ("block_z", Code),
    ("static_shared_bytes", Code),
    ("local_bytes", Code),
    ("const_bytes", Code),
    ("occupancy", Share),
    ("reg_occupancy", Share),
    ("smem_occupancy", Share),
    ("warp_occupancy", Share),
    ("block_occupancy", Share),
    ("limiting_resource", Text),
    ("max_active_blocks", Code),
    ("local_mem_total_bytes", Code),
    ("local_mem_per_thread_bytes", Code),
    ("cache_config_requested", Code),
    ("cache_config_executed", Code),
    ("shared_mem_executed_bytes", Code),
];

/// Where a kernel was launched.
pub(super) const PLACE: [Column; 2] = [("user_scope", Text), ("stack_trace", Text)];

/// Kernels. The calls are told by how long before the kernel's start they began and returned.
/// `shape` is a row of the table of shapes, counted from 0.
pub(super) const KERNEL: [Column; 15] = [
    ("start_ns", Number),
    ("duration_ns", Number),
    ("name", Text),
    ("device_id", Code),
    ("stream_id", Code),
    ("corr_id", Number),
    ("shape", Code),
    ("has_details", Code),
    ("api_start_before_ns", Number),
    ("api_exit_before_ns", Number),
    ("external_kind", Code),
    ("external_id", Number),
    ("platform", Text),
    ("cuda_error", Text),
    ("tag", Text),
];

pub(super) const COPY: [Column; 15] = [
    ("start_ns", Number),
    ("duration_ns", Number),
    ("bytes", Code),
    ("copy_kind", Code),
    ("stream_id", Code),
    ("corr_id", Number),
    ("device_id", Code),
    ("api_start_before_ns", Number),
    ("api_exit_before_ns", Number),
    ("platform", Text),
    ("name", Text),
    ("src_kind", Text),
    ("dst_kind", Text),
    ("user_scope", Text),
    ("stack_trace", Text),
];

/// The last column of a copy.
pub(super) const COPY_DEPTH: [Column; 1] = [("scope_depth", Code)];

pub(super) const SCOPE: [Column; 12] = [
    ("time_ns", Number),
    ("phase", Text),
    ("scope_instance_id", Number),
    ("name", Text),
    ("depth", Code),
    ("began_ns", Number),
    ("duration_ns", Number),
    ("tag", Text),
    ("user_scope", Text),
    ("repeat", Code),
    ("warmup", Code),
    ("original_start_ns", Number),
];

pub(super) const PROFILE: [Column; 14] = [
    ("time_ns", Number),
    ("corr_id", Number),
    ("device_id", Code),
    ("function", Text),
    ("pc_offset", Code),
    ("metric", Text),
    ("value", Code),
    ("stall_reason", Code),
    ("stall_name", Text),
    ("sample_kind", Code),
    ("scope", Text),
    ("scope_ended", Code),
    ("source_file", Text),
    ("source_line", Code),
];

pub(super) const SYSTEM: [Column; 2] = [("time_ns", Number), ("name", Text)];

/// Beginnings and ends: of sessions, and of the sampling.
pub(super) const SESSION: [Column; 6] = [
    ("time_ns", Number),
    ("phase", Text),
    ("name", Text),
    ("log_path", Text),
    ("scope_rate_ms", Code),
    ("system_rate_ms", Code),
];

pub(super) const DEVICE: [Column; 20] = [
    ("event", Number),
    ("device_id", Code),
    ("name", Text),
    ("uuid", Text),
    ("vendor", Text),
    ("pci_bus", Code),
    ("used_mib", Number),
    ("free_mib", Number),
    ("total_mib", Code),
    ("gpu_util", Code),
    ("mem_util", Code),
    ("temp_c", Code),
    ("power_mw", Number),
    ("clock_graphics_mhz", Code),
    ("clock_sm_mhz", Code),
    ("clock_memory_mhz", Code),
    ("throttle_power", Code),
    ("throttle_thermal", Code),
    ("pcie_rx_bytes_per_second", Code),
    ("pcie_tx_bytes_per_second", Code),
];

pub(super) const STATIC_DEVICE: [Column; 12] = [
    ("event", Number),
    ("device_id", Code),
    ("name", Text),
    ("uuid", Text),
    ("vendor", Text),
    ("compute_major", Code),
    ("compute_minor", Code),
    ("l2_cache_bytes", Code),
    ("shared_bytes_per_block", Code),
    ("registers_per_block", Code),
    ("multiprocessors", Code),
    ("warp_size", Code),
];

/// Events of TelemetryEvent v2 under the names of its schema; the metadata is JSON text.
pub(super) const TELEMETRY: [Column; 21] = [
    ("timestamp_ns", Number),
    ("event_type", Text),
    ("collector", Text),
    ("sampling_interval_ms", Code),
    ("pid", Code),
    ("host", Text),
    ("job_id", Text),
    ("rank", Code),
    ("local_rank", Code),
    ("world_size", Code),
    ("device_id", Code),
    ("allocator_allocated_bytes", Number),
    ("allocator_reserved_bytes", Number),
    ("allocator_active_bytes", Number),
    ("allocator_inactive_bytes", Number),
    ("allocator_change_bytes", Number),
    ("device_used_bytes", Number),
    ("device_free_bytes", Number),
    ("device_total_bytes", Code),
    ("context", Text),
    ("metadata", Text),
];
