//! The containers' folders: `<containers>/<name>/runtime.conf` and `<name>/measurements/`.
//!
//! The folder that holds them is the administrator's; everything inside `<name>` is the container's
//! own, and a container is nobody to be trusted. So whatever lies in it is opened relative to the
//! descriptor of `<name>`, through no link, and nothing but a regular file is read. Where something
//! else has the name of what should be there, it stays as it is and the folder is passed over.
//!
//! Descriptors are held only while one folder is worked on: there may be thousands.

pub mod assignment;
mod runtime_config;

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, openat, renameat2};
use nix::sys::stat::{Mode, SFlag, fchmod, fstatat, mkdirat};

use crate::measurements::folder::{Folder, shown};
use crate::skips::Skips;

/// How many folders a pass serves; the others are counted and wait until some have gone.
pub const MAX_CONTAINERS: usize = 4_096;

/// The name of a container's measurements folder.
pub const MEASUREMENTS: &str = "measurements";

/// The name of a container's runtime configuration.
pub const RUNTIME_CONFIG: &str = "runtime.conf";

/// A container's measurements folder while it is being made.
const UNFINISHED: &str = ".measurements.new";

/// Every user of the container writes there; the sticky bit keeps each from the others' files.
const EVERYBODYS: Mode = Mode::from_bits_truncate(0o1777);

/// Why something of a container is passed over. Each is a `reason` of
/// `warpgauge.measurements.refused`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its name holds something else than visible ASCII letters, so it names no container.
    NameDoesNotFit,
    /// It is no folder.
    NotAFolder,
    /// There are more than [`MAX_CONTAINERS`].
    TooMany,
    /// The folder that holds them all, or one of them, or its measurements folder cannot be used.
    Unusable,
    /// Its runtime configuration is no regular file, too large, or cannot be read or replaced.
    RuntimeConfig,
    /// Its runtime configuration has too many lines by hand.
    TooManyLines,
    /// A line of its runtime configuration that nobody can read.
    MalformedLine,
}

impl Refusal {
    /// Every one of them.
    pub const ALL: [Self; 7] = [
        Self::NameDoesNotFit,
        Self::NotAFolder,
        Self::TooMany,
        Self::Unusable,
        Self::RuntimeConfig,
        Self::TooManyLines,
        Self::MalformedLine,
    ];

    /// The metric's attribute.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NameDoesNotFit => "container_name_does_not_fit",
            Self::NotAFolder => "container_not_a_folder",
            Self::TooMany => "too_many_containers",
            Self::Unusable => "container_unusable",
            Self::RuntimeConfig => "container_runtime_config",
            Self::TooManyLines => "container_too_many_lines",
            Self::MalformedLine => "container_malformed_line",
        }
    }
}

/// Why one thing of a container cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct ContainerError {
    path: PathBuf,
    source: std::io::Error,
}

impl ContainerError {
    fn new(path: PathBuf, source: impl Into<std::io::Error>) -> Self {
        Self { path, source: source.into() }
    }

    /// Whether something else has the name of a folder, so that no file of ours can be in it.
    #[must_use]
    pub fn is_no_folder(&self) -> bool {
        let errno = self.source.raw_os_error().map(Errno::from_raw);
        matches!(errno, Some(Errno::ENOTDIR | Errno::ELOOP))
    }
}

/// The folders that there are.
#[derive(Debug)]
pub struct Containers {
    path: PathBuf,
    root: Option<OwnedFd>,
    names: BTreeSet<String>,
    /// What was passed over.
    pub refused: Skips,
}

impl Containers {
    /// Looks which there are. Where the folder of folders is missing there are none; where it
    /// cannot be used that is counted in [`Self::refused`].
    #[must_use]
    pub fn look(path: &Path) -> Self {
        let mut found = Self {
            path: path.to_owned(),
            root: None,
            names: BTreeSet::new(),
            refused: Skips::default(),
        };
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let listed = match nix::fcntl::open(path, flags, Mode::empty()) {
            Err(Errno::ENOENT) => return found,
            Err(fault) => Err(fault),
            Ok(root) => {
                let listed = found.list(&root);
                found.root = Some(root);
                listed
            }
        };
        if let Err(fault) = listed {
            let reason = Refusal::Unusable.reason();
            found.refused.note(reason, || format!("{}: {fault}", path.display()));
        }
        found
    }

