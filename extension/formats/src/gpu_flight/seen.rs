//! Which batches have been counted, as ranges of their numbers.

use std::collections::BTreeMap;

/// Most ranges that are kept for a type. Numbers rise by one, so that one range is the rule.
const MOST_RANGES: usize = 256;

/// A set of whole numbers that costs one entry for each run of neighbours.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// First number -> last number of a range.
    ranges: BTreeMap<i64, i64>,
}

impl Seen {
    /// Adds a number, and says whether it is new. Where there are too many ranges the lowest is
    /// forgotten.
    pub(super) fn insert(&mut self, number: i64) -> bool {
        let below = self.ranges.range(..=number).next_back().map(|(first, last)| (*first, *last));
        if below.is_some_and(|(_, last)| number <= last) {
            return false;
        }
        let first = match below {
            Some((first, last)) if last.checked_add(1) == Some(number) => first,
            _ => number,
        };
        let above = number.checked_add(1).and_then(|next| self.ranges.remove(&next));
        self.ranges.insert(first, above.unwrap_or(number));
        if self.ranges.len() > MOST_RANGES {
            self.ranges.pop_first();
        }
        true
    }

    /// Adds the numbers from `first` to `last`.
    pub(super) fn extend(&mut self, mut first: i64, mut last: i64) {
        if last < first {
            return;
        }
        let touches = |end: i64| end.saturating_add(1) >= first;
        let near = self.ranges.range(..=last.saturating_add(1)).filter(|(_, end)| touches(**end));
        for (start, end) in near.map(|(start, end)| (*start, *end)).collect::<Vec<_>>() {
            self.ranges.remove(&start);
            (first, last) = (first.min(start), last.max(end));
        }
        self.ranges.insert(first, last);
        if self.ranges.len() > MOST_RANGES {
            self.ranges.pop_first();
        }
    }

    /// First and last number of each range, in order.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (i64, i64)> {
        self.ranges.iter().map(|(first, last)| (*first, *last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_is_new_once(numbers in prop::collection::vec(0..60_i64, 0..200)) {
            let (mut seen, mut model) = (Seen::default(), std::collections::HashSet::new());
            for number in numbers {
                prop_assert_eq!(seen.insert(number), model.insert(number));
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_carried_over_is_new_no_more(
            before in prop::collection::vec(-30..30_i64, 0..60),
            after in prop::collection::vec(-30..30_i64, 0..60),
        ) {
            let (mut first, mut second) = (Seen::default(), Seen::default());
            let mut model: std::collections::HashSet<_> = before.iter().chain(&after).copied().collect();
            for number in before { first.insert(number); }
            for number in after { second.insert(number); }
            first.ranges().for_each(|(start, end)| second.extend(start, end));
            for number in -31..32 {
                prop_assert_eq!(second.insert(number), model.insert(number));
            }
        }
    }

    #[test]
    fn rising_numbers_are_one_range() {
        let mut seen = Seen::default();
        (1..=1000).rev().chain(1001..2000).for_each(|number| assert!(seen.insert(number)));
        assert_eq!(seen.ranges.len(), 1);
        assert!(seen.insert(i64::MAX) && !seen.insert(i64::MAX));
    }
}
