//! The log's files: made anew, never taken over, followed by the next one when they are full.
//!
//! ```text
//! gpumon_trainer_4242.log, gpumon_trainer_4242.1.log, ...2.log     the number rises
//! ```
//!
//! The folder may be everybody's, so that a file is ours only while it is the one that we made: by
//! its device and inode, asked at each write, which opens it anew. A program that closes every
//! descriptor, and a person who moves or removes a file, only make the next one begin. A write that
//! fails half way is taken back, so that lines stay whole.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::libc;

use crate::descriptors::open_above_standard;

const MODE: u32 = 0o644;

/// Files of one process in one folder, and with it the names that are tried.
const MOST_FILES: u32 = 10_000;

/// How large files may grow, and how many of them there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes after which the next file begins.
    pub file_bytes: u64,
    /// Files that are kept; the oldest one goes when there are more.
    pub files: u32,
}

/// The files of one log or of one channel of it.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    stem: String,
    limits: Limits,
    next_number: u32,
    current: Option<Current>,
    full: VecDeque<Full>,
    /// Whether the last write ended in the middle of a line and could not be taken back.
    is_torn: bool,
    removed: u64,
}

#[derive(Debug)]
struct Current {
    path: PathBuf,
    identity: (u64, u64),
    bytes: u64,
    events: u64,
}

#[derive(Debug)]
struct Full {
    path: PathBuf,
    identity: (u64, u64),
    events: u64,
}

/// A file that cannot be made or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct FileError {
    path: PathBuf,
    cause: io::Error,
}

impl Files {
    /// No file yet; the first will be `<stem>.log` in `folder`.
    #[must_use]
    pub fn new(folder: &Path, stem: String, limits: Limits) -> Self {
        Self {
            folder: folder.to_owned(),
            stem,
            limits,
            next_number: 0,
            current: None,
            full: VecDeque::new(),
            is_torn: false,
            removed: 0,
        }
    }

    /// Makes sure that there is a file to append to; true where it is a new one.
    ///
    /// # Errors
    /// What the file system says; the next call tries again.
    pub fn prepare(&mut self) -> Result<bool, FileError> {
        if let Some(current) = &self.current {
            let is_ours = identity_at(&current.path) == Some(current.identity);
            if is_ours && current.bytes < self.limits.file_bytes {
                return Ok(false);
            }
        }
        if let Some(Current { path, identity, events, .. }) = self.current.take() {
            self.full.push_back(Full { path, identity, events });
        }
        self.begin()?;
        while self.full.len() >= self.limits.files.max(1) as usize {
            self.remove_oldest();
        }
        Ok(true)
    }

    /// Appends whole lines that tell so many events to the prepared file.
    ///
    /// # Errors
    /// What the file system says; nothing of the lines stands in the file, or if even that cannot
    /// be had, the next lines begin on a line of their own.
    pub fn append(&mut self, lines: &[u8], events: u64) -> Result<(), FileError> {
        let Some(current) = &mut self.current else {
            let cause = io::Error::from(io::ErrorKind::NotFound);
            return Err(FileError { path: self.folder.join(&self.stem), cause });
        };
        let outcome = append(&current.path, current.identity, lines, &mut self.is_torn);
        match outcome {
            Ok(bytes) => {
                current.bytes = bytes;
                current.events += events;
                Ok(())
            }
            Err(cause) => Err(FileError { path: current.path.clone(), cause }),
        }
    }

