//! One process's folder, held open: every answer is about the same process.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, open, openat, openat2, readlinkat};
use nix::sys::stat::{Mode, fstat, fstatat, stat};

use super::maps::{self, MapsScan};
use super::{Mapped, MappedFile, ProcFile, Unread, bounded_read};

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

    /// Every shared library that it has mapped, each once.
    ///
    /// # Errors
    /// [`Unread`] says why there is no answer.
    pub fn libraries(&self) -> Result<Vec<MappedFile>, Unread> {
        let mut text = Vec::new();
        self.read(ProcFile::Maps, &mut text)?;
        Ok(maps::libraries(&text))
    }

    /// Whether one of its open files has a path that begins like this; the first 65,536 of them
    /// are looked at.
    ///
    /// # Errors
    /// [`Unread`] says why there is no answer.
    pub fn has_open(&self, prefix: &[u8]) -> Result<bool, Unread> {
        const MOST: usize = 1 << 16;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut folder = Dir::openat(&self.dir, "fd", flags, Mode::empty())
            .map_err(|errno| self.or_vanished(errno.into()))?;
        let names: Vec<_> = folder
            .iter()
            .take(MOST)
            .filter_map(Result::ok)
            .map(|entry| entry.file_name().to_owned())
            .collect();
        Ok(names.iter().any(|name| {
            // What is no link, or is closed by now, is no open file.
            readlinkat(&folder, name.as_c_str())
                .is_ok_and(|target| target.as_encoded_bytes().starts_with(prefix))
        }))
    }

    /// Opens a path as the process itself would find it: from its root, through no link that leads
    /// out of it. Nothing is waited for, and no terminal becomes ours. A kernel before 5.6 can do
    /// so only where the process has our own root.
    ///
    /// # Errors
    /// What the system says; `ENOENT` where the process has no such file.
    pub fn open_inside(&self, path: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
        let as_folder = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let root = openat(&self.dir, "root", as_folder, Mode::empty())?;
        // `openat2` takes no flag that means nothing, as these do with O_PATH.
        let flags = match flags.contains(OFlag::O_PATH) {
            true => flags | OFlag::O_CLOEXEC,
            false => flags | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY,
        };
        let how = OpenHow::new()
            .flags(flags)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        match openat2(&root, path, how) {
            Err(Errno::ENOSYS) if is_our_root(&root)? => open(path, flags, Mode::empty()),
            outcome => outcome,
        }
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

fn is_our_root(root: &OwnedFd) -> nix::Result<bool> {
    let (theirs, ours) = (fstat(root)?, stat("/")?);
    Ok((theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino))
}

impl AsFd for ProcessDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}
