//! Which counters a window reads on which device.
//!
//! The worker finds out what a device has; the host's threads then read it without waiting.

use std::ffi::CStr;
use std::sync::OnceLock;

use warpgauge_wire::{Function, FunctionSet};

use crate::cupti::{Cupti, Sass, SassError};
use crate::probes::{COUNTED, COUNTED_PROBES, Counting};

/// More devices than a machine has; others are not metered.
pub const MAX_DEVICES: usize = 64;

/// No probe needs more counters.
const COUNTERS_PER_PROBE: usize = 2;

/// Counters of one launch: per probe in the order of [`COUNTED`], then per metric.
pub type Counters = [[u64; COUNTERS_PER_PROBE]; COUNTED_PROBES];

/// CUPTI's ids of those counters, where the device has all that the probe needs.
type MetricIds = [Option<[Option<u64>; COUNTERS_PER_PROBE]>; COUNTED_PROBES];

/// Counters of all devices.
#[derive(Debug)]
pub struct Meter {
    /// The calls that count.
    pub sass: Sass,
    counting: Counting,
    devices: [OnceLock<MetricIds>; MAX_DEVICES],
}

impl Meter {
    /// A meter that knows no device yet.
    #[must_use]
    pub const fn new(sass: Sass, counting: Counting) -> Self {
        Self { sass, counting, devices: [const { OnceLock::new() }; MAX_DEVICES] }
    }

    /// Asks CUPTI once which counters a device has. Gives the metrics that it lacks, each with the
    /// function that goes without.
    ///
    /// # Errors
    /// That nothing can be counted on the device; it is not asked again.
    pub fn prepare(
        &self,
        cupti: &Cupti,
        device: u32,
    ) -> Result<Vec<(Function, &'static CStr)>, SassError> {
        let Some(place) = self.devices.get(device as usize) else { return Ok(Vec::new()) };
        if place.get().is_some() {
            return Ok(Vec::new());
        }
        let mut ids: MetricIds = [None; COUNTED_PROBES];
        let mut lacking = Vec::new();
        let mut outcome = Ok(());
        for (probe, ids) in COUNTED.iter().zip(&mut ids) {
            let names = probe.metrics(self.counting);
            match self.sass.metrics_of(cupti, device, names) {
                Ok(found) => {
                    let missing = names.iter().zip(&found).filter(|(_, id)| id.is_none());
                    let before = lacking.len();
                    lacking.extend(missing.map(|(name, _)| (probe.function(), *name)));
                    if lacking.len() == before {
                        let mut found = found.into_iter();
                        *ids = Some(std::array::from_fn(|_| found.next().flatten()));
                    }
                }
                Err(error) => outcome = Err(error),
            }
        }
        place.get_or_init(|| ids);
        outcome.map(|()| lacking)
    }

    /// Whether [`Self::prepare`] was asked about a device.
    #[must_use]
    pub fn knows(&self, device: u32) -> bool {
        self.devices.get(device as usize).is_some_and(|place| place.get().is_some())
    }

    /// The functions that can be counted on a device; none before it is prepared.
    #[must_use]
    pub fn functions_of(&self, device: u32) -> FunctionSet {
        let Some(ids) = self.devices.get(device as usize).and_then(OnceLock::get) else {
            return FunctionSet::EMPTY;
        };
        COUNTED
            .iter()
            .zip(ids)
            .filter(|(_, ids)| ids.is_some())
            .map(|(p, _)| p.function())
            .collect()
    }

    /// The metrics to count for these functions on a device, without those that it lacks.
    #[must_use]
    pub fn metrics(&self, device: u32, functions: FunctionSet) -> Vec<u64> {
        self.places(device, functions).map(|(_, _, id)| id).collect()
    }

    /// Adds one counted value to where it belongs.
    pub fn add(&self, device: u32, counters: &mut Counters, metric: u64, value: u64) {
        for (probe, place, id) in self.places(device, FunctionSet::from_bits(u8::MAX)) {
            if id == metric
                && let Some(counter) =
                    counters.get_mut(probe).and_then(|counters| counters.get_mut(place))
            {
                *counter = counter.saturating_add(value);
            }
        }
    }

    /// The value of a probe from the counters of a launch.
    #[must_use]
    pub fn value(&self, probe: usize, counters: &Counters) -> Option<f64> {
        let (probe, counters) = COUNTED.get(probe).zip(counters.get(probe))?;
        probe.value(counters.get(..probe.metrics(self.counting).len())?)
    }

    /// Probe, place among its counters and CUPTI's id of every metric of these functions.
    fn places(
        &self,
        device: u32,
        functions: FunctionSet,
    ) -> impl Iterator<Item = (usize, usize, u64)> {
        let ids = self.devices.get(device as usize).and_then(OnceLock::get);
        ids.into_iter().flatten().zip(COUNTED).enumerate().flat_map(move |(index, (ids, probe))| {
            let wanted = ids.filter(|_| functions.contains(probe.function()));
            wanted
                .into_iter()
                .flatten()
                .enumerate()
                .filter_map(move |(place, id)| Some((index, place, id?)))
        })
    }
}