    /// The file that is written now.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.current.as_ref().map(|current| current.path.as_path())
    }

    /// Events in files that were removed because there were too many.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.removed
    }

    fn begin(&mut self) -> Result<(), FileError> {
        loop {
            let name = match self.next_number {
                0 => format!("{}.log", self.stem),
                number => format!("{}.{number}.log", self.stem),
            };
            let path = self.folder.join(name);
            match create(&path) {
                Ok(identity) => {
                    self.next_number += 1;
                    self.is_torn = false;
                    self.current = Some(Current { path, identity, bytes: 0, events: 0 });
                    return Ok(());
                }
                // That of a process which had our pid before.
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists
                        && self.next_number < MOST_FILES =>
                {
                    self.next_number += 1;
                }
                Err(cause) => return Err(FileError { path, cause }),
            }
        }
    }

    fn remove_oldest(&mut self) {
        let Some(oldest) = self.full.pop_front() else { return };
        if identity_at(&oldest.path) == Some(oldest.identity)
            && fs::remove_file(&oldest.path).is_ok()
        {
            self.removed += oldest.events;
        }
    }
}

/// Makes a file that was not there and gives its device and inode.
fn create(path: &Path) -> io::Result<(u64, u64)> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true).mode(MODE).custom_flags(libc::O_NOFOLLOW);
    let file = open_above_standard(&options, path)?;
    // The program's umask may have taken the reader's permission away.
    file.set_permissions(Permissions::from_mode(MODE))?;
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Appends to the file of that identity and gives its length.
fn append(path: &Path, identity: (u64, u64), lines: &[u8], torn: &mut bool) -> io::Result<u64> {
    let mut options = OpenOptions::new();
    // Non-blocking, in case somebody put a pipe there.
    options.append(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = open_above_standard(&options, path)?;
    let metadata = file.metadata()?;
    if (metadata.dev(), metadata.ino()) != identity {
        return Err(io::Error::other("is another file now"));
    }
    let before = metadata.len();
    let written = if *torn { (&*file).write_all(b"\n") } else { Ok(()) };
    match written.and_then(|()| (&*file).write_all(lines)) {
        Ok(()) => {
            let bytes = before + lines.len() as u64 + u64::from(*torn);
            *torn = false;
            Ok(bytes)
        }
        Err(error) => {
            // What was torn before still is.
            *torn |= file.set_len(before).is_err();
            Err(error)
        }
    }
}

/// Device and inode of what stands at a path, where that is a plain file.
fn identity_at(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { file_bytes: 10, files: 3 };

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_file_is_followed_by_the_next_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::new(folder.path(), "log".to_owned(), LIMITS);
        for number in 0..5 {
            assert!(files.prepare().unwrap(), "{number}");
            files.append(b"one\n", 1).unwrap();
            assert!(!files.prepare().unwrap(), "{number}");
            files.append(b"two three\n", 2).unwrap();
        }
        assert_eq!(names(folder.path()), ["log.2.log", "log.3.log", "log.4.log"]);
        assert_eq!(files.removed(), 6);
        let text = fs::read_to_string(folder.path().join("log.4.log")).unwrap();
        assert_eq!(text, "one\ntwo three\n");
    }

    #[test]
    fn a_file_of_somebody_else_is_neither_written_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::File::create(&victim).unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("log.log")).unwrap();
        let mut files = Files::new(folder.path(), "log".to_owned(), LIMITS);
        files.prepare().unwrap();
        assert_eq!(files.path(), Some(folder.path().join("log.1.log").as_path()));
        fs::remove_file(folder.path().join("log.1.log")).unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("log.1.log")).unwrap();
        files.append(b"forged\n", 1).unwrap_err();
        assert!(files.prepare().unwrap(), "another one begins");
        files.append(b"ours\n", 1).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"");
        assert_eq!(fs::read(folder.path().join("log.2.log")).unwrap(), b"ours\n");
    }

    #[test]
    fn a_folder_that_comes_late_is_found_when_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let late = folder.path().join("late");
        let mut files = Files::new(&late, "log".to_owned(), LIMITS);
        let error = files.prepare().unwrap_err().to_string();
        assert!(error.contains("late/log.log"), "{error}");
        files.append(b"lost\n", 1).unwrap_err();
        fs::create_dir(&late).unwrap();
        assert!(files.prepare().unwrap());
        files.append(b"kept\n", 1).unwrap();
        assert_eq!(fs::read(late.join("log.log")).unwrap(), b"kept\n");
    }
}
