//! CUPTI's clock and the wall clock.
//!
//! Activity records carry nanoseconds of CUPTI's own clock (cupti_activity.h, `cuptiGetTimestamp`).
//! What lies between that and the wall clock is measured again and again, and what was measured
//! first holds until the wall clock has been set: small differences are those of the measuring, and
//! must not make two kernels change places.

use nix::time::{ClockId, clock_gettime};

/// A difference beyond this means that a clock was set.
const SET_BY: i64 = 1_000_000;

/// How often both clocks are read for one measurement; the quickest reading counts.
const READINGS: u32 = 5;

/// Nanoseconds since the epoch, `CLOCK_REALTIME`.
#[must_use]
pub fn wall_clock() -> i64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |time| {
        time.tv_sec().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec())
    })
}

/// What to add to a time of CUPTI's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offset(Option<i64>);

impl Offset {
    /// Measures anew. `other` reads CUPTI's clock; where it cannot, what was known holds.
    pub fn measure(&mut self, wall: impl Fn() -> i64, other: impl Fn() -> Option<u64>) {
        let reading = |_| {
            let before = wall();
            let between = other()?.cast_signed();
            let after = wall();
            let took = after.wrapping_sub(before);
            Some((took, (before + took / 2).wrapping_sub(between)))
        };
        let Some((_, now)) = (0..READINGS).filter_map(reading).min_by_key(|(took, _)| *took) else {
            return;
        };
        if self.0.is_none_or(|known| now.abs_diff(known) > SET_BY.unsigned_abs()) {
            self.0 = Some(now);
        }
    }

    /// A time of CUPTI's in nanoseconds since the epoch; 0 offset where none was measured.
    #[must_use]
    pub fn apply(&self, time: u64) -> i64 {
        time.cast_signed().wrapping_add(self.0.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_first_measurement_holds_until_a_clock_is_set() {
        let mut offset = Offset::default();
        offset.measure(|| 1_000_000_100, || Some(100));
        assert_eq!(offset.apply(150), 1_000_000_150);
        offset.measure(|| 1_000_000_900, || Some(100));
        assert_eq!(offset.apply(150), 1_000_000_150, "within what measuring costs");
        offset.measure(|| 5_000_000_100, || None);
        assert_eq!(offset.apply(150), 1_000_000_150, "nothing was measured");
        offset.measure(|| 5_000_000_100, || Some(100));
        assert_eq!(offset.apply(150), 5_000_000_150);
    }

    #[test]
    fn the_quickest_reading_counts() {
        let ticks = Cell::new(0);
        let slow_at_first = || {
            ticks.set(ticks.get() + if ticks.get() < 500 { 100 } else { 1 });
            7_000_000_000 + ticks.get()
        };
        let mut offset = Offset::default();
        offset.measure(slow_at_first, || Some(ticks.get().cast_unsigned()));
        assert_eq!(offset.apply(0), 7_000_000_000);
        assert!(wall_clock() > 1_700_000_000_000_000_000);
    }
}
