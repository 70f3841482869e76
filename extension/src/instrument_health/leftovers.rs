//! Health files that killed processes left behind.
//!
//! A file goes when three things hold: nobody runs under its pid who had started by the time it
//! was written; it is a regular file; and it has not changed for [`MARGIN`], or for
//! [`MARGIN_OF_STRANGERS`] where no pass has seen its process end. The long margin is for processes
//! that this `/proc` does not show, such as those of another container.

use std::collections::BTreeSet;
use std::time::Duration;

use nix::dir::Dir;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, SFlag};

use crate::listing::{ListedProcess, Listing};
use crate::measurements::folder::{Folder, shown};
use crate::procfs::{BootClock, ProcFile, ProcFs, Stat, Status};

/// How long the file of a process that a pass has seen end must have been quiet.
pub const MARGIN: Duration = Duration::from_secs(60);

/// How long any other must have been quiet.
pub const MARGIN_OF_STRANGERS: Duration = Duration::from_secs(24 * 3_600);

/// How many health files one pass looks at; the rest waits for the next.
pub const MOST: usize = 10_000;

/// File systems stamp with the tick of the kernel's clock, and start times count hundredths of a
/// second.
const START_TOLERANCE_NS: u64 = 1_000_000_000;

/// A file that has been quiet long enough.
struct Quiet {
    name: Vec<u8>,
    own_pid: u32,
    modified_ns: u64,
}

/// Removes them from a folder and says how many there were: from the container's folder of that
/// name, or from the top one. What cannot be removed is said in the log and met again by the next
/// pass.
pub fn remove(
    folder: &Folder,
    container: Option<&str>,
    listing: &Listing,
    proc: &ProcFs,
    now_ns: u64,
) -> u64 {
    let quiet = quiet(folder, container, listing, now_ns);
    if quiet.is_empty() {
        return 0;
    }
    // Where not every process can be seen, who has ended is not known.
    let Some(running) = Running::of(proc) else { return 0 };
    let mut removed = 0;
    for file in quiet {
        if running.has(file.own_pid, file.modified_ns) {
            continue;
        }
        match folder.remove(&file.name) {
            Ok(()) => removed += 1,
            Err(errno) => {
                tracing::warn!(
                    "{}/{}: left by a process that has ended, and cannot be removed: {}; run warpgauge as the owner of the folder",
                    folder.path().display(),
                    shown(&file.name),
                    errno.desc()
                );
                // The next ones would fail in the same way.
                break;
            }
        }
    }
    if removed > 0 {
        tracing::info!(
            "{}: removed {removed} health files of processes that have ended",
            folder.path().display()
        );
    }
    removed
}

/// The containers' folders that may have some: those of processes that have ended. The others are
/// not opened, because there may be thousands.
#[must_use]
pub fn containers(listing: &Listing) -> BTreeSet<&str> {
    let ended = listing.processes().iter().filter(|process| process.gone_since_ns.is_some());
    ended.filter_map(|process| process.folder.as_deref()).collect()
}

fn quiet(folder: &Folder, container: Option<&str>, listing: &Listing, now_ns: u64) -> Vec<Quiet> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let Ok(mut entries) = Dir::openat(folder.fd(), ".", flags, Mode::empty()) else {
        return Vec::new();
    };
    let names = entries.iter().filter_map(Result::ok).filter_map(|entry| {
        let name = entry.file_name().to_bytes();
        pid_in(name).map(|own_pid| (name.to_vec(), own_pid))
    });
    names
        .take(MOST)
        .filter_map(|(name, own_pid)| {
            let (identity, mode) = folder.stat(&name).ok()?;
            let kind = SFlag::from_bits_truncate(mode) & SFlag::S_IFMT;
            let is_its = |known: &&ListedProcess| {
                known.own_pid == own_pid && known.folder.as_deref() == container
            };
            let mut known = listing.processes().iter().filter(is_its);
            let margin = match known.next() {
                Some(first)
                    if first.gone_since_ns.is_some()
                        && known.all(|other| other.gone_since_ns.is_some()) =>
                {
                    MARGIN
                }
                Some(_) => return None,
                None => MARGIN_OF_STRANGERS,
            };
            let is_quiet = kind == SFlag::S_IFREG && identity.age(now_ns) >= margin;
            is_quiet.then_some(Quiet { name, own_pid, modified_ns: identity.modified_ns })
        })
        .collect()
}

/// The pid in `.<pid>.health` or `.<pid>.health.new`.
fn pid_in(name: &[u8]) -> Option<u32> {
    let name = std::str::from_utf8(name).ok()?.strip_prefix('.')?;
    let pid = name.strip_suffix(".new").unwrap_or(name).strip_suffix(".health")?;
    if pid.starts_with('0') || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    pid.parse().ok()
}

/// Everybody who runs: the pid that they call themselves by, and when they started.
struct Running(Vec<(u32, u64)>);

impl Running {
    /// `None` where a process cannot be read.
    fn of(proc: &ProcFs) -> Option<Self> {
        let clock = proc.boot_clock().ok()?;
        let pids = proc.pids().ok()?;
        // With hidepid even process 1 is missing for those who may not see it.
        if !pids.contains(&1) {
            return None;
        }
        let mut text = Vec::new();
        let mut running = Vec::with_capacity(pids.len());
        for pid in pids {
            match Self::read(proc, &clock, pid, &mut text) {
                Ok(process) => running.push(process),
                Err(crate::procfs::Unread::Vanished) => {}
                Err(_) => return None,
            }
        }
        Some(Self(running))
    }

    fn read(
        proc: &ProcFs,
        clock: &BootClock,
        pid: u32,
        text: &mut Vec<u8>,
    ) -> Result<(u32, u64), crate::procfs::Unread> {
        use crate::procfs::Unread;
        let process = proc.process(pid)?;
        process.read(ProcFile::Stat, text)?;
        let start_ticks = Stat::parse(text).ok_or(Unread::Malformed)?.start_ticks;
        process.read(ProcFile::Status, text)?;
        let status = Status::parse(text).ok_or(Unread::Malformed)?;
        Ok((status.namespace_pid.unwrap_or(pid), clock.unix_nanoseconds(start_ticks)))
    }

    /// Whether somebody under this pid had started by then.
    fn has(&self, own_pid: u32, written_ns: u64) -> bool {
        let by = written_ns.saturating_add(START_TOLERANCE_NS);
        self.0.iter().any(|(pid, created_ns)| *pid == own_pid && *created_ns <= by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_health_files_have_a_pid() {
        assert_eq!(pid_in(b".42.health"), Some(42));
        assert_eq!(pid_in(b".42.health.new"), Some(42));
        for name in ["42.health", ".42.healthy", ".health", "..health", ".042.health", ".-1.health"]
        {
            assert_eq!(pid_in(name.as_bytes()), None, "{name}");
        }
    }
}
