//! The catalogue: every metric that is exported, with its name, unit, kind and meaning.
//!
//! `docs/metrics.md` holds the same table; a test compares the two.

mod devices;
mod memory;

use warpgauge_wire::Function;

pub use self::devices::*;
pub use self::memory::{
    MEMORY_ACTIVE, MEMORY_ALLOCATED, MEMORY_ALLOCATED_MAX, MEMORY_EVENTS, MEMORY_FRAGMENTATION,
    MEMORY_FREE, MEMORY_GAP, MEMORY_INACTIVE, MEMORY_RESERVED, MEMORY_RESERVED_MAX, OUT_OF_MEMORY,
};

/// How a metric's points are to be read (OTLP `Metric.data`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A sum that only grows.
    MonotonicSum,
    /// The current value.
    Gauge,
    /// A distribution.
    Histogram,
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name.
    pub name: &'static str,
    /// Unit, in UCUM.
    pub unit: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Meaning, as exported in the metric's description.
    pub description: &'static str,
    /// The attributes that its points carry.
    pub attributes: &'static [&'static str],
}

/// Executed warp-level instructions (id 0).
pub const INSTRUCTIONS: Metric = Metric {
    name: "gpu.kernel.instructions",
    unit: "{instruction}",
    kind: Kind::MonotonicSum,
    description: "Warp-level instructions executed by kernels",
    attributes: &[],
};

/// Launches (id 4, or the lines of id 1 of older modules).
pub const LAUNCHES: Metric = Metric {
    name: "gpu.kernel.launches",
    unit: "{launch}",
    kind: Kind::MonotonicSum,
    description: "Kernel launches seen",
    attributes: &[],
};

/// Theoretical occupancy (id 1).
pub const OCCUPANCY: Metric = Metric {
    name: "gpu.kernel.occupancy",
    unit: "1",
    kind: Kind::Gauge,
    description: "Theoretical occupancy of kernel launches, mean weighted by launches",
    attributes: &[],
};

/// Global memory coalescence (id 2).
pub const COALESCENCE: Metric = Metric {
    name: "gpu.kernel.memory.global.coalescence",
    unit: "1",
    kind: Kind::Gauge,
    description: "Global memory instructions per 128-byte cache line touched, mean weighted by launches",
    attributes: &[],
};

/// Branch divergence (id 3).
pub const DIVERGENCE: Metric = Metric {
    name: "gpu.kernel.branch.divergence",
    unit: "1",
    kind: Kind::Gauge,
    description: "Share of executed branches whose threads diverged, mean weighted by launches",
    attributes: &[],
};

/// How [`OCCUPANCY`] is distributed.
pub const OCCUPANCY_DISTRIBUTION: Metric = Metric {
    name: "gpu.kernel.occupancy.distribution",
    unit: "1",
    kind: Kind::Histogram,
    description: "Distribution of the theoretical occupancy over launches",
    attributes: &[],
};

/// How [`COALESCENCE`] is distributed.
pub const COALESCENCE_DISTRIBUTION: Metric = Metric {
    name: "gpu.kernel.memory.global.coalescence.distribution",
    unit: "1",
    kind: Kind::Histogram,
    description: "Distribution of the global memory coalescence over launches",
    attributes: &[],
};

/// How [`DIVERGENCE`] is distributed.
pub const DIVERGENCE_DISTRIBUTION: Metric = Metric {
    name: "gpu.kernel.branch.divergence.distribution",
    unit: "1",
    kind: Kind::Histogram,
    description: "Distribution of the branch divergence over launches",
    attributes: &[],
};

/// How long kernels ran, as event logs tell it.
pub const KERNEL_DURATION: Metric = Metric {
    name: "gpu.kernel.duration",
    unit: "s",
    kind: Kind::Histogram,
    description: "Duration of the kernels that event logs tell of",
    attributes: &["gpu.kernel.name"],
};

/// How many kernels ran, as event logs tell it. Not [`LAUNCHES`], which the library counts: of a
/// process that has both, a sum would count twice.
pub const KERNEL_EXECUTIONS: Metric = Metric {
    name: "gpu.kernel.executions",
    unit: "{execution}",
    kind: Kind::MonotonicSum,
    description: "Kernel executions that event logs tell of",
    attributes: &["gpu.kernel.name"],
};

/// How long scopes were open.
pub const SCOPE_DURATION: Metric = Metric {
    name: "gpu.scope.duration",
    unit: "s",
    kind: Kind::Histogram,
    description: "Duration of the scopes that event logs tell of",
    attributes: &["gpu.scope.name"],
};

/// How many copies there were.
pub const COPIES: Metric = Metric {
    name: "gpu.memory.copies",
    unit: "{copy}",
    kind: Kind::MonotonicSum,
    description: "Memory copies that event logs tell of",
    attributes: &["gpu.memory.copy.kind"],
};

