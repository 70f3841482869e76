//! What forwarding remembers of its backend from pass to pass: `<state>/forward.json`.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, Durability};

const FILE: &str = "forward.json";

/// The longest that a backend may ask to be left alone, in nanoseconds: an hour.
const LONGEST_WAIT_NS: u64 = 3_600_000_000_000;

/// What is known of one backend.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    /// Its URL, without its query; another one is another backend.
    backend: String,
    /// It has taken a line at least once, so URL, form and token are right.
    pub(super) has_accepted: bool,
    /// It asked to be left alone until then, nanoseconds since the epoch.
    not_before_ns: Option<u64>,
}

/// Why the file could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}; the state folder must be readable and writable, and its disk not full")]
pub struct MemoryError {
    path: PathBuf,
    source: io::Error,
}

impl Memory {
    /// What is known of `backend`; nothing, where the file is missing, damaged or of another.
    #[must_use]
    pub(super) fn load(state: &Path, backend: &str) -> Self {
        let text = std::fs::read(state.join(FILE)).unwrap_or_default();
        let known: Option<Self> = serde_json::from_slice(&text).ok();
        let known = known.filter(|known| known.backend == backend);
        known.unwrap_or_else(|| Self { backend: backend.to_owned(), ..Self::default() })
    }

    /// Writes it down.
    ///
    /// # Errors
    /// [`MemoryError`]; the old content then stands.
    pub(super) fn store(&self, state: &Path) -> Result<(), MemoryError> {
        let path = state.join(FILE);
        serde_json::to_vec(self)
            .map_err(io::Error::other)
            .and_then(|text| atomic_file::replace(&path, &text, 0o600, Durability::ProcessDeath))
            .map_err(|source| MemoryError { path, source })
    }

    /// The backend asked to be left alone until `until_ns`, at most for an hour.
    pub(super) fn leave_alone_until(&mut self, until_ns: u64, now_ns: u64) {
        self.not_before_ns = Some(until_ns.min(now_ns.saturating_add(LONGEST_WAIT_NS)));
    }

    /// How many nanoseconds it wants to be left alone from now on. A clock that was set back does
    /// not make it longer than an hour.
    #[must_use]
    pub(super) fn wait_ns(&self, now_ns: u64) -> Option<u64> {
        let wait_ns = self.not_before_ns?.checked_sub(now_ns)?;
        (wait_ns > 0 && wait_ns <= LONGEST_WAIT_NS).then_some(wait_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_of_one_backend() {
        let state = tempfile::tempdir().unwrap();
        let mut memory = Memory::load(state.path(), "http://a/");
        assert!(!memory.has_accepted);
        memory.has_accepted = true;
        memory.store(state.path()).unwrap();
        assert_eq!(Memory::load(state.path(), "http://a/"), memory);
        assert!(!Memory::load(state.path(), "http://b/").has_accepted);
        atomic_file::replace(&state.path().join(FILE), b"{", 0o600, Durability::ProcessDeath)
            .unwrap();
        assert!(!Memory::load(state.path(), "http://a/").has_accepted);
    }

    #[test]
    fn a_backend_is_left_alone_as_long_as_it_asks_but_no_longer_than_an_hour() {
        let mut memory = Memory::default();
        assert_eq!(memory.wait_ns(5), None);
        memory.leave_alone_until(100, 5);
        assert_eq!(memory.wait_ns(40), Some(60));
        assert_eq!(memory.wait_ns(100), None);
        memory.leave_alone_until(u64::MAX, 5);
        assert_eq!(memory.wait_ns(5), Some(LONGEST_WAIT_NS));
        assert_eq!(memory.wait_ns(4), None, "the clock was set back");
    }
}
