//! What is wrong with `/proc` itself, as opposed to one process in it.

use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::Unread;

/// `/proc` as a whole cannot be used; nothing can be said about any process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProcError {
    /// It could not be opened or listed.
    #[error("{}: {}; is a proc file system mounted there?", path.display(), errno.desc())]
    Unreadable {
        /// What was opened.
        path: PathBuf,
        /// What the kernel said.
        errno: Errno,
    },
    /// It was opened and could not be read.
    #[error("{}: {reason}", path.display())]
    Unread {
        /// What was read.
        path: PathBuf,
        /// Why that did not work.
        reason: Unread,
    },
    /// It does not say what it says on every Linux.
    #[error("{}: expected {expected}; is it a proc file system of Linux?", path.display())]
    Malformed {
        /// What was read.
        path: PathBuf,
        /// What should have been there.
        expected: &'static str,
    },
}

impl ProcError {
    pub(super) fn unreadable(path: &Path, errno: Errno) -> Self {
        Self::Unreadable { path: path.to_owned(), errno }
    }

    /// The kernel's number for it, as near as there is one.
    pub(super) fn errno(&self) -> Errno {
        match self {
            Self::Unreadable { errno, .. } => *errno,
            Self::Unread { .. } | Self::Malformed { .. } => Errno::EIO,
        }
    }
}