/// What they copied.
pub const COPIED: Metric = Metric {
    name: "gpu.memory.copied",
    unit: "By",
    kind: Kind::MonotonicSum,
    description: "Bytes of the memory copies that event logs tell of",
    attributes: &["gpu.memory.copy.kind"],
};

/// How long they took.
pub const COPY_DURATION: Metric = Metric {
    name: "gpu.memory.copy.duration",
    unit: "s",
    kind: Kind::Histogram,
    description: "Durations of the memory copies that event logs tell of",
    attributes: &["gpu.memory.copy.kind"],
};

/// Lines of event logs that were read.
pub const EVENT_LINES: Metric = Metric {
    name: "warpgauge.events.lines",
    unit: "{line}",
    kind: Kind::MonotonicSum,
    description: "Lines of event logs read",
    attributes: &[],
};

/// What of the event logs was not taken, by reason.
pub const EVENTS_SKIPPED: Metric = Metric {
    name: "warpgauge.events.skipped",
    unit: "{item}",
    kind: Kind::MonotonicSum,
    description: "Files, lines, events and unknown fields of event logs that were not taken",
    attributes: &["reason"],
};

/// What of the event logs was taken but looks odd.
pub const EVENTS_SUSPECT: Metric = Metric {
    name: "warpgauge.events.suspect",
    unit: "{finding}",
    kind: Kind::MonotonicSum,
    description: "Findings about lines of event logs that were taken all the same, such as a duration that is not end less start",
    attributes: &[],
};

/// Measurements that were consumed and attributed.
pub const MEASUREMENTS_READ: Metric = Metric {
    name: "warpgauge.measurements.read",
    unit: "{measurement}",
    kind: Kind::MonotonicSum,
    description: "Measurements read and attributed to a process",
    attributes: &[],
};

/// What was refused, by reason; a refused file counts as one.
pub const MEASUREMENTS_REFUSED: Metric = Metric {
    name: "warpgauge.measurements.refused",
    unit: "{measurement}",
    kind: Kind::MonotonicSum,
    description: "Measurement lines and files refused",
    attributes: &["reason"],
};

/// Measurements of processes that nobody listed.
pub const MEASUREMENTS_UNATTRIBUTED: Metric = Metric {
    name: "warpgauge.measurements.unattributed",
    unit: "{measurement}",
    kind: Kind::MonotonicSum,
    description: "Measurements of processes that were never listed; their files lie in the quarantine",
    attributes: &["reason"],
};

/// Health files that killed processes left behind.
pub const HEALTH_FILES_REMOVED: Metric = Metric {
    name: "warpgauge.health_files.removed",
    unit: "{file}",
    kind: Kind::MonotonicSum,
    description: "Health files of killed processes removed from the measurements folder",
    attributes: &[],
};

/// Points that left the spool unsent, by reason.
pub const DROPPED_POINTS: Metric = Metric {
    name: "warpgauge.export.dropped_points",
    unit: "{datapoint}",
    kind: Kind::MonotonicSum,
    description: "Data points dropped from the full or over-age spool before they could be sent",
    attributes: &["reason"],
};

/// Points that the receiver refused, by reason.
pub const REJECTED_POINTS: Metric = Metric {
    name: "warpgauge.export.rejected_points",
    unit: "{datapoint}",
    kind: Kind::MonotonicSum,
    description: "Data points refused by the receiver, in part (partial) or with their whole request (refused)",
    attributes: &["reason"],
};

/// Lines of event logs that a backend has taken.
pub const FORWARDED_LINES: Metric = Metric {
    name: "warpgauge.forward.lines",
    unit: "{line}",
    kind: Kind::MonotonicSum,
    description: "Lines of event logs that the backend has taken",
    attributes: &[],
};

/// What bringing them there took.
pub const FORWARDED_BYTES: Metric = Metric {
    name: "warpgauge.forward.size",
    unit: "By",
    kind: Kind::MonotonicSum,
    description: "Request bodies, as they travelled, in which the backend has taken lines of event logs",
    attributes: &[],
};

/// Lines that were set aside, by reason.
pub const FORWARD_REFUSED: Metric = Metric {
    name: "warpgauge.forward.refused",
    unit: "{line}",
    kind: Kind::MonotonicSum,
    description: "Lines of event logs that lie among the dead letters",
    attributes: &["reason"],
};

/// Requests that were sent once more.
pub const FORWARD_RETRIES: Metric = Metric {
    name: "warpgauge.forward.retries",
    unit: "{request}",
    kind: Kind::MonotonicSum,
    description: "Requests with lines of event logs that were sent once more",
    attributes: &[],
};

