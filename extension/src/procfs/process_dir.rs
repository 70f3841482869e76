//! One process's folder, held open: every answer is about the same process.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{Mode, fstatat};

use super::maps::MapsScan;
use super::{Mapped, ProcFile, Unread, bounded_read};

/// `/proc/<pid>`, held open. Once its process has ended every question is answered by
/// [`Unread::Vanished`], even when another process has the pid by then.
#[derive(Debug)]
pub struct ProcessDir {
    pid: u32,
    dir: OwnedFd,
}

/// The executable of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exe {
    /// Its path as the process's own root has it.
    pub path: Vec<u8>,
    /// Whether the file has been removed or replaced since.
    pub deleted: bool,
}

impl Exe {
    /// The last part of the path.
    pub fn file_name(&self) -> &[u8] {
        self.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
    }
}

impl ProcessDir {
    pub(super) fn open(proc_dir: BorrowedFd<'_>, pid: u32) -> Result<Self, Unread> {
        // `O_PATH` needs no right to list the folder, only to pass through it.
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let dir = openat(proc_dir, pid.to_string().as_str(), flags, Mode::empty())?;
        Ok(Self { pid, dir })
    }

    /// The pid under which it was opened.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Replaces the content of `buffer` by a whole file.
    ///
    /// # Errors
    /// [`Unread`] says why there is no answer, [`Unread::TooLarge`] beyond [`ProcFile::limit`].
    pub fn read(&self, file: ProcFile, buffer: &mut Vec<u8>) -> Result<(), Unread> {
        self.open_file(file)
            .and_then(|open| bounded_read::read_to_end(open, buffer, file.limit()))
            .map_err(|reason| self.or_vanished(reason))
    }

    /// The executable; `None` for what has none: a kernel thread, or a process that is ending.
    ///
    /// # Errors
    /// [`Unread`] says why there is no answer.
    pub fn exe(&self) -> Result<Option<Exe>, Unread> {
        let target = match readlinkat(&self.dir, ProcFile::Exe.name()) {
            Ok(target) => target.into_vec(),
            Err(Errno::ENOENT) if !self.has_vanished() => return Ok(None),
            Err(errno) => return Err(self.or_vanished(errno.into())),
        };
        Ok(Some(match target.strip_suffix(b" (deleted)") {
            Some(path) => Exe { path: path.to_vec(), deleted: true },
            None => Exe { path: target, deleted: false },
        }))
    }

    /// Which libraries that matter here it has mapped.
    ///
    /// # Errors
    /// [`Unread`] says why there is no answer.
    pub fn mapped(&self) -> Result<Mapped, Unread> {
        let mut scan = MapsScan::default();
        self.open_file(ProcFile::Maps)
            .and_then(|open| {
                let limit = ProcFile::Maps.limit();
                bounded_read::in_chunks(open, limit, |piece| scan.take(piece))
            })
            .map_err(|reason| self.or_vanished(reason))?;
        Ok(scan.finish())
    }

    fn open_file(&self, file: ProcFile) -> Result<OwnedFd, Unread> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        Ok(openat(&self.dir, file.name(), flags, Mode::empty())?)
    }

    /// A process that ends between two steps of the kernel makes it say "permission denied",
    /// because there is nobody left whose permission to ask.
    fn or_vanished(&self, reason: Unread) -> Unread {
        if reason == Unread::Denied && self.has_vanished() { Unread::Vanished } else { reason }
    }

    fn has_vanished(&self) -> bool {
        let found = fstatat(&self.dir, ProcFile::Stat.name(), AtFlags::AT_SYMLINK_NOFOLLOW);
        found.is_err_and(|errno| Unread::from(errno) == Unread::Vanished)
    }
}

impl AsFd for ProcessDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}