    fn list(&mut self, root: &OwnedFd) -> nix::Result<()> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut listing = Dir::openat(root, ".", flags, Mode::empty())?;
        for entry in listing.iter() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name.starts_with(b".") {
                continue;
            }
            let refusal = match std::str::from_utf8(name) {
                Ok(text) if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                    Refusal::NameDoesNotFit
                }
                Err(_) => Refusal::NameDoesNotFit,
                Ok(_) if !is_folder(root, &entry) => Refusal::NotAFolder,
                Ok(_) if self.names.len() == MAX_CONTAINERS => Refusal::TooMany,
                Ok(text) => {
                    self.names.insert(text.to_owned());
                    continue;
                }
            };
            let path = &self.path;
            self.refused.note(refusal.reason(), || format!("{}/{}", path.display(), shown(name)));
        }
        Ok(())
    }

    /// Where they are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Their names, in order.
    #[must_use]
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Opens one. `None` when it is gone.
    ///
    /// # Errors
    /// [`ContainerError`].
    pub fn open(&self, name: &str) -> Result<Option<Container>, ContainerError> {
        let Some(root) = &self.root else { return Ok(None) };
        let path = self.path.join(name);
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match openat(root, name, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(Container { fd, path })),
            Err(Errno::ENOENT) => Ok(None),
            Err(fault) => Err(ContainerError::new(path, fault)),
        }
    }

    /// Opens the measurements folder of one. `None` when there is none any more: neither folder
    /// nor container.
    ///
    /// # Errors
    /// [`ContainerError`].
    pub fn open_measurements(&self, name: &str) -> Result<Option<Folder>, ContainerError> {
        match self.open(name)? {
            Some(container) => container.measurements(),
            None => Ok(None),
        }
    }
}

fn is_folder(root: &OwnedFd, entry: &nix::dir::Entry) -> bool {
    match entry.file_type() {
        Some(kind) => kind == Type::Directory,
        None => fstatat(root, entry.file_name(), AtFlags::AT_SYMLINK_NOFOLLOW).is_ok_and(|stat| {
            SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR
        }),
    }
}

/// One container's folder, held open.
#[derive(Debug)]
pub struct Container {
    fd: OwnedFd,
    path: PathBuf,
}

impl Container {
    /// Its measurements folder, if it has one.
    ///
    /// # Errors
    /// [`ContainerError`], also where something else has that name.
    pub fn measurements(&self) -> Result<Option<Folder>, ContainerError> {
        let path = self.path.join(MEASUREMENTS);
        match Folder::open_in(&self.fd, MEASUREMENTS, path.clone()) {
            Ok(folder) => Ok(Some(folder)),
            Err(Errno::ENOENT) => Ok(None),
            Err(fault) => Err(ContainerError::new(path, fault)),
        }
    }

    /// Makes its measurements folder unless there is one. It appears with its mode, whatever the
    /// umask and whenever this is killed.
    ///
    /// # Errors
    /// [`ContainerError`].
    pub fn make_measurements(&self) -> Result<(), ContainerError> {
        if self.measurements()?.is_some() {
            return Ok(());
        }
        let make = || {
            match mkdirat(&self.fd, UNFINISHED, EVERYBODYS) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(fault) => return Err(fault),
            }
            let folder = Folder::open_in(&self.fd, UNFINISHED, self.path.join(UNFINISHED))?;
            fchmod(folder.fd(), EVERYBODYS)?;
            renameat2(&self.fd, UNFINISHED, &self.fd, MEASUREMENTS, RenameFlags::RENAME_NOREPLACE)
        };
        make().map_err(|fault| ContainerError::new(self.path.join(MEASUREMENTS), fault))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_folders_with_visible_names_are_containers() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path();
        for name in ["3f5a", "trainer\\x2da.service", ".hidden", "a b", "tab\t", "é"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        fs::File::create(path.join("file")).unwrap();
        symlink("3f5a", path.join("link")).unwrap();
        let found = Containers::look(path);
        let names: Vec<_> = found.names().iter().map(String::as_str).collect();
        assert_eq!(names, ["3f5a", "trainer\\x2da.service"]);
        assert_eq!(found.refused.count(Refusal::NameDoesNotFit.reason()), 3);
        assert_eq!(found.refused.count(Refusal::NotAFolder.reason()), 2);
        assert!(found.open("link").is_err() && found.open("gone").unwrap().is_none());
    }

    #[test]
    fn no_folder_of_folders_is_no_containers() {
        let place = tempfile::tempdir().unwrap();
        let found = Containers::look(&place.path().join("containers"));
        assert!(found.names().is_empty() && found.open("x").unwrap().is_none());
        assert_eq!(found.refused.total(), 0);
        fs::File::create(place.path().join("containers")).unwrap();
        let found = Containers::look(&place.path().join("containers"));
        assert_eq!(found.refused.count(Refusal::Unusable.reason()), 1);
    }

    #[test]
    fn the_measurements_folder_is_made_for_everybody_and_through_no_link() {
        let place = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        for name in ["new", "begun", "linked"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        fs::create_dir(place.path().join("begun").join(UNFINISHED)).unwrap();
        symlink(elsewhere.path(), place.path().join("linked").join(MEASUREMENTS)).unwrap();
        let found = Containers::look(place.path());
        for name in ["new", "begun", "new"] {
            let container = found.open(name).unwrap().unwrap();
            container.make_measurements().unwrap();
            let made = place.path().join(name).join(MEASUREMENTS).symlink_metadata().unwrap();
            assert!(made.is_dir());
            assert_eq!(made.permissions().mode() & 0o7777, 0o1777);
            assert_eq!(place.path().join(name).read_dir().unwrap().count(), 1);
        }
        let linked = found.open("linked").unwrap().unwrap();
        assert!(linked.make_measurements().is_err() && linked.measurements().is_err());
        assert_eq!(elsewhere.path().read_dir().unwrap().count(), 0);
    }
}
