//! Copies and fills by kind.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::intervals::{Interval, Intervals};

/// Most kinds that are kept apart.
const MOST: usize = 64;

/// The kind that stands for all beyond [`MOST`].
const OTHERS: &str = "(others)";

/// Stretches of time that are remembered for each kind, 24 bytes each. Beyond, the earlier half is
/// summed up, and what comes later of that time counts as late.
const STRETCHES: usize = 1 << 18;

/// Copies and fills by kind, which is the name that the trace gives them:
/// `Memcpy HtoD (Pinned -> Device)`.
#[derive(Debug, Default)]
pub struct Copies {
    kinds: BTreeMap<String, CopyTotals>,
}

/// The copies of one kind.
#[derive(Debug, Default)]
pub struct CopyTotals {
    /// How many.
    pub count: u64,
    /// Nanoseconds in all. What runs at once counts as often as it runs.
    pub time: i128,
    /// Bytes of those that tell them.
    pub bytes: i128,
    /// How many tell their bytes.
    pub sized: u64,
    /// Nanoseconds of those that tell their bytes, all together.
    pub sized_time: i128,
    /// Nanoseconds in which at least one of those that tell their bytes ran.
    pub sized_union: i128,
    /// Copies that came after their time had been summed up; [`CopyTotals::sized_union`] lacks them.
    pub late: u64,
    held: usize,
    settled: Option<i64>,
    intervals: Intervals,
}

impl CopyTotals {
    /// Bytes a nanosecond, which is as many GB/s, of one copy: bytes by the sum of times.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        rate(self.bytes, self.sized_time)
    }

    /// Bytes a nanosecond of all that ran at once: bytes by the time in which at least one ran.
    #[must_use]
    pub fn rate_together(&self) -> Option<f64> {
        rate(self.bytes, self.sized_union)
    }

    fn note(&mut self, start: i64, end: i64, bytes: Option<i64>) {
        let time = i128::from(end) - i128::from(start);
        self.count += 1;
        self.time += time;
        let Some(bytes) = bytes else { return };
        self.sized += 1;
        self.bytes += i128::from(bytes);
        self.sized_time += time;
        if self.settled.is_some_and(|settled| start < settled) {
            self.late += 1;
        }
        let start = self.settled.map_or(start, |settled| settled.max(start));
        if end < start {
            return;
        }
        let interval = Interval { start, asked: Interval::UNASKED, end };
        self.held += usize::from(self.intervals.insert(interval));
        if self.held > STRETCHES {
            self.make_room();
        }
    }

    fn make_room(&mut self) {
        self.intervals.merge();
        self.held = self.intervals.len();
        if self.held > STRETCHES / 4 * 3 {
            let middle = self.intervals.starts().nth(self.held / 2);
            middle.into_iter().for_each(|middle| self.settle(middle));
            self.settled = middle;
            self.held = self.intervals.len();
        }
    }

    fn settle(&mut self, until: i64) {
        let before = self.intervals.take_before(until);
        let times = before.iter().map(|at| i128::from(at.end) - i128::from(at.start));
        self.sized_union += times.sum::<i128>();
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate is shown with a few digits")]
fn rate(bytes: i128, nanoseconds: i128) -> Option<f64> {
    (nanoseconds > 0).then(|| bytes as f64 / nanoseconds as f64)
}

impl Copies {
    pub(super) fn note(&mut self, kind: &str, start: i64, end: i64, bytes: Option<i64>) {
        let is_known = self.kinds.contains_key(kind);
        let kind = if is_known || self.kinds.len() < MOST { kind } else { OTHERS };
        if let Some(totals) = self.kinds.get_mut(kind) {
            return totals.note(start, end, bytes);
        }
        self.kinds.entry(kind.to_owned()).or_default().note(start, end, bytes);
    }

    /// A trace has ended. What the next one tells happens on another clock.
    pub(super) fn trace_ends(&mut self) {
        for totals in self.kinds.values_mut() {
            totals.settle(i64::MAX);
            (totals.settled, totals.held) = (None, 0);
        }
    }

    /// All kinds, the most bytes first.
    #[must_use]
    pub fn by_bytes(&self) -> Vec<(&str, &CopyTotals)> {
        let mut kinds: Vec<_> = self.kinds.iter().map(|(kind, all)| (kind.as_str(), all)).collect();
        kinds.sort_by_key(|(kind, all)| (Reverse(all.bytes), Reverse(all.time), *kind));
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_at_once_shares_its_time() {
        let mut copies = Copies::default();
        copies.note("HtoD", 0, 100, Some(1_000));
        copies.note("HtoD", 50, 150, Some(2_000));
        copies.note("HtoD", 500, 600, None);
        copies.trace_ends();
        let (_, totals) = copies.by_bytes()[0];
        assert_eq!((totals.count, totals.time, totals.sized), (3, 300, 2));
        assert_eq!((totals.sized_time, totals.sized_union), (200, 150));
        assert_eq!((totals.rate(), totals.rate_together()), (Some(15.0), Some(20.0)));
    }

    #[test]
    fn any_number_of_copies_takes_bounded_room_and_is_summed_up_exactly() {
        let mut copies = Copies::default();
        let many = i64::try_from(STRETCHES).unwrap() * 3;
        (0..many).for_each(|at| copies.note("HtoD", at * 10, at * 10 + 4, Some(1)));
        let totals = &copies.kinds["HtoD"];
        assert!(totals.intervals.len() <= STRETCHES && totals.sized_union > 0);
        copies.note("HtoD", 0, 4, Some(1));
        copies.trace_ends();
        let totals = &copies.kinds["HtoD"];
        assert_eq!((totals.sized_union, totals.late), (i128::from(many) * 4, 1));
    }
}
