//! What is said of devices: by event logs and by the management library, under the same names.

use super::{Kind, Metric};

/// What the attributes of a device say (OpenTelemetry semantic conventions, "hw"). `hw.parent` is
/// that of a MIG instance alone.
const DEVICE: &[&str] = &["hw.id", "hw.type", "hw.name", "hw.parent"];

/// Memory in use.
pub const DEVICE_MEMORY_USAGE: Metric = Metric {
    name: "hw.gpu.memory.usage",
    unit: "By",
    kind: Kind::Gauge,
    description: "Device memory in use, the last reading",
    attributes: DEVICE,
};

/// Memory that there is.
pub const DEVICE_MEMORY_LIMIT: Metric = Metric {
    name: "hw.gpu.memory.limit",
    unit: "By",
    kind: Kind::Gauge,
    description: "Device memory that there is, the last reading",
    attributes: DEVICE,
};

/// Share of the time in which a kernel ran.
pub const DEVICE_UTILIZATION: Metric = Metric {
    name: "hw.gpu.utilization",
    unit: "1",
    kind: Kind::Gauge,
    description: "Share of the time in which a kernel ran on the device, mean of the readings",
    attributes: DEVICE,
};

/// Temperature.
pub const DEVICE_TEMPERATURE: Metric = Metric {
    name: "hw.temperature",
    unit: "Cel",
    kind: Kind::Gauge,
    description: "Temperature of the device, the last reading",
    attributes: DEVICE,
};

/// Power.
pub const DEVICE_POWER: Metric = Metric {
    name: "hw.power",
    unit: "W",
    kind: Kind::Gauge,
    description: "Power of the device, mean of the readings",
    attributes: DEVICE,
};

/// Memory that no process can have.
pub const DEVICE_MEMORY_RESERVED: Metric = Metric {
    name: "warpgauge.device.memory.reserved",
    unit: "By",
    kind: Kind::Gauge,
    description: "Device memory that the driver keeps for itself",
    attributes: DEVICE,
};

/// Share of the time in which memory was read or written. Not `hw.gpu.memory.utilization`, which
/// is the share of the memory that is in use.
pub const DEVICE_MEMORY_ACTIVITY: Metric = Metric {
    name: "warpgauge.device.memory.activity",
    unit: "1",
    kind: Kind::Gauge,
    description: "Share of the time in which device memory was read or written",
    attributes: DEVICE,
};

/// What keeps the clocks low.
pub const DEVICE_THROTTLING: Metric = Metric {
    name: "warpgauge.device.throttling",
    unit: "1",
    kind: Kind::Gauge,
    description: "Whether (1) or not (0) the device's clocks are held low for the reason",
    attributes: &["hw.id", "hw.type", "hw.name", "reason"],
};

/// What a monitored process uses.
pub const PROCESS_DEVICE_MEMORY: Metric = Metric {
    name: "warpgauge.process.device.memory.usage",
    unit: "By",
    kind: Kind::Gauge,
    description: "Device memory that the process uses, as the driver counts",
    attributes: DEVICE,
};

/// What could not be read from the devices, by reason.
pub const DEVICE_FAULTS: Metric = Metric {
    name: "warpgauge.devices.faults",
    unit: "{fault}",
    kind: Kind::MonotonicSum,
    description: "Questions to the management library that had no answer",
    attributes: &["reason"],
};
