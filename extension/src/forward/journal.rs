//! The lines that were settled since the cursors were written last: `<state>/forward.journal`.
//!
//! ```text
//! a record    family   offset   line      three little-endian u64: a hash, a number, a hash
//! ```
//!
//! The cursors lie on the disk for good, which takes an fsync; that is too dear for each line. A
//! record here takes one write, which the death of the pass does not undo. The next pass moves the
//! cursors behind the lines that have a record, and no line that was acknowledged goes out again.
//! After a power cut some do.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use warpgauge_formats::lines::Line;

use crate::follow::FileId;

/// Bytes of a record.
const RECORD: usize = 24;

/// Most records before the cursors are written: 768 KiB.
const MOST: usize = 32_768;

/// A line that needs nothing more, as its record says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Settled {
    family: u64,
    offset: u64,
    line: u64,
}

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}; the state folder must be readable and writable, and its disk not full")]
pub struct JournalError {
    path: PathBuf,
    source: io::Error,
}

/// The records.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// Each, and how often it is there.
    records: HashMap<Settled, usize>,
    length: usize,
}

impl Settled {
    /// A line of a log. The family, not the path: the log may be rotated before the next pass.
    pub(super) fn new(file: &FileId, line: &Line<'_>) -> Self {
        let (family, text) = (hash(file.family.as_bytes()), hash(line.bytes));
        Self { family, offset: line.offset, line: text }
    }

    fn to_bytes(self) -> impl Iterator<Item = u8> {
        [self.family, self.offset, self.line].into_iter().flat_map(u64::to_le_bytes)
    }

    fn from_bytes(record: &[u8]) -> Option<Self> {
        let number = |at| record.get(at..at + 8)?.try_into().map(u64::from_le_bytes).ok();
        Some(Self { family: number(0)?, offset: number(8)?, line: number(16)? })
    }
}

/// The same in each process of one build; of another build, lines go out once more.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

impl Journal {
    /// Opens the journal, in which there may be what a killed pass had settled.
    ///
    /// # Errors
    /// [`JournalError`].
    pub(super) fn open(state: &Path) -> Result<Self, JournalError> {
        let path = state.join("forward.journal");
        let open = || {
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
            Ok((file, fs::read(&path)?))
        };
        let (file, bytes) = open().map_err(|source| JournalError { path: path.clone(), source })?;
        let mut journal = Self { path, file, records: HashMap::new(), length: 0 };
        // What is left behind the last whole record was torn by the kill.
        for record in bytes.chunks_exact(RECORD).filter_map(Settled::from_bytes) {
            journal.note(record);
        }
        Ok(journal)
    }

    fn note(&mut self, settled: Settled) {
        *self.records.entry(settled).or_insert(0) += 1;
        self.length += 1;
    }

    /// Remembers lines that were settled together.
    ///
    /// # Errors
    /// [`JournalError`].
    pub(super) fn add(&mut self, settled: &[Settled]) -> Result<(), JournalError> {
        let bytes: Vec<u8> = settled.iter().flat_map(|settled| settled.to_bytes()).collect();
        self.file.write_all(&bytes).map_err(|source| self.error(source))?;
        settled.iter().for_each(|settled| self.note(*settled));
        Ok(())
    }

    /// Whether a line has a record; that counts for one line, and the file keeps it.
    pub(super) fn forget(&mut self, settled: Settled) -> bool {
        match self.records.get_mut(&settled) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }

    /// Whether there is no record.
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether it is time to write the cursors.
    pub(super) fn is_full(&self) -> bool {
        self.length >= MOST
    }

    /// Forgets all, since the cursors know by now.
    ///
    /// # Errors
    /// [`JournalError`].
    pub(super) fn clear(&mut self) -> Result<(), JournalError> {
        self.records.clear();
        self.length = 0;
        self.file.set_len(0).map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> JournalError {
        JournalError { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(family: &str, offset: u64) -> Settled {
        let file =
            FileId { rule: 0, stream: 1, path: "/a.log.1".into(), family: family.into(), stood: 0 };
        let bytes = b"{\"type\":\"a\"}";
        Settled::new(&file, &Line { number: 1, offset, bytes, ended: true, too_long: false })
    }

    #[test]
    fn what_a_killed_pass_had_settled_is_known_to_the_next() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(state.path()).unwrap();
        assert!(journal.is_empty());
        journal.add(&[settled("/a.log", 0), settled("/a.log", 12)]).unwrap();
        journal.add(&[settled("/b.log", 0)]).unwrap();
        drop(journal);
        let path = state.path().join("forward.journal");
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"torn").unwrap();
        let mut journal = Journal::open(state.path()).unwrap();
        assert!(!journal.is_empty());
        assert!(journal.forget(settled("/b.log", 0)));
        assert!(!journal.forget(settled("/b.log", 0)), "it was there once");
        assert!(!journal.forget(settled("/b.log", 12)));
        journal.clear().unwrap();
        assert!(!journal.forget(settled("/a.log", 0)));
        journal.add(&[settled("/c.log", 7)]).unwrap();
        assert!(Journal::open(state.path()).unwrap().forget(settled("/c.log", 7)));
        assert_eq!(path.metadata().unwrap().len(), RECORD as u64);
    }
}
