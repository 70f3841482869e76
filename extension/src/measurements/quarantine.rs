//! Where refused entries go: `<measurements>/.quarantine/`, for a person to look at.
//!
//! It lies inside the measurements folder so that a rename, which follows nothing and reads
//! nothing, is all that a move takes. It is bounded: beyond [`MAX_ENTRIES`] or [`MAX_DISK_BYTES`]
//! an entry is removed instead. A folder is moved all the same, since removing one means walking
//! into it, and left where it is it would be met by every pass.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::time::SystemTime;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, openat, renameat2};
use nix::sys::stat::{Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{Uid, UnlinkatFlags, unlinkat};

use super::folder::Folder;

/// Its name.
pub const NAME: &str = ".quarantine";

/// How many entries are kept.
pub const MAX_ENTRIES: usize = 1_000;

/// How much of the disk the kept files may take (allocated blocks, not the length that a sparse
/// file claims).
pub const MAX_DISK_BYTES: u64 = 256 << 20;

/// What became of a refused entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It lies in the quarantine.
    Moved,
    /// The quarantine is full: it was removed.
    Removed,
    /// It could not be moved or removed, and is met again by the next pass.
    Stays,
}

/// Puts entries away. Returns how many stay, since they cannot be moved.
///
/// # Errors
/// Whatever the system says of the quarantine as a whole; all entries then stay.
pub fn put_away<'n>(folder: &Folder, names: impl IntoIterator<Item = &'n [u8]>) -> io::Result<u64> {
    let mut names = names.into_iter().peekable();
    if names.peek().is_none() {
        return Ok(0);
    }
    let mut quarantine = Quarantine::open(folder)?;
    // Opening it has dealt with whatever had its name.
    let names = names.filter(|name| *name != NAME.as_bytes());
    Ok(names.map(|name| u64::from(quarantine.take(name) == Fate::Stays)).sum())
}

/// Whether a neighbour has put something of its own under the quarantine's name.
#[must_use]
pub fn is_taken(folder: &Folder) -> bool {
    let stat = fstatat(folder.fd(), NAME, AtFlags::AT_SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| !is_folder(stat.st_mode) || stat.st_uid != Uid::effective().as_raw())
}

/// Renames what a neighbour has put under the quarantine's name, to a name that nobody guesses.
fn evict(folder: &Folder) -> nix::Result<String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let name = format!("{NAME}.taken.{}.{}", std::process::id(), now.as_nanos());
    renameat2(folder.fd(), NAME, folder.fd(), name.as_str(), RenameFlags::RENAME_NOREPLACE)?;
    Ok(name)
}

/// The quarantine, held open.
#[derive(Debug)]
pub struct Quarantine<'f> {
    folder: &'f Folder,
    fd: OwnedFd,
    entries: usize,
    disk_bytes: u64,
}

impl<'f> Quarantine<'f> {
    /// Opens the quarantine of a folder, making it where it is missing. What else has its name is
    /// moved into it.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn open(folder: &'f Folder) -> io::Result<Self> {
        let evicted = if is_taken(folder) { Some(evict(folder)?) } else { None };
        match mkdirat(folder.fd(), NAME, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(fault) => return Err(fault.into()),
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(folder.fd(), NAME, flags, Mode::empty())?;
        if fstat(&fd)?.st_uid != Uid::effective().as_raw() {
            return Err(io::Error::other("belongs to another user; remove it"));
        }
        let mut quarantine = Self { folder, fd, entries: 0, disk_bytes: 0 };
        quarantine.measure()?;
        if let Some(evicted) = evicted {
            quarantine.take(evicted.as_bytes());
        }
        Ok(quarantine)
    }

    /// Moves an entry here, or removes it when the quarantine is full.
    pub fn take(&mut self, name: &[u8]) -> Fate {
        let name = OsStr::from_bytes(name);
        let Ok(stat) = fstatat(self.folder.fd(), name, AtFlags::AT_SYMLINK_NOFOLLOW) else {
            return Fate::Moved;
        };
        let is_folder = is_folder(stat.st_mode);
        let disk_bytes = disk_bytes(stat.st_blocks);
        let is_full = self.entries >= MAX_ENTRIES || self.disk_bytes + disk_bytes > MAX_DISK_BYTES;
        if is_full && !is_folder {
            return self.remove(name, UnlinkatFlags::NoRemoveDir);
        }
        let moved = match self.rename(name, name) {
            // One of that name lies here already; of files, the first is evidence enough.
            Err(Errno::EEXIST) if is_folder => {
                self.rename(name, OsStr::new(&format!("{}.folder", stat.st_ino)))
            }
            moved => moved,
        };
        match moved {
            Ok(()) => {
                self.entries += 1;
                self.disk_bytes += disk_bytes;
                Fate::Moved
            }
            // Moving a folder takes a right over the folder itself; removing an empty one does not.
            Err(_) if is_folder => self.remove(name, UnlinkatFlags::RemoveDir),
            Err(Errno::EEXIST) => self.remove(name, UnlinkatFlags::NoRemoveDir),
            Err(_) => Fate::Stays,
        }
    }

    fn rename(&self, from: &OsStr, to: &OsStr) -> nix::Result<()> {
        renameat2(self.folder.fd(), from, &self.fd, to, RenameFlags::RENAME_NOREPLACE)
    }

    fn remove(&self, name: &OsStr, flag: UnlinkatFlags) -> Fate {
        match unlinkat(self.folder.fd(), name, flag) {
            Ok(()) => Fate::Removed,
            Err(_) => Fate::Stays,
        }
    }

    fn measure(&mut self) -> io::Result<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut listing = Dir::openat(&self.fd, ".", flags, Mode::empty())?;
        for entry in listing.iter() {
            let entry = entry?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            self.entries += 1;
            if let Ok(stat) = fstatat(&self.fd, entry.file_name(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                self.disk_bytes += disk_bytes(stat.st_blocks);
            }
        }
        Ok(())
    }
}

fn is_folder(mode: u32) -> bool {
    SFlag::from_bits_truncate(mode) & SFlag::S_IFMT == SFlag::S_IFDIR
}

/// `st_blocks` counts 512 bytes each, whatever the file system's own blocks (stat(2)).
fn disk_bytes(blocks: i64) -> u64 {
    u64::try_from(blocks).unwrap_or(0).saturating_mul(512)
}
