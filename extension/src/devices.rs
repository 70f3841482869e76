//! What the devices of this machine say of themselves, through NVIDIA's management library (NVML).
//!
//! A sample is taken on a thread of its own, which the pass waits for no longer than until a deadline
//! ([`sampling`]): a driver call that never returns keeps nobody. What could not be read is counted
//! by [`fault::Fault`], and keeps nothing else from being read.

pub mod fault;
mod nvml;
pub mod records;
pub mod rotated_file;
pub mod sampling;

use crate::skips::Skips;

/// Most devices that are read, each MIG instance counted as one.
pub const MOST_DEVICES: usize = 256;

/// What the devices said at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// Whom they said it through.
    pub library: Library,
    /// The devices in the order of the library, MIG instances behind the device that they are part
    /// of.
    pub devices: Vec<Device>,
    /// What could not be read, by [`fault::Fault::reason`].
    pub faults: Skips,
    /// When the sample was complete, nanoseconds since the epoch.
    pub time_ns: u64,
}

/// What became of the management library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Library {
    /// There is none on this machine, in the loader's words; a machine without an NVIDIA GPU.
    Absent(String),
    /// It is there and could not be used; [`Sample::faults`] say why.
    #[default]
    Unusable,
    /// It answers.
    Loaded(Versions),
}

/// Versions, in the words of the library; empty where it does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versions {
    /// Of the kernel's driver.
    pub driver: String,
    /// Of the library.
    pub nvml: String,
}

/// A GPU, or a MIG instance of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// The library's number; a MIG instance has its GPU's.
    pub index: u32,
    /// What tells it from every other: `GPU-...` or `MIG-...`, or numbers where the library does
    /// not say.
    pub id: String,
    /// The product's name.
    pub name: Option<String>,
    /// Of a MIG instance the id of its GPU.
    pub parent: Option<String>,
    /// Its memory.
    pub memory: Option<Memory>,
    /// Share of the last sample period in which a kernel ran, percent.
    pub gpu_percent: Option<u32>,
    /// Share of it in which memory was read or written, percent.
    pub memory_percent: Option<u32>,
    /// Degrees Celsius.
    pub temperature_celsius: Option<u32>,
    /// Milliwatts.
    pub power_milliwatts: Option<u32>,
    /// What keeps its clocks low.
    pub throttling: Option<Throttling>,
    /// The processes with a context on it, by pid, each once.
    pub processes: Vec<Process>,
}

/// A device's memory in bytes: the total is what is used, reserved and free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// What there is.
    pub total: u64,
    /// What processes have allocated.
    pub used: u64,
    /// What nobody has allocated.
    pub free: u64,
    /// What the driver keeps for itself; no process can have it.
    pub reserved: u64,
}

/// A process with a context on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its pid as the driver counts, which is as the host does.
    pub pid: u32,
    /// Bytes that it uses of the device; `None` where the driver cannot tell.
    pub used: Option<u64>,
}

/// Bits of `nvmlClocksThrottleReasons` (nvml.h): why clocks are lower than they could be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttling(pub u64);

impl Throttling {
    /// Every reason that is told of: its name and its bit.
    pub const REASONS: [(&str, u64); 9] = [
        ("gpu_idle", 0x1),
        ("applications_clocks_setting", 0x2),
        ("sw_power_cap", 0x4),
        ("hw_slowdown", 0x8),
        ("sync_boost", 0x10),
        ("sw_thermal_slowdown", 0x20),
        ("hw_thermal_slowdown", 0x40),
        ("hw_power_brake_slowdown", 0x80),
        ("display_clock_setting", 0x100),
    ];

    /// Each reason, and whether it holds.
    pub fn reasons(self) -> impl Iterator<Item = (&'static str, bool)> {
        Self::REASONS.into_iter().map(move |(name, bit)| (name, self.0 & bit != 0))
    }
}
