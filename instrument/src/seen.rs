//! Launches since the process was first listed, for the health file.

use std::collections::BTreeMap;

use crate::launch::KEY_WORDS;
use crate::observer;

/// Launches, whatever became of their measurements.
#[derive(Debug, Default)]
pub struct Seen {
    /// All of them.
    pub launches: u64,
    /// Those whose shape found no room.
    pub unfitted: u64,
    /// By the ordinal of the device, where it is known.
    pub by_device: BTreeMap<u32, u64>,
}

impl Seen {
    /// Counts launches of a shape ([`crate::launch::Launch::key`]).
    pub fn count(&mut self, shape: &[u64; KEY_WORDS], launches: u64) {
        self.launches += launches;
        let [context, ..] = *shape;
        if let Some(device) = observer::contexts().device_of(context) {
            *self.by_device.entry(device).or_default() += launches;
        }
    }

    /// Counts launches whose shape found no room.
    pub fn count_unfitted(&mut self, launches: u64) {
        self.launches += launches;
        self.unfitted += launches;
    }
}
