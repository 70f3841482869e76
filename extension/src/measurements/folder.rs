//! The measurements folder, which every user of the machine may write to.
//!
//! Everything is done relative to one descriptor of the folder, no link is ever followed, and
//! nothing but a regular file with one name is opened for reading. So whatever a neighbour puts
//! there, at most its own file is moved or removed.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use warpgauge_wire::MeasurementFileName;
use warpgauge_wire::limits::MAX_MEASUREMENT_FILE_BYTES;

/// The folder, held open.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

/// What stands in the folder.
#[derive(Debug, Default)]
pub struct Entries {
    /// What anybody may put there to be read.
    pub visible: Names,
    /// Files that are still being written, or whose writers died: a leading dot, then the name of a
    /// measurement file.
    pub unfinished: Names,
    /// Whether there was more than may be listed.
    pub more: bool,
}

/// How many unfinished files are looked at. Their writers finish them at once, so there are few;
/// and whoever leaves many keeps nobody else's finished files from being read.
const MAX_UNFINISHED: usize = 10_000;

/// Names of a folder in one piece of memory: a hundred thousand of them cost no allocation each.
#[derive(Debug, Default)]
pub struct Names {
    bytes: Vec<u8>,
    entries: Vec<(usize, Option<Type>)>,
}

/// What an entry turned out to be when it was to be read.
#[derive(Debug)]
pub enum Opened {
    /// A regular file that may be read, and what it was when it was opened.
    File(File, Identity),
    /// Gone meanwhile: a normal answer.
    Vanished,
    /// Not to be read.
    Refused(Refusal),
}

/// Why a whole entry is not read. Each is a `reason` of `warpgauge.measurements.refused`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The name is no measurement file's.
    NameDoesNotFit,
    /// A link, pipe, socket, device or folder.
    NotARegularFile,
    /// It has a second name, perhaps elsewhere: whose it is cannot be told.
    HardLinked,
    /// Its owner is not the user of the process that it is named for.
    WrongOwner,
    /// Several listed processes have that pid, each in a pid namespace of its own.
    AmbiguousPid,
    /// Over 64 MiB.
    TooLarge,
    /// The system refuses to open or read it.
    Unreadable,
    /// Its writer died before it was finished.
    Abandoned,
    /// It has the name of the quarantine and is not ours.
    QuarantineTaken,
}

impl Refusal {
    /// Every one of them.
    pub const ALL: [Self; 9] = [
        Self::NameDoesNotFit,
        Self::NotARegularFile,
        Self::HardLinked,
        Self::WrongOwner,
        Self::AmbiguousPid,
        Self::TooLarge,
        Self::Unreadable,
        Self::Abandoned,
        Self::QuarantineTaken,
    ];

    /// The metric's attribute.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NameDoesNotFit => "name_does_not_fit",
            Self::NotARegularFile => "not_a_regular_file",
            Self::HardLinked => "hard_linked",
            Self::WrongOwner => "wrong_owner",
            Self::AmbiguousPid => "ambiguous_pid",
            Self::TooLarge => "file_too_large",
            Self::Unreadable => "unreadable",
            Self::Abandoned => "abandoned",
            Self::QuarantineTaken => "quarantine_taken",
        }
    }
}

/// What tells one content of a name from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Inode number.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Last change of the content, nanoseconds since the epoch.
    pub modified_ns: u64,
    /// The owner's user id; not part of a manifest.
    pub owner: u32,
}

impl Folder {
    /// Opens the folder.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let fd = nix::fcntl::open(path, flags, Mode::empty())?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// A folder that is open already; `path` is where it is, for messages.
    #[must_use]
    pub fn at(fd: OwnedFd, path: PathBuf) -> Self {
        Self { fd, path }
    }

