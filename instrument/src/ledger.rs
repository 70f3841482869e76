//! Launches seen since they were last asked for, per launch shape.
//!
//! A launch costs one look-up in [`Table`]; the first one of a shape also asks the probe for its
//! occupancy. Threads count in counters of their own (`shard.rs`), so they do not slow each other
//! down. Memory is fixed, however many threads there are: 256 KiB for the shapes, 2 MiB for their
//! counters (32 KiB for each shard that a thread launches in, all of it once more than half of the
//! shapes are taken and idle ones are thrown out) and 72 KiB for the occupancies, as far as they are
//! touched. What does not fit is counted.

mod shard;
mod table;

/// The atomics of `table`: others where every order of its steps is tried.
mod atomic {
    pub(super) use std::sync::atomic::{AtomicU64, Ordering};
}

use std::sync::atomic::AtomicBool;

use self::atomic::{AtomicU64, Ordering};
use self::shard::SHARDS;
use self::table::Slot;
pub use self::table::{Table, hash};
use crate::launch::{KEY_WORDS, Launch};

const SHAPES: usize = 4096;
const OCCUPANCIES: usize = 1024;

/// Counts launches.
#[derive(Default)]
pub struct Ledger {
    /// Per launch shape; the value is the occupancy.
    shapes: Table<KEY_WORDS, SHAPES, SHARDS>,
    /// Occupancies by what they depend on: shapes that differ in their grid alone share one.
    occupancies: Table<KEY_WORDS, OCCUPANCIES, 1>,
    unfitted: AtomicU64,
    generation: AtomicU64,
    /// Whether idle entries have to make room; only the draining thread asks.
    shapes_crowded: AtomicBool,
    occupancies_crowded: AtomicBool,
}

impl<const WORDS: usize, const SLOTS: usize, const SHARDS: usize> Table<WORDS, SLOTS, SHARDS> {
    /// An empty table, at compile time: all zero bytes.
    #[must_use]
    pub const fn new() -> Self {
        assert!(SLOTS.is_power_of_two());
        let slots = [const {
            Slot {
                meta: AtomicU64::new(0),
                value: AtomicU64::new(0),
                key: [const { AtomicU64::new(0) }; WORDS],
            }
        }; SLOTS];
        let shards = [const { [const { AtomicU64::new(0) }; SLOTS] }; SHARDS];
        Self { slots, shards }
    }
}

impl<const WORDS: usize, const SLOTS: usize, const SHARDS: usize> Default
    for Table<WORDS, SLOTS, SHARDS>
{
    fn default() -> Self {
        Self::new()
    }
}

/// What the ledger held.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Launches whose shape found no room; they are not among the shapes given.
    pub unfitted: u64,
    /// Shapes in the ledger.
    pub shapes: usize,
}

