//! What is not yet acknowledged.
//!
//! ```text
//! <state>/spool/<start ns>-<end ns>/     one window, appears whole by one rename: the commit
//!     0000.otlp ...                      requests, removed one by one as they are acknowledged
//!     after.json, ...                    what the pass carries on, once the window counts
//!     counted                            files that the window has counted, to be removed
//!     refused                            entries that it has refused, to be quarantined
//! <state>/spool/.new                     a window being written
//! ```
//!
//! A window's numbers, the names of the files that they came from and the totals after it become
//! true in the same instant. Killed before, the files are read again; killed after, they are
//! removed by the next pass and never counted twice. What those names look like is the business of
//! whoever commits them.

pub mod rejected;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::atomic_file::{self, Durability};
use crate::config::SpoolLimits;
use crate::otlp::chunks::{Chunk, points_of};
use crate::otlp::mapping::Window;

const COUNTED: &str = "counted";
const REFUSED: &str = "refused";

/// The spool of one state folder.
#[derive(Debug)]
pub struct Spool {
    root: PathBuf,
}

/// Everything that becomes true in one instant.
#[derive(Debug)]
pub struct Commit<'a> {
    /// Its times.
    pub window: Window,
    /// Its requests.
    pub chunks: &'a [Chunk],
    /// The files that it has counted.
    pub counted: &'a [u8],
    /// The entries that it has refused.
    pub refused: &'a [u8],
    /// What the pass carries on: files that take the place of others once the window counts.
    pub after: &'a [After<'a>],
    /// What it must survive.
    pub durability: Durability,
}

/// A file that a pass carries on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct After<'a> {
    /// Its name within the window's folder.
    pub name: &'static str,
    /// What it holds.
    pub content: &'a [u8],
}

/// One committed window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    folder: PathBuf,
    name: String,
    /// Its times.
    pub window: Window,
}

/// A request of a window that waits for its acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    path: PathBuf,
    /// `<window>/<chunk>`: its identity through all passes.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// End of its window, nanoseconds since the epoch.
    pub end_ns: u64,
}

/// Why a limit takes a request out of the spool. Each is a `reason` of
/// `warpgauge.export.dropped_points`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// The spool holds more bytes than `spool.max_size`.
    Full,
    /// It waited longer than `spool.max_age`.
    TooOld,
}

impl Excess {
    /// The metric's attribute.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Full => "spool_full",
            Self::TooOld => "too_old",
        }
    }
}

/// Why the spool cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}; the state folder must be writable, and its disk not full")]
pub struct SpoolError {
    path: PathBuf,
    source: io::Error,
}

trait At<T> {
    fn at(self, path: &Path) -> Result<T, SpoolError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, SpoolError> {
        self.map_err(|source| SpoolError { path: path.to_owned(), source })
    }
}

