//! How long things took: a histogram whose counts and sum are exact.

/// Upper bounds of the buckets in nanoseconds, from a microsecond to a thousand seconds.
pub const BOUNDS_NS: [u64; 19] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
    60_000_000_000,
    600_000_000_000,
    1_000_000_000_000,
];

/// A distribution of durations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Durations {
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    buckets: [u64; BOUNDS_NS.len() + 1],
}

impl Durations {
    /// Takes in one.
    pub fn add(&mut self, nanoseconds: u64) {
        self.min_ns = if self.count == 0 { nanoseconds } else { self.min_ns.min(nanoseconds) };
        self.max_ns = self.max_ns.max(nanoseconds);
        self.count += 1;
        self.sum_ns += u128::from(nanoseconds);
        // A value on a bound belongs below it, as OTLP says.
        let bucket = BOUNDS_NS.partition_point(|bound| *bound < nanoseconds);
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count += 1;
        }
    }

    /// Takes in another distribution.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum in nanoseconds.
    #[must_use]
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The shortest and the longest in nanoseconds; `None` when there is none.
    #[must_use]
    pub fn range_ns(&self) -> Option<(u64, u64)> {
        (self.count > 0).then_some((self.min_ns, self.max_ns))
    }

    /// How many lie in each bucket: up to each of [`BOUNDS_NS`], and beyond the last.
    #[must_use]
    pub fn buckets(&self) -> &[u64] {
        &self.buckets
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn merging_is_adding(
            one in prop::collection::vec(0..2_000_000_000_000_u64, 0..20),
            two in prop::collection::vec(0..2_000_000_000_000_u64, 0..20),
        ) {
            let of = |values: &[u64]| {
                let mut durations = Durations::default();
                values.iter().for_each(|value| durations.add(*value));
                durations
            };
            let mut merged = of(&one);
            merged.merge(&of(&two));
            prop_assert_eq!(&merged, &of(&[one, two].concat()));
            prop_assert_eq!(merged.buckets().iter().sum::<u64>(), merged.count());
        }
    }

    #[test]
    fn a_value_on_a_bound_belongs_below_it() {
        let mut durations = Durations::default();
        [1_000, 1_001, u64::MAX].into_iter().for_each(|value| durations.add(value));
        assert_eq!(durations.buckets()[..2], [1, 1]);
        assert_eq!(durations.buckets().last(), Some(&1));
    }
}