impl Ledger {
    /// An empty ledger.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            shapes: Table::new(),
            occupancies: Table::new(),
            unfitted: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            shapes_crowded: AtomicBool::new(false),
            occupancies_crowded: AtomicBool::new(false),
        }
    }

    /// Counts a launch, or one that happens several `times` at once. `occupancy` is asked for a shape
    /// that was not seen before: percent, or `None` where it cannot be told.
    pub fn record(
        &self,
        launch: &Launch,
        times: u64,
        occupancy: impl FnOnce(&Launch) -> Option<f64>,
    ) {
        let generation = self.generation.load(Ordering::Acquire);
        let shape = launch.key(generation);
        let shard = shard::of_this_thread();
        if self.shapes.count(shard, &shape, times).is_some() {
            return;
        }
        let same_blocks = Launch { grid: [0; 3], ..*launch }.key(generation);
        let value = self.occupancies.count(0, &same_blocks, 1).unwrap_or_else(|| {
            let value = occupancy(launch).unwrap_or(f64::NAN).to_bits();
            // Where there is no room, the next launch asks again.
            self.occupancies.insert(0, &same_blocks, value, 1);
            value
        });
        if !self.shapes.insert(shard, &shape, value, times) {
            self.unfitted.fetch_add(times, Ordering::Relaxed);
        }
    }

    /// The key under which a launch is counted now.
    pub fn shape_of(&self, launch: &Launch) -> [u64; KEY_WORDS] {
        launch.key(self.generation.load(Ordering::Acquire))
    }

    /// Kernel handles may mean other kernels from now on: a module or a context goes, or has gone
    /// while nobody looked.
    pub fn forget_functions(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes everything out. `each` gets each shape, as [`Launch::key`], its occupancy in percent
    /// where it is known, and its number of launches. For one thread at a time.
    pub fn drain(&self, mut each: impl FnMut(&[u64; KEY_WORDS], Option<f64>, u64)) -> Drained {
        let crowded = self.shapes_crowded.load(Ordering::Relaxed);
        let shapes = self.shapes.drain(crowded, |shape, value, launches| {
            let occupancy = f64::from_bits(value);
            each(shape, (!occupancy.is_nan()).then_some(occupancy), launches);
        });
        self.shapes_crowded.store(shapes > SHAPES / 2, Ordering::Relaxed);
        let crowded = self.occupancies_crowded.load(Ordering::Relaxed);
        let occupancies = self.occupancies.drain(crowded, |_, _, _| {});
        self.occupancies_crowded.store(occupancies > OCCUPANCIES / 2, Ordering::Relaxed);
        Drained { unfitted: self.unfitted.swap(0, Ordering::Relaxed), shapes }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn launch(function: u64, grid: u32, threads: u32) -> Launch {
        Launch {
            context: 1,
            function,
            grid: [grid, 1, 1],
            block: [threads, 1, 1],
            shared: 0,
            cluster: 1,
            config: std::ptr::null(),
        }
    }

    fn drained(ledger: &Ledger) -> Vec<(Option<f64>, u64)> {
        let mut all = Vec::new();
        ledger.drain(|_, occupancy, launches| all.push((occupancy, launches)));
        all.sort_by(|a, b| a.partial_cmp(b).unwrap());
        all
    }

    #[test]
    fn occupancy_is_asked_once_however_many_grids_a_kernel_is_launched_with() {
        static LEDGER: Ledger = Ledger::new();
        let ledger = &LEDGER;
        let asked = Cell::new(0);
        for grid in [1, 2, 2, 3] {
            ledger.record(&launch(7, grid, 256), 1, |_| {
                asked.set(asked.get() + 1);
                Some(100.0)
            });
        }
        ledger.record(&launch(7, 1, 128), 1, |_| None);
        assert_eq!(asked.get(), 1);
        assert_eq!(
            drained(ledger),
            [(None, 1), (Some(100.0), 1), (Some(100.0), 1), (Some(100.0), 2)]
        );
        assert_eq!(drained(ledger), []);
    }

    #[test]
    fn a_handle_that_changed_hands_is_another_kernel() {
        static LEDGER: Ledger = Ledger::new();
        let ledger = &LEDGER;
        ledger.record(&launch(7, 1, 256), 1, |_| Some(100.0));
        ledger.forget_functions();
        ledger.record(&launch(7, 1, 256), 1, |_| Some(25.0));
        assert_eq!(drained(ledger), [(Some(25.0), 1), (Some(100.0), 1)]);
    }

    #[test]
    fn launches_that_find_no_room_are_counted_and_idle_shapes_make_room_for_new_ones() {
        static LEDGER: Ledger = Ledger::new();
        let ledger = &LEDGER;
        for function in 0..3 * SHAPES as u64 {
            ledger.record(&launch(function * 16, 1, 256), 1, |_| Some(50.0));
        }
        let mut counted = 0;
        let first = ledger.drain(|_, _, launches| counted += launches);
        assert!(first.unfitted > 0 && first.shapes > SHAPES / 2);
        assert_eq!(counted + first.unfitted, 3 * SHAPES as u64);
        ledger.drain(|_, _, _| {});
        ledger.record(&launch(1, 1, 64), 1, |_| Some(50.0));
        let second = ledger.drain(|_, _, _| {});
        assert_eq!(second, Drained { unfitted: 0, shapes: 1 });
    }
}
