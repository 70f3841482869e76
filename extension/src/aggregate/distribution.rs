//! How a percentage is distributed over launches: count, sum, smallest, largest and, on request,
//! buckets. Values are fractions, 0 to 1.

use std::collections::BTreeMap;

use warpgauge_wire::proportion::largest_remainder;

/// Upper bounds of the explicit buckets: steps of five percent. The last bucket, above 0.95, has
/// no bound of its own (OTLP `HistogramDataPoint.explicit_bounds`: one less than the counts).
pub const EXPLICIT_BOUNDS: [f64; 19] = [
    0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80,
    0.85, 0.90, 0.95,
];

/// Number of explicit buckets.
pub const EXPLICIT_BUCKETS: usize = EXPLICIT_BOUNDS.len() + 1;

/// Scale of the exponential buckets (OTLP `ExponentialHistogramDataPoint.scale`): base
/// 2^(2^-4), 16 buckets an octave, each 4.4 % wide.
pub const EXPONENTIAL_SCALE: i32 = 4;

/// Fractions up to this are counted as zero (OTLP `zero_threshold`): 2^-10, about 0.1 %. With
/// [`EXPONENTIAL_SCALE`] it leaves at most 160 buckets, the SDK's own limit.
pub const ZERO_THRESHOLD: f64 = 1.0 / 1024.0;

/// Which buckets are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// None: count, sum, smallest and largest alone.
    None,
    /// [`EXPLICIT_BOUNDS`].
    Explicit,
    /// Exponential, of [`EXPONENTIAL_SCALE`].
    Exponential,
}

/// Counts per bucket.
#[derive(Debug, Clone, PartialEq)]
pub enum Buckets {
    /// Not kept.
    None,
    /// One count for each explicit bucket.
    Explicit([u64; EXPLICIT_BUCKETS]),
    /// Counts by index: bucket i holds (base^i, base^(i+1)].
    Exponential {
        /// Values up to [`ZERO_THRESHOLD`].
        zero: u64,
        /// The rest; indices are negative, since the values are at most 1.
        counts: BTreeMap<i32, u64>,
    },
}

/// A weighted distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    buckets: Buckets,
}

impl Distribution {
    /// An empty one.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let buckets = match shape {
            Shape::None => Buckets::None,
            Shape::Explicit => Buckets::Explicit([0; EXPLICIT_BUCKETS]),
            Shape::Exponential => Buckets::Exponential { zero: 0, counts: BTreeMap::new() },
        };
        Self { count: 0, sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY, buckets }
    }

    /// Empties it, keeping its shape.
    pub fn clear(&mut self) {
        (self.count, self.sum) = (0, 0.0);
        (self.min, self.max) = (f64::INFINITY, f64::NEG_INFINITY);
        match &mut self.buckets {
            Buckets::None => {}
            Buckets::Explicit(counts) => counts.fill(0),
            Buckets::Exponential { zero, counts } => {
                *zero = 0;
                counts.clear();
            }
        }
    }

    /// Takes in one value of weight one.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        match &mut self.buckets {
            Buckets::None => {}
            Buckets::Explicit(counts) => {
                let bucket = EXPLICIT_BOUNDS.partition_point(|bound| *bound < value);
                if let Some(count) = counts.get_mut(bucket) {
                    *count += 1;
                }
            }
            Buckets::Exponential { zero, .. } if value <= ZERO_THRESHOLD => *zero += 1,
            Buckets::Exponential { counts, .. } => {
                *counts.entry(exponential_index(value)).or_insert(0) += 1
            }
        }
    }

    /// The same distribution standing for `launches` launches: counts are scaled by
    /// launches / count, buckets by the largest remainder so that they still sum to the count.
    #[must_use]
    pub fn standing_for(&self, launches: u64) -> Self {
        let mut scaled = self.clone();
        scaled.count = launches;
        #[expect(clippy::cast_precision_loss, reason = "a mean has no more than 53 bits anyway")]
        if self.count > 0 {
            scaled.sum = self.sum / self.count as f64 * launches as f64;
        }
        match &mut scaled.buckets {
            Buckets::None => {}
            Buckets::Explicit(counts) => {
                let parts = largest_remainder(counts.as_slice(), launches);
                for (count, part) in counts.iter_mut().zip(parts) {
                    *count = part;
                }
            }
            Buckets::Exponential { zero, counts } => {
                let weights: Vec<_> =
                    std::iter::once(*zero).chain(counts.values().copied()).collect();
                let mut parts = largest_remainder(&weights, launches).into_iter();
                *zero = parts.next().unwrap_or(0);
                for (count, part) in counts.values_mut().zip(parts) {
                    *count = part;
                }
            }
        }
        scaled
    }

    /// Adds another distribution of the same shape.
    pub fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        match (&mut self.buckets, &other.buckets) {
            (Buckets::Explicit(counts), Buckets::Explicit(more)) => {
                for (count, more) in counts.iter_mut().zip(more) {
                    *count = count.saturating_add(*more);
                }
            }
            (
                Buckets::Exponential { zero, counts },
                Buckets::Exponential { zero: more_zero, counts: more },
            ) => {
                *zero = zero.saturating_add(*more_zero);
                for (index, more) in more {
                    let count = counts.entry(*index).or_insert(0);
                    *count = count.saturating_add(*more);
                }
            }
            // One pass keeps one shape; buckets of another one cannot be told apart any more.
            (buckets, _) => *buckets = Buckets::None,
        }
    }

    /// How many launches it stands for.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the values, each by its weight.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// The mean, weighted by launches; within the smallest and the largest value, whatever the
    /// rounding of the sum. `None` when empty.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a mean has no more than 53 bits anyway")]
        (self.count > 0).then(|| (self.sum / self.count as f64).clamp(self.min, self.max))
    }

    /// The smallest value.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// The buckets.
    #[must_use]
    pub fn buckets(&self) -> &Buckets {
        &self.buckets
    }
}

