//! No two passes overlap: one advisory lock on `<state>/lock`.
//!
//! The kernel drops the lock with the process that holds it, however that ends, so there is no
//! stale lock to clean up.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs2::FileExt;

/// Held until dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another pass, or `warpgauge control`, is at work.
    #[error("{path} is held by another warpgauge{holder}; this one ends without doing anything")]
    Taken {
        /// The lock file.
        path: PathBuf,
        /// ` (pid N)` where the file says so.
        holder: String,
    },
    /// The file could not be opened or locked.
    #[error("{path}: {source}; the state folder must be writable for the user that runs warpgauge")]
    Unusable {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Lock {
    /// Takes the lock, or says at once that it is taken.
    ///
    /// # Errors
    /// [`LockError::Taken`] when somebody holds it, else [`LockError::Unusable`].
    pub fn take(state: &Path) -> Result<Self, LockError> {
        let path = state.join("lock");
        let unusable = |source| LockError::Unusable { path: path.clone(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(unusable)?;
        match FileExt::try_lock_exclusive(&file) {
            Ok(()) => {}
            Err(source) if source.kind() == io::ErrorKind::WouldBlock => {
                let holder = io::read_to_string(&file).unwrap_or_default();
                let holder = match holder.trim() {
                    "" => String::new(),
                    pid => format!(" (pid {pid})"),
                };
                return Err(LockError::Taken { path, holder });
            }
            Err(source) => return Err(unusable(source)),
        }
        // For people who find the lock taken; nothing depends on it. Emptying the file first would
        // give its block back to the disk, and have it taken again, each minute.
        let holder = format!("{}\n", std::process::id());
        let written =
            file.write_all(holder.as_bytes()).and_then(|()| file.set_len(holder.len() as u64));
        written.map_err(unusable)?;
        Ok(Self { _file: file })
    }

    /// Takes the lock, waiting for its holder up to `patience`.
    ///
    /// # Errors
    /// As [`Lock::take`].
    pub fn wait(state: &Path, patience: Duration) -> Result<Self, LockError> {
        let end = Instant::now() + patience;
        loop {
            match Self::take(state) {
                Err(LockError::Taken { .. }) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                outcome => return outcome,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_finds_it_taken_until_the_first_lets_go() {
        let state = tempfile::tempdir().unwrap();
        let first = Lock::take(state.path()).unwrap();
        let fault = Lock::take(state.path()).unwrap_err();
        assert!(matches!(fault, LockError::Taken { .. }));
        assert!(fault.to_string().contains(&format!("pid {}", std::process::id())));
        drop(first);
        Lock::wait(state.path(), Duration::from_secs(5)).unwrap();
    }
}
