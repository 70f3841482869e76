//! What one pass carries to the next: `<state>/carried.json`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, Durability};
use crate::forward;
use crate::otlp::cumulative::Totals;

/// The file's name in the state folder.
pub const FILE: &str = "carried.json";

/// Carried from pass to pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// Where the last committed window ended, and the next begins; nanoseconds since the epoch.
    pub window_end_ns: Option<u64>,
    /// For cumulative destinations.
    pub totals: Totals,
    /// Points that got lost on the way and that no export has told of yet, by the request that
    /// they were in: a name counts once, however often a killed pass comes back to it.
    pub owed: BTreeMap<String, Owed>,
    /// What became of event logs' lines and no export has told of yet.
    pub forwarded: Forwarded,
    /// When a pass last delivered everything, nanoseconds since the epoch.
    pub last_success_ns: Option<u64>,
    /// How long the last finished pass took, in nanoseconds.
    pub last_duration_ns: Option<u64>,
}

/// What was forwarded, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Forwarded {
    /// Lines that the backend has taken.
    pub lines: u64,
    /// Bytes of the request bodies that brought them there.
    pub bytes: u64,
    /// Lines that were set aside, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Requests that were sent once more.
    pub retries: u64,
    /// Logs that are not read, by reason.
    pub unread: BTreeMap<String, u64>,
}

/// Points of one request that the destination does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owed {
    /// Who gave them up.
    pub by: GivenUpBy,
    /// The metric's attribute.
    pub reason: String,
    /// How many.
    pub points: u64,
}

/// Who gave points up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GivenUpBy {
    /// The spool's limits: `warpgauge.export.dropped_points`.
    Spool,
    /// The receiver: `warpgauge.export.rejected_points`.
    Receiver,
}

/// Why the file could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}; the state folder must be readable and writable, and its disk not full")]
pub struct CarriedError {
    path: PathBuf,
    source: io::Error,
}

impl Forwarded {
    /// Adds what another pass did.
    pub fn add(&mut self, forwarded: &forward::Forwarded) {
        self.lines += forwarded.lines;
        self.bytes += forwarded.bytes;
        self.retries += forwarded.retries;
        for (sums, skips) in
            [(&mut self.refused, &forwarded.refused), (&mut self.unread, &forwarded.unread)]
        {
            for (reason, skip) in skips.iter() {
                *sums.entry(reason.to_owned()).or_insert(0) += skip.count;
            }
        }
    }
}

impl Carried {
    /// Reads what the last pass left. A missing file is a first pass; a damaged one too, with a
    /// warning: cumulative series then start again, which receivers know as a reset.
    ///
    /// # Errors
    /// [`CarriedError`] when the file is there but cannot be read.
    pub fn load(state: &Path) -> Result<Self, CarriedError> {
        let path = state.join(FILE);
        match std::fs::read(&path) {
            Ok(text) => Ok(serde_json::from_slice(&text).unwrap_or_else(|fault| {
                tracing::warn!(
                    "{}: {fault}; starting anew, cumulative series restart",
                    path.display()
                );
                Self::default()
            })),
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(CarriedError { path, source }),
        }
    }

    /// Writes it for the next pass.
    ///
    /// # Errors
    /// [`CarriedError`]; the old file then stands.
    pub fn store(&self, state: &Path, durability: Durability) -> Result<(), CarriedError> {
        let path = state.join(FILE);
        self.to_json()
            .and_then(|text| atomic_file::replace(&path, &text, 0o600, durability))
            .map_err(|source| CarriedError { path, source })
    }

    /// What it must survive. Totals and owed points are nowhere else; the rest is worth less than
    /// an fsync each minute.
    #[must_use]
    pub fn durability(&self) -> Durability {
        if self.owed.is_empty() && self.totals == Totals::default() {
            Durability::ProcessDeath
        } else {
            Durability::PowerCut
        }
    }

    /// As the file holds it.
    ///
    /// # Errors
    /// None in practice: every part of it has a JSON form.
    pub fn to_json(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(io::Error::other)
    }

    /// The owed points by who gave them up and why.
    #[must_use]
    pub fn owed_by_reason(&self) -> BTreeMap<(GivenUpBy, &str), u64> {
        let mut sums = BTreeMap::new();
        for owed in self.owed.values() {
            *sums.entry((owed.by, owed.reason.as_str())).or_insert(0) += owed.points;
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_reads_back_and_damage_reads_as_a_first_pass() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(Carried::load(state.path()).unwrap(), Carried::default());
        let owed = Owed { by: GivenUpBy::Spool, reason: "too_old".into(), points: 7 };
        let carried = Carried {
            window_end_ns: Some(5),
            owed: BTreeMap::from([
                ("1-2/0000.otlp".into(), owed.clone()),
                ("1-2/0001.otlp".into(), owed),
            ]),
            ..Carried::default()
        };
        carried.store(state.path(), Durability::PowerCut).unwrap();
        let read = Carried::load(state.path()).unwrap();
        assert_eq!(read, carried);
        assert_eq!(read.owed_by_reason()[&(GivenUpBy::Spool, "too_old")], 14);
        atomic_file::replace(&state.path().join(FILE), b"{", 0o600, Durability::PowerCut).unwrap();
        assert_eq!(Carried::load(state.path()).unwrap(), Carried::default());
    }
}
