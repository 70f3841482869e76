//! Kernels by name.

use warpgauge_formats::event::Kernel;
use warpgauge_formats::interner::Interner;

/// Bytes of distinct names that are kept apart. What comes under names beyond is counted together.
const NAMES: usize = 16 << 20;

/// Most distinct names.
const MOST: usize = 262_144;

/// A kernel's name.
#[derive(Debug)]
struct Name;

/// Kernels by name.
#[derive(Debug)]
pub struct Kernels {
    names: Interner<Name>,
    totals: Vec<KernelTotals>,
    /// All of them.
    pub all: KernelTotals,
    /// Those whose names did not fit.
    pub others: KernelTotals,
}

/// The launches of one kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelTotals {
    /// How many.
    pub launches: u64,
    /// Nanoseconds in all.
    pub time: i128,
    /// The longest, nanoseconds.
    pub longest: i64,
}

impl KernelTotals {
    fn add(&mut self, duration: i64) {
        self.launches += 1;
        self.time += i128::from(duration);
        self.longest = self.longest.max(duration);
    }

    /// Nanoseconds of one launch.
    #[must_use]
    pub fn mean(&self) -> i128 {
        self.time / i128::from(self.launches.max(1))
    }
}

impl Default for Kernels {
    fn default() -> Self {
        let names = Interner::with_limit(NAMES);
        Self {
            names,
            totals: vec![],
            all: KernelTotals::default(),
            others: KernelTotals::default(),
        }
    }
}

impl Kernels {
    pub(super) fn note(&mut self, kernel: &Kernel<'_>) {
        let duration = kernel.duration.0;
        self.all.add(duration);
        if let Ok((name, is_new)) = self.names.intern(&kernel.name) {
            if is_new && self.totals.len() < MOST {
                self.totals.push(KernelTotals::default());
            }
            if let Some(totals) = self.totals.get_mut(name.index() as usize) {
                return totals.add(duration);
            }
        }
        self.others.add(duration);
    }

    /// How many names there are.
    #[must_use]
    pub fn names(&self) -> usize {
        self.totals.len()
    }

    /// The `most` kernels that took the most time.
    #[must_use]
    pub fn by_time(&self, most: usize) -> Vec<(&str, KernelTotals)> {
        let named = self.names.iter().map(|(_, name)| name).zip(&self.totals);
        let mut kernels: Vec<_> = named.map(|(name, totals)| (name, *totals)).collect();
        kernels.sort_by_key(|(name, totals)| (std::cmp::Reverse(totals.time), *name));
        kernels.truncate(most);
        kernels
    }
}
