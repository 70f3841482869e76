//! Copies by kind.

use std::collections::BTreeMap;

use warpgauge_formats::event::{Copy, CopyKind};

/// Most kinds that are kept apart: CUPTI has eleven. Others count as unknown, kind 0.
const MOST: usize = 64;

/// Copies by kind.
#[derive(Debug, Default)]
pub struct Copies {
    kinds: BTreeMap<CopyKind, CopyTotals>,
}

/// The copies of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyTotals {
    /// How many.
    pub count: u64,
    /// Bytes.
    pub bytes: i128,
    /// Nanoseconds.
    pub time: i128,
}

impl CopyTotals {
    /// Bytes a second while copying; `None` where no time passed.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<i128> {
        (self.time > 0).then(|| self.bytes.saturating_mul(1_000_000_000) / self.time)
    }
}

impl Copies {
    pub(super) fn note(&mut self, copy: &Copy<'_>) {
        let is_known = self.kinds.len() < MOST || self.kinds.contains_key(&copy.kind);
        let kind = if is_known { copy.kind } else { CopyKind(0) };
        let totals = self.kinds.entry(kind).or_default();
        totals.count += 1;
        totals.bytes += i128::from(copy.bytes);
        totals.time += i128::from(copy.duration.0);
    }

    /// All kinds, most bytes first.
    #[must_use]
    pub fn by_bytes(&self) -> Vec<(CopyKind, CopyTotals)> {
        let mut kinds: Vec<_> = self.kinds.iter().map(|(kind, totals)| (*kind, *totals)).collect();
        kinds.sort_by_key(|(kind, totals)| (std::cmp::Reverse(totals.bytes), *kind));
        kinds
    }
}
