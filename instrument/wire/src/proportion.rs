//! Few lines that stand for many launches, without favour to any.

/// Splits `total` into whole parts that are in proportion to `weights`, by the method of the
/// largest remainder (Hamilton): every part is its exact share rounded down, and the units that
/// are left go to the largest fractions, earlier weights first among equals.
///
/// The parts sum to `total` exactly, unless all weights are zero: then all parts are. Weights and
/// total may each use all 64 bits; the arithmetic is exact.
#[must_use]
pub fn largest_remainder(weights: &[u64], total: u64) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let mut parts = Vec::with_capacity(weights.len());
    let mut remainders = Vec::with_capacity(weights.len());
    let mut given: u64 = 0;
    for (position, &weight) in weights.iter().enumerate() {
        let share = u128::from(weight) * u128::from(total);
        // weight <= sum, so the quotient is at most total.
        let whole = u64::try_from(share / sum).unwrap_or(total);
        parts.push(whole);
        given += whole;
        remainders.push((share % sum, position));
    }
    remainders.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, position) in remainders.into_iter().take(usize::try_from(total - given).unwrap_or(0)) {
        if let Some(part) = parts.get_mut(position) {
            *part += 1;
        }
    }
    parts
}

/// How many lines each of several values gets, so that together they stand for the values' weights:
/// the fewest that keep the proportion exactly, or, where that takes more than `most`, `most` lines
/// by the largest remainder. The sum of the weights must fit 64 bits; beyond it is taken for 2^64 - 1.
#[must_use]
pub fn lines_standing_for(weights: &[u64], most: u64) -> Vec<u64> {
    let divisor = weights.iter().copied().fold(0, greatest_common_divisor).max(1);
    let exact = weights.iter().fold(0_u64, |sum, weight| sum.saturating_add(weight / divisor));
    largest_remainder(weights, exact.min(most))
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ten_launches_in_three_lines_keep_the_largest_share_in_front() {
        assert_eq!(largest_remainder(&[6, 3, 1], 3), [2, 1, 0]);
        assert_eq!(largest_remainder(&[1, 1, 1], 2), [1, 1, 0]);
        assert_eq!(largest_remainder(&[0, 0], 5), [0, 0]);
        assert_eq!(largest_remainder(&[], 5), [0_u64; 0]);
    }

    #[test]
    fn no_more_lines_than_the_proportion_takes() {
        assert_eq!(lines_standing_for(&[4_000_000], 1_000), [1]);
        assert_eq!(lines_standing_for(&[3_000_000, 1_000_000], 1_000), [3, 1]);
        assert_eq!(lines_standing_for(&[2_001, 1], 1_000), [1_000, 0]);
        assert_eq!(lines_standing_for(&[0, 0], 1_000), [0, 0]);
    }

    proptest! {
        #[test]
        fn lines_are_bounded_and_exact_where_they_can_be(weights in proptest::collection::vec(0_u64..3_000, 1..20)) {
            let lines = lines_standing_for(&weights, 1_000);
            let sum: u64 = lines.iter().sum();
            prop_assert!(sum <= 1_000);
            if sum < 1_000 && sum > 0 {
                let total: u64 = weights.iter().sum();
                for (line, weight) in lines.iter().zip(&weights) {
                    prop_assert_eq!(line * total, weight * sum);
                }
            }
        }

        #[test]
        fn parts_sum_to_the_total_and_none_is_off_by_a_unit(
            weights in proptest::collection::vec(any::<u64>(), 1..50),
            total: u64,
        ) {
            let parts = largest_remainder(&weights, total);
            let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
            prop_assume!(sum > 0);
            prop_assert_eq!(parts.iter().map(|&part| u128::from(part)).sum::<u128>(), u128::from(total));
            for (part, weight) in parts.iter().zip(&weights) {
                let floor = u128::from(*weight) * u128::from(total) / sum;
                prop_assert!((floor..=floor + 1).contains(&u128::from(*part)));
            }
        }
    }
}
