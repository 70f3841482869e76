//! `/proc` under a given root: which processes there are, and what each says about itself.
//!
//! The root is a parameter, so that a test owns its own world and a container can look at the
//! host's `/proc` mounted elsewhere. Processes end whenever they like, so [`Unread::Vanished`] is
//! a normal answer to every question; a missing permission and a malformed file are others.
//!
//! A pid alone names nobody: the kernel gives it to the next process once its owner is gone.
//! [`ProcessId`] adds the start time. [`ProcessDir`] holds the folder `/proc/<pid>` open, so that
//! everything read through it is about one process even when the pid is reused in between.
//!
//! Of the files read here `cmdline`, `environ` and `maps` take the other process's memory lock
//! (`mmap_lock`): a process that is stuck inside the kernel with that lock held makes their reader
//! wait. `comm`, `stat`, `status`, `exe` and `cgroup` never wait, which is one more reason to ask
//! them first.
//!
//! Source of all layouts: proc(5), proc_pid_stat(5), proc_pid_status(5), proc_pid_maps(5).

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, readlinkat};
use nix::sys::stat::Mode;
use nix::unistd::{SysconfVar, sysconf};

mod bounded_read;
pub mod cgroup;
mod clock;
mod maps;
pub mod nul_separated;
mod proc_error;
mod process_dir;
mod stat;
mod status;
mod unread;

pub use clock::BootClock;
pub use maps::{Mapped, MappedFile};
pub use proc_error::ProcError;
pub use process_dir::{Exe, ProcessDir};
pub use stat::Stat;
pub use status::{Status, Uids};
pub use unread::{ProcFile, Unread};

/// Which process, for as long as the machine is up: pids are reused, pid and start time are not.
///
/// Across a reboot [`ProcFs::boot_id`] has to be compared as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// The process's number in the pid namespace that this `/proc` shows.
    pub pid: u32,
    /// When it started, in clock ticks since boot (`/proc/<pid>/stat`, field 22).
    pub start_ticks: u64,
}

/// A `/proc`, opened at its first use and then held open.
#[derive(Debug)]
pub struct ProcFs {
    root: PathBuf,
    dir: OnceLock<OwnedFd>,
}

