//! Kernels by name.

use std::cmp::Reverse;

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
    pub beyond: KernelTotals,
}

/// The runs of one kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelTotals {
    /// How many.
    pub count: u64,
    /// Nanoseconds in all. What runs at once counts as often as it runs.
    pub time: i128,
    /// The shortest and the longest, nanoseconds.
    pub ends: Option<(i64, i64)>,
}

impl KernelTotals {
    fn note(&mut self, duration: i64) {
        self.add(Self { count: 1, time: duration.into(), ends: Some((duration, duration)) });
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.time += other.time;
        self.ends = match (self.ends, other.ends) {
            (Some((least, most)), Some((less, more))) => Some((least.min(less), most.max(more))),
            (ends, others) => ends.or(others),
        };
    }

    /// Nanoseconds of the longest run; 0 where there is none.
    #[must_use]
    pub fn longest(&self) -> i64 {
        self.ends.map_or(0, |(_, longest)| longest)
    }

    /// Nanoseconds of one run, rounded down.
    #[must_use]
    pub fn mean(&self) -> i128 {
        self.time / i128::from(self.count.max(1))
    }
}

impl Default for Kernels {
    fn default() -> Self {
        let (all, beyond) = Default::default();
        Self { names: Interner::with_limit(NAMES), totals: vec![], all, beyond }
    }
}

impl Kernels {
    /// Counts a run of so many nanoseconds.
    pub fn note(&mut self, name: &str, duration: i64) {
        self.all.note(duration);
        if let Ok((name, is_new)) = self.names.intern(name) {
            if is_new && self.totals.len() < MOST {
                self.totals.push(KernelTotals::default());
            }
            if let Some(totals) = self.totals.get_mut(name.index() as usize) {
                return totals.note(duration);
            }
        }
        self.beyond.note(duration);
    }

    /// How many names there are.
    #[must_use]
    pub fn names(&self) -> usize {
        self.totals.len()
    }

    /// The `most` kernels that took the most time, and all others together.
    #[must_use]
    pub fn by_time(&self, most: usize) -> (Vec<(&str, KernelTotals)>, KernelTotals) {
        let named = self.names.iter().map(|(_, name)| name).zip(&self.totals);
        let mut kernels: Vec<_> = named.map(|(name, totals)| (name, *totals)).collect();
        kernels.sort_by_key(|(name, totals)| (Reverse(totals.time), *name));
        let rest = kernels.split_off(most.min(kernels.len()));
        let mut others = self.beyond;
        rest.into_iter().for_each(|(_, totals)| others.add(totals));
        (kernels, others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_not_named_is_summed_up() {
        let mut kernels = Kernels::default();
        for (name, duration) in [("a", 5), ("b", 30), ("c", 7), ("a", 9)] {
            kernels.note(name, duration);
        }
        let (first, others) = kernels.by_time(1);
        let most = KernelTotals { count: 1, time: 30, ends: Some((30, 30)) };
        assert_eq!(first, [("b", most)]);
        assert_eq!(others, KernelTotals { count: 3, time: 21, ends: Some((5, 9)) });
        assert_eq!((kernels.all.count, kernels.all.time, kernels.names()), (4, 51, 3));
    }
}
