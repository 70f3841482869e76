//! Files that are not read: each is counted and named when it is first met, not at every pass.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::skips::Skips;

/// Most refusals that are remembered; further ones count again at each pass.
const MOST_REMEMBERED: usize = 1_000;

/// What this pass and the one before met.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Refusals {
    told: BTreeSet<String>,
    #[serde(skip)]
    met: BTreeSet<String>,
    #[serde(skip)]
    pub(super) new: Skips,
}

impl Refusals {
    /// Notes what is not read, and why.
    pub(super) fn note(&mut self, reason: &'static str, what: String) {
        let entry = format!("{reason} {what}");
        let is_known = self.told.contains(&entry) || self.met.contains(&entry);
        if self.met.len() < MOST_REMEMBERED {
            self.met.insert(entry);
        }
        if !is_known {
            self.new.note(reason, || what);
        }
    }

    /// Ends a look at all files: what was not met again is forgotten.
    pub(super) fn turn(&mut self) -> Skips {
        self.told = std::mem::take(&mut self.met);
        std::mem::take(&mut self.new)
    }
}