impl ProcFs {
    /// `/proc` at `root`. Nothing is opened yet; production passes `/proc`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), dir: OnceLock::new() }
    }

    /// The folder that was given to [`ProcFs::new`].
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The pids of all processes that may be seen, in ascending order; threads are not among them.
    ///
    /// # Errors
    /// When the root cannot be opened or listed.
    pub fn pids(&self) -> Result<Vec<u32>, ProcError> {
        let failed = |errno| ProcError::unreadable(&self.root, errno);
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut listing = Dir::openat(self.dir()?, ".", flags, Mode::empty()).map_err(failed)?;
        let mut pids = Vec::new();
        for entry in listing.iter() {
            let entry = entry.map_err(failed)?;
            pids.extend(parse_pid(entry.file_name().to_bytes()));
        }
        pids.sort_unstable();
        Ok(pids)
    }

    /// The kernel's name of a process (`comm`) without its newline: at most 15 bytes for a
    /// program, any bytes but NUL. The cheapest question there is: one open, one read.
    ///
    /// # Errors
    /// [`Unread`] says why there is no answer.
    pub fn comm<'buffer>(
        &self,
        pid: u32,
        buffer: &'buffer mut [u8; 128],
    ) -> Result<&'buffer [u8], Unread> {
        let dir = self.dir().map_err(|error| Unread::from(error.errno()))?;
        let file = openat(
            dir,
            format!("{pid}/comm").as_str(),
            OFlag::O_RDONLY | OFlag::O_CLOEXEC,
            Mode::empty(),
        )?;
        let text = bounded_read::read_once(&file, buffer)?;
        Ok(text.strip_suffix(b"\n").unwrap_or(text))
    }

    /// Holds one process's folder open.
    ///
    /// # Errors
    /// [`Unread::Vanished`] when there is no such process (any more).
    pub fn process(&self, pid: u32) -> Result<ProcessDir, Unread> {
        let dir = self.dir().map_err(|error| Unread::from(error.errno()))?;
        ProcessDir::open(dir, pid)
    }

    /// What turns a start time in ticks into a time of day.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read or has no `btime`.
    pub fn boot_clock(&self) -> Result<BootClock, ProcError> {
        /// A line for each processor and a number for each interrupt: long on large machines.
        const STAT_LIMIT: usize = 4 << 20;
        let text = self.read_file("stat", STAT_LIMIT)?;
        let path = self.root.join("stat");
        let boot_seconds = clock::parse_boot_seconds(&text)
            .ok_or(ProcError::Malformed { path, expected: "a line `btime SECONDS`" })?;
        // Linux shows ticks of 1/100 s to programs on every machine; ask all the same.
        let ticks_per_second =
            sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|ticks| u64::try_from(ticks).ok());
        Ok(BootClock { boot_seconds, ticks_per_second: ticks_per_second.unwrap_or(100).max(1) })
    }

    /// The kernel's random name of this boot, such as `5b1d1b8c-…`: what was remembered about a
    /// [`ProcessId`] under another one is about a process of an earlier boot.
    ///
    /// # Errors
    /// When `/proc/sys/kernel/random/boot_id` cannot be read or is not text.
    pub fn boot_id(&self) -> Result<String, ProcError> {
        const FILE: &str = "sys/kernel/random/boot_id";
        let text = self.read_file(FILE, 256)?;
        match String::from_utf8(text) {
            Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            _ => Err(ProcError::Malformed {
                path: self.root.join(FILE),
                expected: "the name of the boot",
            }),
        }
    }

    /// Our own pid as this `/proc` numbers it, from the link `self`. It differs from
    /// `std::process::id()` where the `/proc` of another pid namespace is mounted. `None` where
    /// we are not in that namespace or the root is not a real `/proc`.
    pub fn own_pid(&self) -> Option<u32> {
        let target = readlinkat(self.dir().ok()?, "self").ok()?;
        parse_pid(target.as_encoded_bytes())
    }

    fn read_file(&self, name: &str, limit: usize) -> Result<Vec<u8>, ProcError> {
        let path = self.root.join(name);
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let file = openat(self.dir()?, OsStr::new(name), flags, Mode::empty())
            .map_err(|errno| ProcError::unreadable(&path, errno))?;
        let mut text = Vec::new();
        match bounded_read::read_to_end(&file, &mut text, limit) {
            Ok(()) => Ok(text),
            Err(reason) => Err(ProcError::Unread { path, reason }),
        }
    }

    fn dir(&self) -> Result<BorrowedFd<'_>, ProcError> {
        if let Some(dir) = self.dir.get() {
            return Ok(dir.as_fd());
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let opened = open(&self.root, flags, Mode::empty())
            .map_err(|errno| ProcError::unreadable(&self.root, errno))?;
        // Two threads may both come here; one descriptor is kept and the other one closed.
        Ok(self.dir.get_or_init(|| opened).as_fd())
    }
}

/// A folder's name as a pid. The kernel writes no sign and no leading zero, and pid 0 is nobody.
fn parse_pid(name: &[u8]) -> Option<u32> {
    if name.first() == Some(&b'0') || !name.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(name).ok()?.parse().ok()
}

impl From<Errno> for Unread {
    /// `ESRCH` is what a read says, `ENOENT` what an open says, once the process is gone.
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::ENOENT | Errno::ESRCH => Unread::Vanished,
            Errno::EACCES | Errno::EPERM => Unread::Denied,
            other => Unread::Failed(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_numbers_are_pids() {
        assert_eq!(parse_pid(b"1"), Some(1));
        assert_eq!(parse_pid(b"4194304"), Some(4_194_304));
        for name in ["", "0", "007", "-1", "+1", "self", "12a", " 12", "4294967296"] {
            assert_eq!(parse_pid(name.as_bytes()), None, "{name:?}");
        }
    }

    #[test]
    fn errors_of_the_kernel_become_the_three_answers() {
        assert_eq!(Unread::from(Errno::ENOENT), Unread::Vanished);
        assert_eq!(Unread::from(Errno::ESRCH), Unread::Vanished);
        assert_eq!(Unread::from(Errno::EACCES), Unread::Denied);
        assert_eq!(Unread::from(Errno::EPERM), Unread::Denied);
        assert_eq!(Unread::from(Errno::EIO), Unread::Failed(Errno::EIO));
    }
}
