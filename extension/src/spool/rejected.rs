//! What the receiver refused for good, for a person to look at.
//!
//! ```text
//! <state>/rejected/<window>-0000.otlp    the request
//! <state>/rejected/<window>-0000.txt     the receiver's words
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use super::{At as _, Pending, SpoolError, remove_if_there};
use crate::atomic_file::{self, Durability};

/// How many refused requests are kept; the oldest goes first.
pub const MAX_REJECTED: usize = 256;

/// The folder of refused requests.
#[derive(Debug)]
pub struct Rejected {
    folder: PathBuf,
}

impl Rejected {
    /// Opens it, making the folder where it is missing.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn open(state: &Path) -> Result<Self, SpoolError> {
        let folder = state.join("rejected");
        fs::create_dir_all(&folder).at(&folder)?;
        Ok(Self { folder })
    }

    /// Writes down what the receiver said of a request, before that is set aside; returns where it
    /// will lie.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn keep_words(&self, request: &Pending, words: &str) -> Result<PathBuf, SpoolError> {
        let path = self.place_of(request);
        let words_path = path.with_extension("txt");
        atomic_file::replace(&words_path, words.as_bytes(), 0o600, Durability::ProcessDeath)
            .at(&words_path)?;
        Ok(path)
    }

    /// Sets a request aside.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn take(&self, request: &Pending) -> Result<(), SpoolError> {
        let path = self.place_of(request);
        fs::rename(&request.path, &path).at(&path)
    }

    fn place_of(&self, request: &Pending) -> PathBuf {
        self.folder.join(request.name.replace('/', "-"))
    }

    /// Keeps the folder within its bound. Words go with their request: without it they are of no use.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub fn sweep(&self) -> Result<(), SpoolError> {
        let mut requests = Vec::new();
        let mut words = Vec::new();
        for entry in fs::read_dir(&self.folder).at(&self.folder)? {
            let path = entry.at(&self.folder)?.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("otlp") => requests.push(path),
                // `new`: words that a killed pass was writing.
                Some("txt" | "new") => words.push(path),
                _ => {}
            }
        }
        requests.sort_unstable();
        let kept = requests.split_off(requests.len().saturating_sub(MAX_REJECTED));
        let orphans = words.iter().filter(|path| !kept.contains(&path.with_extension("otlp")));
        requests.iter().chain(orphans).try_for_each(|path| remove_if_there(path))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Commit, Spool};
    use super::*;
    use crate::otlp::chunks::Chunk;
    use crate::otlp::mapping::Window;

    #[test]
    fn a_refused_request_is_set_aside_with_the_receivers_words_and_their_number_is_bounded() {
        let state = tempfile::tempdir().unwrap();
        let (spool, rejected) =
            (Spool::open(state.path()).unwrap(), Rejected::open(state.path()).unwrap());
        for start_ns in 0..MAX_REJECTED as u64 + 3 {
            let commit = Commit {
                window: Window { start_ns, end_ns: start_ns + 1 },
                chunks: &[Chunk { request: vec![0], points: 1 }],
                counted: b"",
                refused: b"",
                after: &[],
                durability: Durability::ProcessDeath,
            };
            spool.commit(&commit).unwrap();
            let pending = spool.pending().unwrap();
            let path = rejected.keep_words(&pending[0], "no such metric").unwrap();
            rejected.take(&pending[0]).unwrap();
            rejected.sweep().unwrap();
            assert_eq!(fs::read(&path).unwrap(), [0]);
            assert_eq!(fs::read(path.with_extension("txt")).unwrap(), b"no such metric");
        }
        assert_eq!(rejected.folder.read_dir().unwrap().count(), 2 * MAX_REJECTED);
        assert_eq!(spool.pending().unwrap(), []);
    }
}
