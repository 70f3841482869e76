//! A set of stretches of time in which something ran: overlapping ones are one.

/// A stretch of time, from its first nanosecond to the first behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Interval {
    pub(super) start: i64,
    /// When the host asked for what ran first; [`Interval::UNASKED`] where nothing tells.
    pub(super) asked: i64,
    pub(super) end: i64,
}

impl Interval {
    /// Behind all times, so that of two that start together the one with a call comes first.
    pub(super) const UNASKED: i64 = i64::MAX;

    /// Adds what touches or overlaps and does not start earlier; says whether that was so.
    fn absorb(&mut self, later: Self) -> bool {
        let touches = self.start <= later.start && later.start <= self.end;
        if touches {
            self.end = self.end.max(later.end);
            if later.start == self.start {
                self.asked = self.asked.min(later.asked);
            }
        }
        touches
    }
}

/// Stretches that neither overlap nor touch, whatever the order in which they came.
///
/// What comes in the order of time is added to the last one or put behind it. What does not waits
/// until there is as much of it as of all before, and is then sorted in: all together that costs
/// n log n steps.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    merged: Vec<Interval>,
    recent: Vec<Interval>,
}

impl Intervals {
    /// What waits at least before it is sorted in.
    const FEW: usize = 1_024;

    /// Adds one; says whether it takes room of its own.
    pub(super) fn insert(&mut self, interval: Interval) -> bool {
        if self.recent.last_mut().is_some_and(|last| last.absorb(interval)) {
            return false;
        }
        self.recent.push(interval);
        if self.recent.len() > self.merged.len().max(Self::FEW) {
            self.merge();
        }
        true
    }

    /// Sorts in what waits.
    pub(super) fn merge(&mut self) {
        if self.recent.is_empty() {
            return;
        }
        self.merged.append(&mut self.recent);
        // Two runs that are in order each are merged in one go.
        self.merged.sort();
        self.merged.dedup_by(|later, kept| kept.absorb(*later));
    }

    /// How many there are, those that wait included.
    pub(super) fn len(&self) -> usize {
        self.merged.len() + self.recent.len()
    }

    /// When they start, those that wait included.
    pub(super) fn starts(&self) -> impl Iterator<Item = i64> {
        self.merged.iter().chain(&self.recent).map(|interval| interval.start)
    }

    /// Takes out what lies before `until`, in the order of time. What lies across is cut in two.
    pub(super) fn take_before(&mut self, until: i64) -> Vec<Interval> {
        self.merge();
        let place = self.merged.partition_point(|interval| interval.start < until);
        let rest = self.merged.split_off(place);
        let mut taken = std::mem::replace(&mut self.merged, rest);
        if let Some(last) = taken.last_mut().filter(|last| last.end > until) {
            let behind = Interval { start: until, asked: Interval::UNASKED, end: last.end };
            last.end = until;
            self.merged.insert(0, behind);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: i64, end: i64) -> Interval {
        Interval { start, asked: Interval::UNASKED, end }
    }

    #[test]
    fn what_overlaps_or_touches_is_one() {
        let mut intervals = Intervals::default();
        for (start, end) in [(10, 20), (30, 40), (5, 12), (20, 25), (31, 33), (50, 50)] {
            intervals.insert(at(start, end));
        }
        assert_eq!(intervals.take_before(i64::MAX), [at(5, 25), at(30, 40), at(50, 50)]);
        assert_eq!(intervals.len(), 0);
    }

    #[test]
    fn what_lies_across_the_cut_is_cut() {
        let mut intervals = Intervals::default();
        intervals.insert(at(0, 10));
        intervals.insert(at(20, 30));
        assert_eq!(intervals.take_before(25), [at(0, 10), at(20, 25)]);
        assert_eq!(intervals.take_before(i64::MAX), [at(25, 30)]);
    }

    #[test]
    fn a_stream_without_gaps_takes_the_room_of_one() {
        let mut intervals = Intervals::default();
        for start in 0..100_000 {
            intervals.insert(at(start, start + 1));
        }
        assert_eq!(intervals.len(), 1);
    }
}
