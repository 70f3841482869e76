//! The state of the host and of its devices at one moment.

use super::Text;
use super::owned::keep_some;

/// The host at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Host {
    /// Processor use in hundredths of a percent.
    pub cpu_centipercent: Option<i64>,
    /// Memory in use, MiB.
    pub ram_used_mib: Option<i64>,
    /// Memory that there is, MiB.
    pub ram_total_mib: Option<i64>,
}

/// A device at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Device<'a> {
    /// CUDA ordinal, or NVML's index: the producer's count from 0.
    pub index: i64,
    /// The product's name.
    pub name: Option<Text<'a>>,
    /// `GPU-...`
    pub uuid: Option<Text<'a>>,
    /// `NVIDIA`
    pub vendor: Option<Text<'a>>,
    /// Number of the PCI bus.
    pub pci_bus: Option<i64>,
    /// Memory in use, MiB.
    pub used_mib: Option<i64>,
    /// Memory that is free, MiB.
    pub free_mib: Option<i64>,
    /// Memory that there is, MiB.
    pub total_mib: Option<i64>,
    /// Share of the last period in which a kernel ran, percent.
    pub gpu_percent: Option<i64>,
    /// Share of the last period in which memory was read or written, percent.
    pub memory_percent: Option<i64>,
    /// Temperature, degrees Celsius.
    pub temperature_celsius: Option<i64>,
    /// Power, milliwatts.
    pub power_milliwatts: Option<i64>,
    /// Graphics clock, MHz.
    pub graphics_mhz: Option<i64>,
    /// Multiprocessor clock, MHz.
    pub multiprocessor_mhz: Option<i64>,
    /// Memory clock, MHz.
    pub memory_mhz: Option<i64>,
    /// Whether power held the clocks down.
    pub throttled_by_power: Option<i64>,
    /// Whether heat held the clocks down.
    pub throttled_by_heat: Option<i64>,
    /// Bytes a second received over PCIe.
    pub pcie_received_bytes_per_second: Option<i64>,
    /// Bytes a second sent over PCIe.
    pub pcie_sent_bytes_per_second: Option<i64>,
}

/// What does not change about a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StaticDevice<'a> {
    /// CUDA ordinal.
    pub index: i64,
    /// The product's name.
    pub name: Option<Text<'a>>,
    /// `GPU-...`
    pub uuid: Option<Text<'a>>,
    /// `NVIDIA`
    pub vendor: Option<Text<'a>>,
    /// Compute capability before the point.
    pub compute_major: Option<i64>,
    /// Compute capability behind the point.
    pub compute_minor: Option<i64>,
    /// Level 2 cache, bytes.
    pub l2_cache_bytes: Option<i64>,
    /// Shared memory of a block at most, bytes.
    pub shared_bytes_per_block: Option<i64>,
    /// Registers of a block at most.
    pub registers_per_block: Option<i64>,
    /// Multiprocessors.
    pub multiprocessors: Option<i64>,
    /// Threads of a warp.
    pub warp_size: Option<i64>,
}

impl Device<'_> {
    /// The same state with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> Device<'static> {
        let (name, uuid) = (keep_some(self.name), keep_some(self.uuid));
        Device { name, uuid, vendor: keep_some(self.vendor), ..self }
    }
}

impl StaticDevice<'_> {
    /// The same device with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> StaticDevice<'static> {
        let (name, uuid) = (keep_some(self.name), keep_some(self.uuid));
        StaticDevice { name, uuid, vendor: keep_some(self.vendor), ..self }
    }
}
