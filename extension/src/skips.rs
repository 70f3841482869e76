//! Whatever is skipped is counted, and named once: one count and one example for each reason.

use std::collections::BTreeMap;

/// What was skipped, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skips {
    by_reason: BTreeMap<&'static str, Skip>,
}

/// All that was skipped for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// How often.
    pub count: u64,
    /// The first of them: where it stood and what was wrong, for people.
    pub example: String,
}

impl Skips {
    /// Counts one; `example` is only called for the first of its reason.
    pub fn note(&mut self, reason: &'static str, example: impl FnOnce() -> String) {
        self.note_many(reason, 1, example);
    }

    /// Counts several of one reason.
    pub fn note_many(
        &mut self,
        reason: &'static str,
        count: u64,
        example: impl FnOnce() -> String,
    ) {
        if count > 0 {
            let skip = self
                .by_reason
                .entry(reason)
                .or_insert_with(|| Skip { count: 0, example: example() });
            skip.count += count;
        }
    }

    /// Takes in what another worker skipped.
    pub fn merge(&mut self, other: Self) {
        for (reason, skip) in other.by_reason {
            self.note_many(reason, skip.count, || skip.example);
        }
    }

    /// The same with more said in each example.
    #[must_use]
    pub fn with_examples(mut self, say: impl Fn(&str) -> String) -> Self {
        for skip in self.by_reason.values_mut() {
            skip.example = say(&skip.example);
        }
        self
    }

    /// Every reason with its count and example, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Skip)> {
        self.by_reason.iter().map(|(reason, skip)| (*reason, skip))
    }

    /// How often a reason occurred.
    #[must_use]
    pub fn count(&self, reason: &str) -> u64 {
        self.by_reason.get(reason).map_or(0, |skip| skip.count)
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_reason.values().map(|skip| skip.count).sum()
    }

    /// One warning for each reason.
    pub fn log(&self, what: &str) {
        for (reason, Skip { count, example }) in self.iter() {
            tracing::warn!("{what}: {count} x {reason}, the first: {example}");
        }
    }
}
