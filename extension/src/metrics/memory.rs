//! What telemetry says of memory, beside what OpenTelemetry has names for
//! ([`DEVICE_MEMORY_USAGE`](super::DEVICE_MEMORY_USAGE), [`DEVICE_MEMORY_LIMIT`](super::DEVICE_MEMORY_LIMIT)).

use super::{Kind, Metric};

/// What the attributes of a device's memory say in telemetry; none of what is no device's.
const MEMORY: &[&str] = &["hw.id", "hw.type"];

/// What tensors occupy.
pub const MEMORY_ALLOCATED: Metric = Metric {
    name: "warpgauge.memory.allocated",
    unit: "By",
    kind: Kind::Gauge,
    description: "Bytes that tensors occupy, the last sample of telemetry",
    attributes: MEMORY,
};

/// The most that they occupied.
pub const MEMORY_ALLOCATED_MAX: Metric = Metric {
    name: "warpgauge.memory.allocated.max",
    unit: "By",
    kind: Kind::Gauge,
    description: "Bytes that tensors occupied at most between two passes, as telemetry tells",
    attributes: MEMORY,
};

/// What the allocator holds.
pub const MEMORY_RESERVED: Metric = Metric {
    name: "warpgauge.memory.reserved",
    unit: "By",
    kind: Kind::Gauge,
    description: "Bytes that the allocator holds of the device, the last sample of telemetry",
    attributes: MEMORY,
};

/// The most that it held.
pub const MEMORY_RESERVED_MAX: Metric = Metric {
    name: "warpgauge.memory.reserved.max",
    unit: "By",
    kind: Kind::Gauge,
    description: "Bytes that the allocator held at most between two passes, as telemetry tells",
    attributes: MEMORY,
};

/// Blocks in use.
pub const MEMORY_ACTIVE: Metric = Metric {
    name: "warpgauge.memory.active",
    unit: "By",
    kind: Kind::Gauge,
    description: "Bytes in blocks of the allocator that are in use, the last sample of telemetry",
    attributes: MEMORY,
};

/// Blocks that are not.
pub const MEMORY_INACTIVE: Metric = Metric {
    name: "warpgauge.memory.inactive",
    unit: "By",
    kind: Kind::Gauge,
    description: "Bytes in blocks of the allocator that are not in use, the last sample of telemetry",
    attributes: MEMORY,
};

/// What nobody uses.
pub const MEMORY_FREE: Metric = Metric {
    name: "warpgauge.memory.free",
    unit: "By",
    kind: Kind::Gauge,
    description: "Bytes of the device that nobody uses, the last sample of telemetry",
    attributes: MEMORY,
};

/// What is used beside the allocator (`TelemetryEvent::gap_bytes`).
pub const MEMORY_GAP: Metric = Metric {
    name: "warpgauge.memory.gap",
    unit: "By",
    kind: Kind::Gauge,
    description: "Bytes of the device that are used beyond what the allocator holds; 0 by construction where the collector has no figure of the device",
    attributes: MEMORY,
};

/// What of the allocator's memory is not allocated (`TelemetryEvent::fragmentation`).
pub const MEMORY_FRAGMENTATION: Metric = Metric {
    name: "warpgauge.memory.fragmentation",
    unit: "1",
    kind: Kind::Gauge,
    description: "Share of the bytes that the allocator holds in which no tensor is",
    attributes: MEMORY,
};

/// What happened to memory.
pub const MEMORY_EVENTS: Metric = Metric {
    name: "warpgauge.memory.events",
    unit: "{event}",
    kind: Kind::MonotonicSum,
    description: "Events of telemetry, samples among them",
    attributes: &["hw.id", "hw.type", "warpgauge.event.type"],
};

/// How often it ran out.
pub const OUT_OF_MEMORY: Metric = Metric {
    name: "warpgauge.memory.out_of_memory",
    unit: "{event}",
    kind: Kind::MonotonicSum,
    description: "Events of telemetry that tell that memory ran out",
    attributes: MEMORY,
};
