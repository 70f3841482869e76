//! Durations by name, of which a bounded number is told apart.

use std::collections::HashMap;

use super::durations::Durations;

/// Most names that are told apart within a pass; further ones are others from the beginning.
pub const MOST_NAMES: usize = 4_096;

/// Longest name, in bytes. Longer ones are cut, so that two with the same beginning are one.
pub const LONGEST_NAME: usize = 256;

/// Durations by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ByName {
    of: HashMap<String, Durations>,
    others: Durations,
}

impl ByName {
    /// Takes in one.
    pub fn add(&mut self, name: &str, nanoseconds: u64) {
        let name = cut(name);
        if let Some(known) = self.of.get_mut(name) {
            known.add(nanoseconds);
        } else if self.of.len() < MOST_NAMES {
            self.of.entry(name.to_owned()).or_default().add(nanoseconds);
        } else {
            self.others.add(nanoseconds);
        }
    }

    /// The first `limit` names by the time that they took, and all others as `None`.
    #[must_use]
    pub fn top(&self, limit: usize) -> Vec<(Option<&str>, Durations)> {
        let mut all: Vec<_> = self.of.iter().collect();
        all.sort_unstable_by(|a, b| b.1.sum_ns().cmp(&a.1.sum_ns()).then_with(|| a.0.cmp(b.0)));
        let mut others = self.others.clone();
        all.iter().skip(limit).for_each(|(_, durations)| others.merge(durations));
        let first = all.iter().take(limit);
        let mut top: Vec<_> =
            first.map(|(name, durations)| (Some(name.as_str()), (*durations).clone())).collect();
        if others.count() > 0 {
            top.push((None, others));
        }
        top
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> Durations {
        let mut total = self.others.clone();
        self.of.values().for_each(|durations| total.merge(durations));
        total
    }
}

/// At most [`LONGEST_NAME`] bytes of a text.
pub(super) fn cut(name: &str) -> &str {
    let end = (0..=LONGEST_NAME).rev().find(|end| name.is_char_boundary(*end)).unwrap_or_default();
    name.get(..end.min(name.len())).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_have_names_and_nothing_is_left_out() {
        let mut kernels = ByName::default();
        for number in 0..5_000_u64 {
            kernels.add(&format!("kernel{number}"), number);
        }
        let top = kernels.top(2);
        let names: Vec<_> = top.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [Some("kernel4095"), Some("kernel4094"), None]);
        let sum: u128 = top.iter().map(|(_, durations)| durations.sum_ns()).sum();
        assert_eq!(sum, 4_999 * 5_000 / 2);
        assert_eq!(kernels.total().count(), 5_000);
    }

    #[test]
    fn a_long_name_is_cut_between_two_letters() {
        let mut kernels = ByName::default();
        kernels.add(&"ä".repeat(200), 1);
        kernels.add(&("x".to_owned() + &"ä".repeat(200)), 1);
        let lengths: Vec<_> = kernels.top(5).iter().map(|(name, _)| name.unwrap().len()).collect();
        assert!(lengths.contains(&256) && lengths.contains(&255));
    }
}
