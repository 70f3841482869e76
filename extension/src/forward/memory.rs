//! What forwarding remembers of its backend from pass to pass: `<state>/forward.json`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

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

    /// The backend asks to be left alone for so long; an hour at most is granted.
    pub(super) fn leave_alone_for(&mut self, wish: Duration) {
        let wish_ns = u64::try_from(wish.as_nanos()).unwrap_or(u64::MAX).min(LONGEST_WAIT_NS);
        self.not_before_ns = Some(unix_now_ns().saturating_add(wish_ns));
    }

    /// How much longer it wants to be left alone, in seconds.
    pub(super) fn seconds_to_wait(&self) -> Option<u64> {
        self.seconds_to_wait_at(unix_now_ns())
    }

    /// A clock that was set back makes nobody wait longer than an hour.
    fn seconds_to_wait_at(&self, now_ns: u64) -> Option<u64> {
        let wait_ns = self.not_before_ns?.checked_sub(now_ns)?;
        (wait_ns > 0 && wait_ns <= LONGEST_WAIT_NS).then_some(wait_ns.div_ceil(1_000_000_000))
    }
}

/// The wall clock, nanoseconds since the epoch.
pub(super) fn unix_now_ns() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
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
        assert_eq!(memory.seconds_to_wait(), None);
        memory.leave_alone_for(Duration::from_secs(600));
        assert!((1..=600).contains(&memory.seconds_to_wait().unwrap()));
        memory.leave_alone_for(Duration::MAX);
        assert!((600..=3_600).contains(&memory.seconds_to_wait().unwrap()));
        memory.not_before_ns = Some(LONGEST_WAIT_NS + 7);
        assert_eq!(memory.seconds_to_wait_at(7), Some(3_600));
        assert_eq!(memory.seconds_to_wait_at(LONGEST_WAIT_NS + 6), Some(1));
        assert_eq!(memory.seconds_to_wait_at(LONGEST_WAIT_NS + 7), None);
        assert_eq!(memory.seconds_to_wait_at(6), None, "the clock was set back");
    }
}
