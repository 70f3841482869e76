//! How spans of time are distributed: exact ends and mean, quantiles with a bounded error.

/// Nanoseconds, counted by size. Sizes up to 255 have a bucket each; above, each power of two has
/// 128 buckets, so that a bucket is at most 1/128 of its sizes wide and its middle at most
/// [`Distribution::RELATIVE_ERROR`] away from any of them. At most 7,296 buckets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    count: u64,
    sum: i128,
    smallest: Option<i64>,
    largest: Option<i64>,
    buckets: Vec<u64>,
}

/// Buckets of a power of two.
const STEPS: u32 = 128;

impl Distribution {
    /// How far a quantile may lie from the exact one, as a part of it.
    pub const RELATIVE_ERROR: f64 = 1.0 / 256.0;

    /// Counts a span; one below zero counts as zero.
    pub fn note(&mut self, nanoseconds: i64) {
        let nanoseconds = nanoseconds.max(0);
        self.count += 1;
        self.sum += i128::from(nanoseconds);
        self.smallest = Some(self.smallest.map_or(nanoseconds, |least| least.min(nanoseconds)));
        self.largest = self.largest.max(Some(nanoseconds));
        let bucket = bucket(nanoseconds.unsigned_abs());
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count += 1;
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest and the largest.
    #[must_use]
    pub fn ends(&self) -> Option<(i64, i64)> {
        Some((self.smallest?, self.largest?))
    }

    /// The mean, rounded down.
    #[must_use]
    pub fn mean(&self) -> Option<i128> {
        (self.count > 0).then(|| self.sum / i128::from(self.count))
    }

    /// The smallest size that at least `percent` of a hundred of all do not exceed (nearest rank).
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<i64> {
        let (smallest, largest) = self.ends()?;
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        let place = self.buckets.iter().position(|count| {
            seen += u128::from(*count);
            seen >= rank
        });
        Some(middle(place?).clamp(smallest, largest))
    }
}

fn bucket(nanoseconds: u64) -> usize {
    let shift = (u64::BITS - nanoseconds.leading_zeros()).saturating_sub(STEPS.ilog2() + 1);
    usize::try_from(u64::from(shift * STEPS) + (nanoseconds >> shift)).unwrap_or(usize::MAX)
}

/// The size in the middle of a bucket.
fn middle(bucket: usize) -> i64 {
    let bucket = bucket as u64;
    let shift = (bucket / u64::from(STEPS)).saturating_sub(1);
    let lowest = (bucket - shift * u64::from(STEPS)) << shift;
    i64::try_from(lowest + ((1 << shift) >> 1)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_has_no_quantiles() {
        let none = Distribution::default();
        assert_eq!((none.ends(), none.mean(), none.percentile(50)), (None, None, None));
    }

    #[test]
    fn a_span_below_zero_is_none() {
        let mut distribution = Distribution::default();
        distribution.note(-5);
        assert_eq!((distribution.ends(), distribution.percentile(99)), (Some((0, 0)), Some(0)));
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_the_stated_error(
            mut spans in prop::collection::vec(prop_oneof![0..2_000_i64, 0..i64::MAX], 1..200),
            percent in 0..=100_u64,
        ) {
            let mut distribution = Distribution::default();
            spans.iter().for_each(|span| distribution.note(*span));
            spans.sort_unstable();
            let rank = (spans.len() * usize::try_from(percent).unwrap()).div_ceil(100).max(1);
            let exact = spans[rank - 1];
            let found = distribution.percentile(percent).unwrap();
            #[expect(clippy::cast_precision_loss, reason = "an error in parts of the whole")]
            let (away, most) =
                (found.abs_diff(exact) as f64, exact as f64 * Distribution::RELATIVE_ERROR);
            prop_assert!(away <= most, "{found} for {exact}");
            prop_assert_eq!(distribution.ends(), Some((spans[0], spans[spans.len() - 1])));
            let sum: i128 = spans.iter().copied().map(i128::from).sum();
            prop_assert_eq!(distribution.mean(), Some(sum / spans.len() as i128));
            prop_assert_eq!(distribution.count(), spans.len() as u64);
        }
    }
}