/// Logs that are not read, by reason.
pub const FORWARD_UNREAD: Metric = Metric {
    name: "warpgauge.forward.unread",
    unit: "{file}",
    kind: Kind::MonotonicSum,
    description: "Event logs that are not read, each counted when it is first met",
    attributes: &["reason"],
};

/// What waits for its acknowledgement.
pub const SPOOL_SIZE: Metric = Metric {
    name: "warpgauge.spool.size",
    unit: "By",
    kind: Kind::Gauge,
    description: "Requests waiting in the spool when the pass began",
    attributes: &[],
};

/// Age of the oldest that waits.
pub const SPOOL_AGE: Metric = Metric {
    name: "warpgauge.spool.age",
    unit: "s",
    kind: Kind::Gauge,
    description: "Age of the oldest request in the spool when the pass began",
    attributes: &[],
};

/// How long the previous pass took: this one is not over when it is sent.
pub const RUN_DURATION: Metric = Metric {
    name: "warpgauge.run.duration",
    unit: "s",
    kind: Kind::Gauge,
    description: "Duration of the previous pass",
    attributes: &[],
};

/// When a pass last delivered everything.
pub const LAST_SUCCESS: Metric = Metric {
    name: "warpgauge.last_success.time",
    unit: "s",
    kind: Kind::Gauge,
    description: "Unix time at which a pass last delivered everything it had",
    attributes: &[],
};

/// How many processes are listed.
pub const PROCESSES: Metric = Metric {
    name: "warpgauge.processes.listed",
    unit: "{process}",
    kind: Kind::Gauge,
    description: "Processes in the runtime configuration",
    attributes: &[],
};

/// Every metric, in the order of the documentation.
pub const CATALOGUE: [Metric; 54] = [
    INSTRUCTIONS,
    LAUNCHES,
    OCCUPANCY,
    COALESCENCE,
    DIVERGENCE,
    OCCUPANCY_DISTRIBUTION,
    COALESCENCE_DISTRIBUTION,
    DIVERGENCE_DISTRIBUTION,
    KERNEL_EXECUTIONS,
    KERNEL_DURATION,
    SCOPE_DURATION,
    COPIES,
    COPIED,
    COPY_DURATION,
    DEVICE_MEMORY_USAGE,
    DEVICE_MEMORY_LIMIT,
    DEVICE_UTILIZATION,
    DEVICE_TEMPERATURE,
    DEVICE_POWER,
    MEMORY_ALLOCATED,
    MEMORY_ALLOCATED_MAX,
    MEMORY_RESERVED,
    MEMORY_RESERVED_MAX,
    MEMORY_ACTIVE,
    MEMORY_INACTIVE,
    MEMORY_FREE,
    MEMORY_GAP,
    MEMORY_FRAGMENTATION,
    MEMORY_EVENTS,
    OUT_OF_MEMORY,
    DEVICE_MEMORY_RESERVED,
    DEVICE_MEMORY_ACTIVITY,
    DEVICE_THROTTLING,
    PROCESS_DEVICE_MEMORY,
    DEVICE_FAULTS,
    EVENT_LINES,
    EVENTS_SKIPPED,
    EVENTS_SUSPECT,
    MEASUREMENTS_READ,
    MEASUREMENTS_REFUSED,
    MEASUREMENTS_UNATTRIBUTED,
    DROPPED_POINTS,
    REJECTED_POINTS,
    HEALTH_FILES_REMOVED,
    FORWARDED_LINES,
    FORWARDED_BYTES,
    FORWARD_REFUSED,
    FORWARD_RETRIES,
    FORWARD_UNREAD,
    SPOOL_SIZE,
    SPOOL_AGE,
    RUN_DURATION,
    LAST_SUCCESS,
    PROCESSES,
];

/// The gauge and the distribution of a function whose lines are percentages.
#[must_use]
pub fn of_percentage(function: Function) -> Option<(Metric, Metric)> {
    match function {
        Function::Instructions => None,
        Function::Occupancy => Some((OCCUPANCY, OCCUPANCY_DISTRIBUTION)),
        Function::Coalescence => Some((COALESCENCE, COALESCENCE_DISTRIBUTION)),
        Function::Divergence => Some((DIVERGENCE, DIVERGENCE_DISTRIBUTION)),
    }
}

/// The table of `docs/metrics.md`.
#[must_use]
pub fn table() -> String {
    let mut out =
        String::from("| name | OTLP data | unit | attributes | meaning |\n|---|---|---|---|---|\n");
    for metric in CATALOGUE {
        let kind = match metric.kind {
            Kind::MonotonicSum => "monotonic sum",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let attributes: Vec<_> = metric.attributes.iter().map(|name| format!("`{name}`")).collect();
        out.push_str(&format!(
            "| `{}` | {kind} | `{}` | {} | {} |\n",
            metric.name,
            metric.unit,
            attributes.join(", "),
            metric.description
        ));
    }
    out
}
