//! What a format cannot hold of the events that it was given.

use std::collections::BTreeMap;

/// Counts, by the name of what was left out.
///
/// A name is a type and a field (`kernel.api_start_ns`), or a type alone where no event of it can
/// be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    counts: BTreeMap<&'static str, u64>,
}

impl Losses {
    /// Counts one value that was left out.
    pub fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    /// Counts a value that was left out if it was there at all.
    pub fn count_some<T>(&mut self, name: &'static str, value: Option<&T>) {
        if value.is_some() {
            self.count(name);
        }
    }

    /// Whether nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// What was left out and how often, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(name, count)| (*name, *count))
    }

    /// Adds the counts of another.
    pub fn add(&mut self, other: &Self) {
        for (name, count) in other.iter() {
            *self.counts.entry(name).or_default() += count;
        }
    }
}