/// ceil(log2(value) x 2^scale) - 1, the mapping of the OpenTelemetry data model ("Exponential
/// Buckets"), for 0 < value <= 1.
fn exponential_index(value: f64) -> i32 {
    let scaled = value.log2() * f64::from(1_i32 << EXPONENTIAL_SCALE);
    #[expect(clippy::cast_possible_truncation, reason = "between -160 and 0")]
    let ceiling = scaled.ceil() as i32;
    ceiling - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_belongs_to_the_bucket_below_it() {
        let mut distribution = Distribution::new(Shape::Explicit);
        for value in [0.0, 0.05, 0.051, 0.95, 1.0] {
            distribution.add(value);
        }
        let Buckets::Explicit(counts) = distribution.buckets() else { panic!("{distribution:?}") };
        assert_eq!((counts[0], counts[1], counts[18], counts[19]), (2, 1, 1, 1));
    }

    #[test]
    fn exponential_buckets_follow_the_data_model() {
        assert_eq!(exponential_index(1.0), -1);
        assert_eq!(exponential_index(0.5), -17);
        assert_eq!(exponential_index(0.500_001), -16);
        let mut distribution = Distribution::new(Shape::Exponential);
        for value in [0.0, ZERO_THRESHOLD, 0.002, 1.0] {
            distribution.add(value);
        }
        let Buckets::Exponential { zero, counts } = distribution.buckets() else {
            panic!("{distribution:?}")
        };
        assert_eq!((*zero, counts.values().sum::<u64>()), (2, 2));
        assert!(counts.keys().all(|index| (-160..=-1).contains(index)));
    }

    #[test]
    fn scaled_buckets_still_sum_to_the_count() {
        for shape in [Shape::Explicit, Shape::Exponential] {
            let mut distribution = Distribution::new(shape);
            for value in [0.1, 0.2, 0.7] {
                distribution.add(value);
            }
            let scaled = distribution.standing_for(1_000);
            let sum: u64 = match scaled.buckets() {
                Buckets::Explicit(counts) => counts.iter().sum(),
                Buckets::Exponential { zero, counts } => zero + counts.values().sum::<u64>(),
                Buckets::None => 0,
            };
            assert_eq!((sum, scaled.count()), (1_000, 1_000));
            assert!((scaled.mean().unwrap() - 1.0 / 3.0).abs() < 1e-12);
        }
    }

    #[test]
    fn an_empty_distribution_has_no_mean() {
        let distribution = Distribution::new(Shape::None);
        assert_eq!(
            (distribution.mean(), distribution.min(), distribution.max()),
            (None, None, None)
        );
    }
}