impl Spool {
    /// Opens the spool, making its folder where it is missing and removing what a killed pass
    /// did not finish writing.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn open(state: &Path) -> Result<Self, SpoolError> {
        let spool = Self::look(state);
        fs::create_dir_all(&spool.root).at(&spool.root)?;
        let unfinished = spool.unfinished();
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).at(&unfinished)?;
        }
        Ok(spool)
    }

    /// The spool to look at: nothing is made or removed.
    #[must_use]
    pub fn look(state: &Path) -> Self {
        Self { root: state.join("spool") }
    }

    /// Commits a window: from the return of this on, its numbers will be sent and its files never
    /// be counted again.
    ///
    /// # Errors
    /// [`SpoolError`]; nothing then counts.
    pub fn commit(&self, commit: &Commit<'_>) -> Result<Entry, SpoolError> {
        let Commit { window, chunks, durability, .. } = *commit;
        let unfinished = self.unfinished();
        fs::create_dir(&unfinished).at(&unfinished)?;
        let write = |name: &str, content: &[u8]| {
            let path = unfinished.join(name);
            atomic_file::write_new(&path, content, 0o600, durability).at(&path)
        };
        for (number, chunk) in chunks.iter().enumerate() {
            write(&format!("{number:04}.otlp"), &chunk.request)?;
        }
        for (name, content) in [(COUNTED, commit.counted), (REFUSED, commit.refused)] {
            if !content.is_empty() {
                write(name, content)?;
            }
        }
        for After { name, content } in commit.after {
            write(name, content)?;
        }
        let name = format!("{:020}-{:020}", window.start_ns, window.end_ns);
        let folder = self.root.join(&name);
        if durability == Durability::PowerCut {
            atomic_file::sync_folder(&unfinished).at(&unfinished)?;
        }
        fs::rename(&unfinished, &folder).at(&folder)?;
        if durability == Durability::PowerCut {
            atomic_file::sync_folder(&self.root).at(&self.root)?;
        }
        Ok(Entry { folder, name, window })
    }

    /// The committed windows, oldest first.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn entries(&self) -> Result<Vec<Entry>, SpoolError> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.root).at(&self.root)? {
            let entry = entry.at(&self.root)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(window) = parse_window(&name) {
                entries.push(Entry { folder: entry.path(), name, window });
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Every request that waits, oldest first.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn pending(&self) -> Result<Vec<Pending>, SpoolError> {
        let mut pending = Vec::new();
        for entry in self.entries()? {
            pending.extend(entry.pending()?);
        }
        Ok(pending)
    }

    /// Which of the waiting requests the limits take out: those that are too old, then the oldest
    /// until the rest fits.
    #[must_use]
    pub fn excess(
        pending: &[Pending],
        limits: &SpoolLimits,
        now_ns: u64,
    ) -> Vec<(Pending, Excess)> {
        let max_age = u64::try_from(limits.max_age.as_nanos()).unwrap_or(u64::MAX);
        let mut bytes: u64 = pending.iter().map(|request| request.size).sum();
        let mut excess = Vec::new();
        for request in pending {
            let reason = if now_ns.saturating_sub(request.end_ns) > max_age {
                Excess::TooOld
            } else if bytes > limits.max_bytes {
                Excess::Full
            } else {
                continue;
            };
            bytes -= request.size;
            excess.push((request.clone(), reason));
        }
        excess
    }

    /// Removes a request that was acknowledged or given up.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn remove(&self, request: &Pending) -> Result<(), SpoolError> {
        remove_if_there(&request.path)
    }

    /// Removes windows of which nothing is left to do.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn sweep(&self) -> Result<(), SpoolError> {
        for entry in self.entries()? {
            match fs::remove_dir(&entry.folder) {
                Err(fault) if fault.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                outcome => outcome.at(&entry.folder)?,
            }
        }
        Ok(())
    }

    fn unfinished(&self) -> PathBuf {
        self.root.join(".new")
    }
}

impl Entry {
    /// Puts a file that its pass carries on where it belongs, unless that was done.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn apply_after(&self, name: &str, target: &Path) -> Result<(), SpoolError> {
        match fs::rename(self.folder.join(name), target) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome.at(target),
        }
    }

    /// The files that the window counted, while they may still stand; then nothing.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn counted(&self) -> Result<Vec<u8>, SpoolError> {
        self.list(COUNTED)
    }

    /// The entries that the window refused, while they may still stand; then nothing.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn refused(&self) -> Result<Vec<u8>, SpoolError> {
        self.list(REFUSED)
    }

    /// Forgets the counted files, once none stands any more or a later window remembers those that
    /// do.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn forget_counted(&self) -> Result<(), SpoolError> {
        remove_if_there(&self.folder.join(COUNTED))
    }

    /// Forgets the refused entries, once they are put away.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn forget_refused(&self) -> Result<(), SpoolError> {
        remove_if_there(&self.folder.join(REFUSED))
    }

    fn list(&self, name: &str) -> Result<Vec<u8>, SpoolError> {
        let path = self.folder.join(name);
        match fs::read(&path) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            outcome => outcome.at(&path),
        }
    }

    fn pending(&self) -> Result<Vec<Pending>, SpoolError> {
        let mut pending = Vec::new();
        for file in fs::read_dir(&self.folder).at(&self.folder)? {
            let file = file.at(&self.folder)?;
            let path = file.path();
            if path.extension().is_some_and(|extension| extension == "otlp") {
                let size = file.metadata().at(&path)?.len();
                let name = format!("{}/{}", self.name, file.file_name().to_string_lossy());
                pending.push(Pending { path, name, size, end_ns: self.window.end_ns });
            }
        }
        pending.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(pending)
    }
}

