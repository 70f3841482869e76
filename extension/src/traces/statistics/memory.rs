//! The most memory that was in use on each device, as an allocator told it.

use std::collections::BTreeMap;

use warpgauge_formats::time::Timestamp;
use warpgauge_formats::trace::{MemoryEvent, MemoryOperation};

/// Most devices that are kept apart.
const MOST: usize = 1_024;

/// Memory by kind and ordinal of the device.
#[derive(Debug, Default)]
pub struct Memory {
    devices: BTreeMap<(Option<i64>, Option<i64>), MemoryTotals>,
    /// Events of devices beyond the first 1,024.
    pub left_out: u64,
}

/// What was allocated and freed on one device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryTotals {
    /// How many allocations.
    pub allocations: u64,
    /// How many frees.
    pub frees: u64,
    /// Bytes of all allocations.
    pub allocated: u128,
    /// Bytes of all frees.
    pub freed: u128,
    /// The most bytes that were allocated at once, and when first.
    pub peak_allocated: Option<(i64, Timestamp)>,
    /// The most bytes that the allocator held at once, and when first.
    pub peak_reserved: Option<(i64, Timestamp)>,
}

impl Memory {
    pub(super) fn note(&mut self, event: &MemoryEvent<'_>) {
        let device = (event.device_type, event.device);
        if self.devices.len() >= MOST && !self.devices.contains_key(&device) {
            self.left_out += 1;
            return;
        }
        let totals = self.devices.entry(device).or_default();
        let (count, bytes) = match event.operation {
            MemoryOperation::Allocation => (&mut totals.allocations, &mut totals.allocated),
            MemoryOperation::Free => (&mut totals.frees, &mut totals.freed),
        };
        *count += 1;
        *bytes += u128::from(event.bytes);
        raise(&mut totals.peak_allocated, event.total_allocated, event.timestamp);
        raise(&mut totals.peak_reserved, event.total_reserved, event.timestamp);
    }

    /// All devices: kind (`c10::DeviceType`: 0 the host, 1 CUDA), ordinal, totals.
    pub fn iter(&self) -> impl Iterator<Item = (Option<i64>, Option<i64>, &MemoryTotals)> {
        self.devices.iter().map(|((kind, ordinal), totals)| (*kind, *ordinal, totals))
    }
}

/// Events come in any order: of the highest values the earliest counts.
fn raise(peak: &mut Option<(i64, Timestamp)>, value: Option<i64>, at: Timestamp) {
    let Some(value) = value else { return };
    let is_higher = peak.is_none_or(|(most, when)| value > most || (value == most && at < when));
    if is_higher {
        *peak = Some((value, at));
    }
}
