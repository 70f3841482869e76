//! Finds the files that a rule means. Whatever lies behind the first wildcard may be anybody's: no
//! link is followed there, and nothing but a regular file with one name is opened.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};

use super::names::{RotatedName, Turn};
use super::refusals::Refusals;
use super::rule::Rule;

/// Most files that are followed.
pub(super) const MOST_FILES: usize = 10_000;

/// Most entries of folders that are looked at.
const MOST_ENTRIES: usize = 200_000;

/// A file that a rule means.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// Which rule.
    pub(super) rule: usize,
    pub(super) path: PathBuf,
    /// The undecorated path: the same for all files that rotation has made of one.
    pub(super) family: String,
    pub(super) is_packed: bool,
    pub(super) turn: Turn,
    pub(super) state: FileState,
    root: Rc<OwnedFd>,
    /// From the root, part by part.
    parts: Vec<String>,
}

/// What tells one content of a file from another, as far as the file system knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileState {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    /// Nanoseconds since the epoch.
    pub(super) modified_ns: u64,
}

impl FileState {
    /// Device and inode.
    pub(super) fn inode(self) -> (u64, u64) {
        (self.device, self.inode)
    }

    fn of(stat: &FileStat) -> Self {
        let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
        let nanoseconds = u64::try_from(stat.st_mtime_nsec).unwrap_or(0);
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified_ns: seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds),
        }
    }
}

/// Why a file was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotOpened {
    /// Gone, or another file by now: a later pass meets it again.
    Vanished,
    /// A compressed file that is still being written, or was never finished.
    Unfinished,
    /// Never to be read; the reason.
    Refused(&'static str),
}

impl Found {
    /// For how long nothing has been written to it.
    pub(super) fn age(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(now_ns.saturating_sub(self.state.modified_ns))
    }

    /// Opens the file, if it still is the one that was found.
    pub(super) fn open(&self) -> Result<(File, FileState), NotOpened> {
        let (name, folders) = self.parts.split_last().ok_or(NotOpened::Vanished)?;
        let flags = OFlag::O_RDONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        let folder = open_folders(&self.root, folders).map_err(|_| NotOpened::Vanished)?;
        let folder = folder.as_ref().unwrap_or(&self.root);
        let file = match openat(folder, name.as_str(), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::ENOENT) => return Err(NotOpened::Vanished),
            Err(Errno::ELOOP | Errno::ENXIO) => {
                return Err(NotOpened::Refused("not_a_regular_file"));
            }
            Err(_) => return Err(NotOpened::Refused("unreadable")),
        };
        let stat = fstat(&file).map_err(|_| NotOpened::Refused("unreadable"))?;
        let state = FileState::of(&stat);
        if state.inode() != self.state.inode() {
            return Err(NotOpened::Vanished);
        }
        Ok((file, state))
    }
}

/// The folder behind these parts, through no link; `None` for no parts.
fn open_folders(root: &OwnedFd, parts: &[String]) -> nix::Result<Option<OwnedFd>> {
    let mut folder: Option<OwnedFd> = None;
    for part in parts {
        folder = Some(open_folder(folder.as_ref().unwrap_or(root), part)?);
    }
    Ok(folder)
}

fn open_folder(parent: &OwnedFd, name: &str) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// The search of one pass.
pub(super) struct Search<'s> {
    pub(super) found: Vec<Found>,
    seen: HashSet<(u64, u64)>,
    refusals: &'s mut Refusals,
    entries: usize,
    /// Whether there is more than was seen.
    pub(super) is_partial: bool,
    /// Whether that is so because the time was spent.
    pub(super) is_late: bool,
    deadline: Instant,
}

impl<'s> Search<'s> {
    pub(super) fn new(refusals: &'s mut Refusals, deadline: Instant) -> Self {
        Self {
            found: Vec::new(),
            seen: HashSet::new(),
            refusals,
            entries: 0,
            is_partial: false,
            is_late: false,
            deadline,
        }
    }