impl Pending {
    /// The request's bytes, the same at every attempt.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn read(&self) -> Result<Vec<u8>, SpoolError> {
        fs::read(&self.path).at(&self.path)
    }

    /// How many points it holds.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn points(&self) -> Result<u64, SpoolError> {
        self.read().map(|request| points_of(&request) as u64)
    }

    /// How long it has waited.
    #[must_use]
    pub fn age(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(now_ns.saturating_sub(self.end_ns))
    }
}

fn remove_if_there(path: &Path) -> Result<(), SpoolError> {
    match fs::remove_file(path) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome.at(path),
    }
}

fn parse_window(name: &str) -> Option<Window> {
    let (start, end) = name.split_once('-')?;
    Some(Window { start_ns: start.parse().ok()?, end_ns: end.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: SpoolLimits = SpoolLimits { max_bytes: 10, max_age: Duration::from_nanos(1_000) };

    fn chunk(byte: u8, size: usize) -> Chunk {
        Chunk { request: vec![byte; size], points: 1 }
    }

    fn commit(spool: &Spool, start_ns: u64, chunks: &[Chunk]) -> Entry {
        let window = Window { start_ns, end_ns: start_ns + 60 };
        let durability = Durability::ProcessDeath;
        let (counted, refused) = (b"some files\n", b"");
        let after = &[After { name: "after.json", content: b"{}" }];
        spool.commit(&Commit { window, chunks, counted, refused, after, durability }).unwrap()
    }

    #[test]
    fn what_was_committed_waits_oldest_first_until_it_is_removed() {
        let state = tempfile::tempdir().unwrap();
        let spool = Spool::open(state.path()).unwrap();
        commit(&spool, 100, &[chunk(2, 3)]);
        commit(&spool, 20, &[chunk(0, 1), chunk(1, 2)]);
        let spool = Spool::open(state.path()).unwrap();
        let pending = spool.pending().unwrap();
        let bytes: Vec<_> = pending.iter().map(|request| request.read().unwrap()).collect();
        assert_eq!(bytes, [vec![0], vec![1, 1], vec![2, 2, 2]]);
        for request in &pending {
            spool.remove(request).unwrap();
        }
        for entry in spool.entries().unwrap() {
            assert_eq!(entry.counted().unwrap(), b"some files\n");
            assert_eq!(entry.refused().unwrap(), b"");
            entry.apply_after("after.json", &state.path().join("carried.json")).unwrap();
            entry.forget_counted().unwrap();
        }
        spool.sweep().unwrap();
        assert_eq!(spool.entries().unwrap(), []);
        assert!(state.path().join("carried.json").exists());
    }

    #[test]
    fn what_a_killed_pass_did_not_finish_writing_never_counts() {
        let state = tempfile::tempdir().unwrap();
        let spool = Spool::open(state.path()).unwrap();
        let unfinished = spool.unfinished();
        fs::create_dir(&unfinished).unwrap();
        let half = unfinished.join("0000.otlp");
        atomic_file::write_new(&half, b"half", 0o600, Durability::ProcessDeath).unwrap();
        let spool = Spool::open(state.path()).unwrap();
        assert!(!unfinished.exists());
        assert_eq!(spool.pending().unwrap(), []);
    }

    #[test]
    fn the_oldest_goes_first_when_the_spool_is_full_or_too_old() {
        let state = tempfile::tempdir().unwrap();
        let spool = Spool::open(state.path()).unwrap();
        for start_ns in [0, 2_000, 2_100] {
            commit(&spool, start_ns, &[chunk(0, 8)]);
        }
        let pending = spool.pending().unwrap();
        let reasons = |now_ns| -> Vec<_> {
            Spool::excess(&pending, &LIMITS, now_ns).into_iter().map(|(_, reason)| reason).collect()
        };
        assert_eq!(reasons(2_200), [Excess::TooOld, Excess::Full]);
        assert_eq!(reasons(100), [Excess::Full, Excess::Full]);
    }
}