    /// Opens a folder inside another one, through no link; `path` is where it is, for messages.
    ///
    /// # Errors
    /// Whatever the system says; `ENOTDIR` or `ELOOP` where something else has the name.
    pub fn open_in(parent: impl AsFd, name: &str, path: PathBuf) -> nix::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(Self { fd: openat(parent, name, flags, Mode::empty())?, path })
    }

    /// Where it is, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its descriptor.
    #[must_use]
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// What stands in it: `limit` visible entries at most, looked for until `deadline`. Other
    /// hidden entries than unfinished files are no business of ours, however many.
    ///
    /// # Errors
    /// Whatever the system says while listing.
    pub fn list(&self, limit: usize, deadline: Instant) -> io::Result<Entries> {
        /// How many entries go by between two looks at the clock.
        const STRIDE: usize = 4_096;
        let mut entries = Entries::default();
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut folder = Dir::openat(&self.fd, ".", flags, Mode::empty())?;
        for (number, entry) in folder.iter().enumerate() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if entries.visible.len() == limit
                || (number % STRIDE == STRIDE - 1 && Instant::now() >= deadline)
            {
                entries.more = true;
                break;
            }
            match name.strip_prefix(b".") {
                None => entries.visible.push(name, entry.file_type()),
                Some(rest) => {
                    if matches!(entry.file_type(), None | Some(Type::File))
                        && entries.unfinished.len() < MAX_UNFINISHED
                        && MeasurementFileName::parse(rest).is_ok()
                    {
                        entries.unfinished.push(name, entry.file_type());
                    }
                }
            }
        }
        Ok(entries)
    }

    /// Opens an entry for reading, if it is what it should be.
    #[must_use]
    pub fn open_entry(&self, name: &[u8], kind: Option<Type>) -> Opened {
        // What the listing knows to be no file is not even opened: opening a device may act on it.
        if !matches!(kind, None | Some(Type::File)) {
            return Opened::Refused(Refusal::NotARegularFile);
        }
        if kind.is_none() {
            match self.stat(name) {
                Ok((_, mode)) if !is_regular(mode) => {
                    return Opened::Refused(Refusal::NotARegularFile);
                }
                Ok(_) => {}
                Err(_) => return Opened::Vanished,
            }
        }
        // Should the name have become a pipe or a link since, neither waiting nor following.
        let flags = OFlag::O_RDONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        let file = match openat(&self.fd, OsStr::from_bytes(name), flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::ENOENT) => return Opened::Vanished,
            Err(Errno::ELOOP | Errno::ENXIO) => return Opened::Refused(Refusal::NotARegularFile),
            Err(_) => return Opened::Refused(Refusal::Unreadable),
        };
        match fstat(&file) {
            Err(_) => Opened::Refused(Refusal::Unreadable),
            Ok(stat) if !is_regular(stat.st_mode) => Opened::Refused(Refusal::NotARegularFile),
            Ok(stat) if stat.st_nlink > 1 => Opened::Refused(Refusal::HardLinked),
            Ok(stat) => {
                let identity = Identity::of(&stat);
                if identity.size > MAX_MEASUREMENT_FILE_BYTES {
                    return Opened::Refused(Refusal::TooLarge);
                }
                Opened::File(file, identity)
            }
        }
    }

    /// What an entry is now, without opening it; and its mode.
    ///
    /// # Errors
    /// Whatever the system says, `ENOENT` when it is gone.
    pub fn stat(&self, name: &[u8]) -> nix::Result<(Identity, u32)> {
        let stat = fstatat(&self.fd, OsStr::from_bytes(name), AtFlags::AT_SYMLINK_NOFOLLOW)?;
        Ok((Identity::of(&stat), stat.st_mode))
    }

    /// Removes a name; one that is gone already is fine.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn remove(&self, name: &[u8]) -> nix::Result<()> {
        match unlinkat(&self.fd, OsStr::from_bytes(name), UnlinkatFlags::NoRemoveDir) {
            Err(Errno::ENOENT) => Ok(()),
            outcome => outcome,
        }
    }
}

impl Identity {
    /// Of an open file, now.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn now(file: &File) -> nix::Result<Self> {
        fstat(file).map(|stat| Self::of(&stat))
    }

    /// How long ago its content last changed; nothing when that is yet to come.
    #[must_use]
    pub fn age(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(now_ns.saturating_sub(self.modified_ns))
    }

    fn of(stat: &FileStat) -> Self {
        let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
        let nanoseconds = u64::try_from(stat.st_mtime_nsec).unwrap_or(0);
        Self {
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified_ns: seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds),
            owner: stat.st_uid,
        }
    }
}

impl Names {
    fn push(&mut self, name: &[u8], kind: Option<Type>) {
        self.bytes.extend_from_slice(name);
        self.entries.push((self.bytes.len(), kind));
    }

    /// All of them, in the order of the listing.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<Type>)> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The name at an index, and its kind where the file system told.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<(&[u8], Option<Type>)> {
        let (end, kind) = *self.entries.get(index)?;
        let start = match index.checked_sub(1) {
            Some(previous) => self.entries.get(previous)?.0,
            None => 0,
        };
        Some((self.bytes.get(start..end)?, kind))
    }
}

fn is_regular(mode: u32) -> bool {
    SFlag::from_bits_truncate(mode) & SFlag::S_IFMT == SFlag::S_IFREG
}

/// A name as it is shown to people: control characters and foreign bytes escaped.
#[must_use]
pub fn shown(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_entries_take_nobodys_place() {
        let place = tempfile::tempdir().unwrap();
        for number in 0..50 {
            File::create(place.path().join(format!(".hidden{number}"))).unwrap();
        }
        for name in ["1-1-1", "junk", ".2-2-2"] {
            File::create(place.path().join(name)).unwrap();
        }
        std::fs::create_dir(place.path().join(".3-3-3")).unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let later = Instant::now() + Duration::from_secs(60);
        let entries = folder.list(3, later).unwrap();
        assert_eq!((entries.visible.len(), entries.more), (2, false));
        let unfinished: Vec<_> = entries.unfinished.iter().map(|(name, _)| name).collect();
        assert_eq!(unfinished, [b".2-2-2"]);
        let entries = folder.list(1, later).unwrap();
        assert_eq!((entries.visible.len(), entries.more), (1, true));
    }
}