    /// Adds the files that a rule means. A root that does not exist yet holds none.
    pub(super) fn add(&mut self, index: usize, rule: &Rule) {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        match nix::fcntl::open(&rule.root, flags, Mode::empty()) {
            Ok(root) => self.folder(&Rc::new(root), &mut Vec::new(), index, rule),
            Err(Errno::ENOENT) => {}
            Err(fault) => {
                let what = format!("{}: {}", rule.root.display(), io::Error::from(fault));
                self.refusals.note("folder_unreadable", what);
            }
        }
    }

    fn folder(&mut self, root: &Rc<OwnedFd>, parts: &mut Vec<String>, index: usize, rule: &Rule) {
        let path = |parts: &[String]| {
            let mut path = rule.root.clone();
            path.extend(parts);
            path
        };
        let unreadable = |refusals: &mut Refusals, fault: Errno, parts: &[String]| {
            let what = format!("{}: {}", path(parts).display(), io::Error::from(fault));
            refusals.note("folder_unreadable", what);
        };
        let folder = match open_folders(root, parts) {
            Ok(folder) => folder,
            // A file or a link where the pattern means folders.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return,
            Err(fault) => return unreadable(self.refusals, fault, parts),
        };
        let fd = folder.as_ref().unwrap_or(root);
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut listing = match Dir::openat(fd, ".", flags, Mode::empty()) {
            Ok(listing) => listing,
            Err(fault) => return unreadable(self.refusals, fault, parts),
        };
        let deeper = rule.folders.get(parts.len());
        let mut names = Vec::new();
        for entry in listing.iter().flatten() {
            self.entries += 1;
            if Instant::now() >= self.deadline {
                (self.is_partial, self.is_late) = (true, true);
                break;
            }
            if self.entries > MOST_ENTRIES {
                self.is_partial = true;
                self.refusals.note("too_many_entries", path(parts).display().to_string());
                break;
            }
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            match std::str::from_utf8(bytes) {
                Ok(name) => names.push((name.to_owned(), entry.file_type())),
                Err(_) => {
                    let name = format!("{}/{}", path(parts).display(), bytes.escape_ascii());
                    self.refusals.note("name_not_utf8", name);
                }
            }
        }
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in names {
            match deeper {
                Some(matcher) => {
                    if matches!(kind, None | Some(Type::Directory)) && matcher.is_match(&name) {
                        parts.push(name);
                        self.folder(root, parts, index, rule);
                        parts.pop();
                    }
                }
                None => {
                    let parsed = RotatedName::parse(&name);
                    if rule.means(&parsed) {
                        let path = path(parts);
                        parts.push(name);
                        self.file(fd, root, parts, index, parsed, path);
                        parts.pop();
                    }
                }
            }
        }
    }

    fn file(
        &mut self,
        folder: &OwnedFd,
        root: &Rc<OwnedFd>,
        parts: &[String],
        rule: usize,
        parsed: RotatedName,
        folder_path: PathBuf,
    ) {
        let Some(name) = parts.last() else { return };
        let path = folder_path.join(name);
        let Ok(stat) = fstatat(folder, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW) else { return };
        let shown = || path.display().to_string();
        if SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT != SFlag::S_IFREG {
            return self.refusals.note("not_a_regular_file", shown());
        }
        // Whose it is cannot be told: perhaps a file of somebody who did not want it to be read.
        if stat.st_nlink > 1 {
            return self.refusals.note("hard_linked", shown());
        }
        let state = FileState::of(&stat);
        // The first rule that means a file has it; and one that was renamed during the listing is
        // met twice.
        if !self.seen.insert(state.inode()) {
            return;
        }
        if self.found.len() >= MOST_FILES {
            self.is_partial = true;
            return self.refusals.note("too_many_files", shown());
        }
        let RotatedName { family, is_packed, turn, .. } = parsed;
        let family = folder_path.join(family).display().to_string();
        let (root, parts) = (Rc::clone(root), parts.to_vec());
        self.found.push(Found { rule, path, family, is_packed, turn, state, root, parts });
    }
}
