//! Where refused entries go: `<measurements>/.quarantine/`, for a person to look at.
//!
//! It lies inside the measurements folder so that a rename, which follows nothing and reads
//! nothing, is all that a move takes. It is bounded: beyond [`MAX_ENTRIES`] or [`MAX_DISK_BYTES`]
//! an entry is removed instead (a folder stays where it is, since removing one means walking into
//! it).

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

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

/// The quarantine, held open.
#[derive(Debug)]
pub struct Quarantine<'f> {
    folder: &'f Folder,
    fd: OwnedFd,
    entries: usize,
    disk_bytes: u64,
}

impl<'f> Quarantine<'f> {
    /// Opens the quarantine of a folder, making it where it is missing.
    ///
    /// # Errors
    /// Whatever the system says; also when the name is a link, no folder, or somebody else's,
    /// since a neighbour may have taken it first.
    pub fn open(folder: &'f Folder) -> io::Result<Self> {
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
        Ok(quarantine)
    }

    /// Moves an entry here, or removes it when the quarantine is full.
    pub fn take(&mut self, name: &[u8]) -> Fate {
        let name = OsStr::from_bytes(name);
        let Ok(stat) = fstatat(self.folder.fd(), name, AtFlags::AT_SYMLINK_NOFOLLOW) else {
            return Fate::Moved;
        };
        let disk_bytes = disk_bytes(stat.st_blocks);
        if self.entries >= MAX_ENTRIES || self.disk_bytes + disk_bytes > MAX_DISK_BYTES {
            let is_folder =
                SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
            if is_folder || unlinkat(self.folder.fd(), name, UnlinkatFlags::NoRemoveDir).is_err() {
                return Fate::Stays;
            }
            return Fate::Removed;
        }
        match renameat2(self.folder.fd(), name, &self.fd, name, RenameFlags::RENAME_NOREPLACE) {
            Ok(()) => {
                self.entries += 1;
                self.disk_bytes += disk_bytes;
                Fate::Moved
            }
            // One of that name lies here already; the first evidence is as good as the second.
            Err(Errno::EEXIST)
                if unlinkat(self.folder.fd(), name, UnlinkatFlags::NoRemoveDir).is_ok() =>
            {
                Fate::Removed
            }
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

/// `st_blocks` counts 512 bytes each, whatever the file system's own blocks (stat(2)).
fn disk_bytes(blocks: i64) -> u64 {
    u64::try_from(blocks).unwrap_or(0).saturating_mul(512)
}
