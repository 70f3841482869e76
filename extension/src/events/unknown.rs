//! Fields and types that a reader does not know: counted, and said once.

use std::collections::BTreeMap;

/// Most names that are kept apart; further ones are counted together.
const MOST: usize = 1_000;

/// The name that stands for all beyond [`MOST`].
const OTHERS: &str = "(others)";

/// Counts by name.
#[derive(Debug, Clone, Default)]
pub struct Unknown {
    seen: BTreeMap<String, Seen>,
}

/// One name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// How often it came.
    pub count: u64,
    /// The line where it came first.
    pub first_line: u64,
}

impl Unknown {
    /// Counts one, and says whether it is the first of its name.
    pub fn note(&mut self, line: u64, name: &str) -> bool {
        let name =
            if self.seen.len() < MOST || self.seen.contains_key(name) { name } else { OTHERS };
        if let Some(seen) = self.seen.get_mut(name) {
            seen.count += 1;
            return false;
        }
        self.seen.insert(name.to_owned(), Seen { count: 1, first_line: line });
        true
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Seen)> {
        self.seen.iter().map(|(name, seen)| (name.as_str(), *seen))
    }

    /// How many there were in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.seen.values().map(|seen| seen.count).sum()
    }
}
