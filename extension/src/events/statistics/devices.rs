//! The most memory that was in use on each device.

use std::collections::BTreeMap;

use warpgauge_formats::event::Device;
use warpgauge_formats::time::Timestamp;

/// Most devices that are kept apart.
const MOST: usize = 1_024;

/// Devices by index.
#[derive(Debug, Default)]
pub struct Devices {
    peaks: BTreeMap<i64, Peak>,
    /// Samples of devices beyond the first 1,024.
    pub left_out: u64,
}

/// The most that was seen of one device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peak {
    /// The product's name, where a line told.
    pub name: Option<String>,
    /// Samples that tell its memory.
    pub samples: u64,
    /// The most memory in use, MiB, and when.
    pub used_mib: Option<(i64, Timestamp)>,
    /// Memory that there is, MiB.
    pub total_mib: Option<i64>,
    /// The highest use, percent.
    pub gpu_percent: Option<i64>,
    /// The most power, milliwatts.
    pub power_milliwatts: Option<i64>,
}

impl Devices {
    pub(super) fn note(&mut self, time: Timestamp, device: &Device<'_>) {
        if self.peaks.len() >= MOST && !self.peaks.contains_key(&device.index) {
            self.left_out += 1;
            return;
        }
        let peak = self.peaks.entry(device.index).or_default();
        if peak.name.is_none() {
            peak.name = device.name.as_deref().map(str::to_owned);
        }
        peak.samples += u64::from(device.used_mib.is_some());
        // The first instant of the highest use.
        if let Some(used) =
            device.used_mib.filter(|used| peak.used_mib.is_none_or(|(most, _)| *used > most))
        {
            peak.used_mib = Some((used, time));
        }
        peak.total_mib = peak.total_mib.max(device.total_mib);
        peak.gpu_percent = peak.gpu_percent.max(device.gpu_percent);
        peak.power_milliwatts = peak.power_milliwatts.max(device.power_milliwatts);
    }

    /// All devices, by index.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &Peak)> {
        self.peaks.iter().map(|(index, peak)| (*index, peak))
    }
}
