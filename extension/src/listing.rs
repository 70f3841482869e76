//! Who was listed: the processes that the runtime configuration names now or has named lately.
//!
//! A process may end between two passes; what it published last must still find its owner. So
//! every process that was ever listed stays in `<state>/listed.json` until passes have found it
//! gone for [`KEPT_AFTER_END`]. The file is written before the runtime configuration, so that
//! nothing can be measured that nobody remembers.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, Durability};

/// How long an ended process is remembered, counted from the first pass that finds it gone, however
/// long no pass ran before. Its last file was written before it ended, so that pass finds it; the
/// rest is for passes that fail or leave files for later.
pub const KEPT_AFTER_END: Duration = Duration::from_secs(15 * 60);

/// How many processes are remembered at most; the longest gone go first.
pub const MAX_LISTED: usize = 50_000;

/// A file's time may lie this much before its process's start: file systems stamp with the tick of
/// the kernel's clock, and start times count hundredths of a second.
const START_TOLERANCE_NS: u64 = 1_000_000_000;

/// A process as it was when it was listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedProcess {
    /// As the extension's /proc numbers it.
    pub pid: u32,
    /// As the process itself and its measurement files number it: another one in a container.
    pub own_pid: u32,
    /// Start in clock ticks since boot: with the pid, the identity.
    pub start_ticks: u64,
    /// Start in nanoseconds since the epoch, fixed when first seen so that it never wavers with
    /// the wall clock.
    pub created_ns: u64,
    /// The users that its files may belong to: every real, effective, saved and file system user
    /// that it was seen with, since a file of before a `setuid` may still lie there.
    pub uids: Vec<u32>,
    /// The group that it was found in; `None` for a process that a person listed.
    pub group: Option<String>,
    /// File name of its executable.
    pub executable: String,
    /// What the process says of itself in `OTEL_SERVICE_NAME`.
    pub service_name: Option<String>,
    /// Its container.
    pub container_id: Option<String>,
    /// When a pass first found it gone, nanoseconds since the epoch; `None` while it is listed.
    #[serde(default)]
    pub gone_since_ns: Option<u64>,
}

/// Everybody who is listed, or was lately.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    processes: Vec<ListedProcess>,
}

/// Why the listing could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}; the state folder must be writable, and its disk not full")]
pub struct ListingError {
    path: PathBuf,
    source: io::Error,
}

impl Listing {
    /// Reads what an earlier pass kept. A missing file is an empty listing; a damaged one too, with
    /// a warning: the processes that still run are listed anew by this pass.
    ///
    /// # Errors
    /// [`ListingError`] when the file is there but cannot be read.
    pub fn load(state: &Path) -> Result<Self, ListingError> {
        let path = file_in(state);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(ListingError { path, source }),
        };
        Ok(serde_json::from_slice(&text).unwrap_or_else(|fault| {
            tracing::warn!("{}: {fault}; measurements of processes that ended since the last pass cannot be attributed", path.display());
            Self::default()
        }))
    }

    /// Writes the listing for the passes to come.
    ///
    /// # Errors
    /// [`ListingError`]; the old file then stands.
    pub fn store(&self, state: &Path, durability: Durability) -> Result<(), ListingError> {
        let path = file_in(state);
        let text = serde_json::to_vec(self).map_err(io::Error::other);
        text.and_then(|text| atomic_file::replace(&path, &text, 0o600, durability))
            .map_err(|source| ListingError { path, source })
    }

    /// Takes in the processes that are listed now. Returns whether anything has changed.
    pub fn refresh(&mut self, alive: Vec<ListedProcess>, now_ns: u64) -> bool {
        let before = self.clone();
        let listed: HashSet<_> = alive.iter().map(ListedProcess::identity).collect();
        self.join(alive);
        for process in &mut self.processes {
            if !listed.contains(&process.identity()) {
                process.gone_since_ns.get_or_insert(now_ns);
            }
        }
        let kept = u64::try_from(KEPT_AFTER_END.as_nanos()).unwrap_or(u64::MAX);
        let is_kept = |since: u64| now_ns.saturating_sub(since) <= kept;
        self.processes.retain(|process| process.gone_since_ns.is_none_or(is_kept));
        if self.processes.len() > MAX_LISTED {
            self.processes.sort_by_key(|process| std::cmp::Reverse(process.until_ns()));
            self.processes.truncate(MAX_LISTED);
        }
        *self != before
    }

    /// Takes in more processes that are listed; says nothing of the others.
    pub fn join(&mut self, alive: impl IntoIterator<Item = ListedProcess>) {
        let places: HashMap<_, _> =
            self.processes.iter().enumerate().map(|(at, known)| (known.identity(), at)).collect();
        for process in alive {
            let known = places.get(&process.identity()).and_then(|&at| self.processes.get_mut(at));
            match known {
                Some(known) => known.meet_again(process),
                None => self.processes.push(process),
            }
        }
    }

    /// The processes, in no order.
    #[must_use]
    pub fn processes(&self) -> &[ListedProcess] {
        &self.processes
    }

    /// The start time of the process that was listed last under a pid. The largest start time would
    /// not do: ticks count from boot, and the listing outlives a boot.
    #[must_use]
    pub fn last_start_of(&self, pid: u32) -> Option<u64> {
        let of_pid = self.processes.iter().filter(|process| process.pid == pid);
        let last = of_pid.max_by_key(|process| (process.until_ns(), process.created_ns));
        last.map(|process| process.start_ticks)
    }
}

impl ListedProcess {
    fn identity(&self) -> (u32, u64) {
        (self.pid, self.start_ticks)
    }

    /// Until when it was listed; those that still are come last.
    fn until_ns(&self) -> u64 {
        self.gone_since_ns.unwrap_or(u64::MAX)
    }

    fn meet_again(&mut self, mut now: Self) {
        now.created_ns = self.created_ns;
        now.uids.extend(&self.uids);
        now.uids.sort_unstable();
        now.uids.dedup();
        *self = now;
    }
}

/// A listing arranged for look-ups by the pid in a file's name.
#[derive(Debug)]
pub struct Owners<'l> {
    by_own_pid: HashMap<u32, Vec<(usize, &'l ListedProcess)>>,
}

impl<'l> Owners<'l> {
    /// Arranges a listing. The index handed out with each process is its place in
    /// [`Listing::processes`].
    #[must_use]
    pub fn of(listing: &'l Listing) -> Self {
        let mut by_own_pid = HashMap::<_, Vec<_>>::new();
        for (index, process) in listing.processes.iter().enumerate() {
            by_own_pid.entry(process.own_pid).or_default().push((index, process));
        }
        Self { by_own_pid }
    }

    /// The process that wrote a file of this pid at this time: of those that had the pid, the last
    /// that had started by then. Where two had it at the same time, each in a pid namespace of its
    /// own, nobody can tell.
    #[must_use]
    pub fn find(&self, own_pid: u32, written_ns: u64) -> Owner<'l> {
        let candidates = self.by_own_pid.get(&own_pid).map(Vec::as_slice).unwrap_or_default();
        let started = candidates.iter().filter(|(_, process)| {
            process.created_ns <= written_ns.saturating_add(START_TOLERANCE_NS)
        });
        let Some(&(index, last)) = started.clone().max_by_key(|(_, process)| process.created_ns)
        else {
            return Owner::Nobody;
        };
        let mut others = started.filter(|(_, process)| process.pid != last.pid);
        if others.any(|(_, process)| process.until_ns() >= written_ns) {
            return Owner::Ambiguous;
        }
        Owner::One(index, last)
    }
}

/// Whose a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'l> {
    /// This process's, with its place in [`Listing::processes`].
    One(usize, &'l ListedProcess),
    /// No process that was listed had that pid by then.
    Nobody,
    /// Several processes had it, in different pid namespaces.
    Ambiguous,
}

fn file_in(state: &Path) -> PathBuf {
    state.join("listed.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn process(pid: u32, start_ticks: u64) -> ListedProcess {
        ListedProcess {
            pid,
            own_pid: pid,
            start_ticks,
            created_ns: start_ticks * 10_000_000,
            uids: vec![1000],
            group: Some("trainer".into()),
            executable: "python3".into(),
            service_name: None,
            container_id: None,
            gone_since_ns: None,
        }
    }

    #[test]
    fn a_process_that_ended_is_remembered_for_a_while_and_then_forgotten() {
        let state = tempfile::tempdir().unwrap();
        let mut listing = Listing::load(state.path()).unwrap();
        assert!(listing.refresh(vec![process(7, 100)], 60 * SECOND));
        assert!(!listing.refresh(vec![process(7, 100)], 120 * SECOND));
        listing.store(state.path(), Durability::PowerCut).unwrap();
        let mut listing = Listing::load(state.path()).unwrap();
        assert!(listing.refresh(vec![], 180 * SECOND));
        assert!(!listing.refresh(vec![], 240 * SECOND));
        assert_eq!(listing.last_start_of(7), Some(100));
        assert!(listing.refresh(vec![], (180 + 901) * SECOND));
        assert_eq!(listing.processes(), []);
    }

    #[test]
    fn a_process_that_ended_while_no_pass_ran_is_still_remembered() {
        let mut listing = Listing::default();
        listing.refresh(vec![process(7, 100)], 60 * SECOND);
        listing.refresh(vec![], 100_000 * SECOND);
        assert_eq!(listing.processes().len(), 1);
    }

    #[test]
    fn a_process_that_changes_its_user_owns_its_files_of_before() {
        let mut listing = Listing::default();
        listing.refresh(vec![ListedProcess { uids: vec![0], ..process(7, 100) }], SECOND);
        listing.refresh(vec![process(7, 100)], 2 * SECOND);
        assert_eq!(listing.processes()[0].uids, [0, 1000]);
    }

    #[test]
    fn the_last_process_of_a_pid_is_the_last_also_when_ticks_began_anew() {
        let mut listing = Listing::default();
        listing.refresh(vec![process(7, 9_000_000)], SECOND);
        listing.refresh(vec![process(7, 100)], 2 * SECOND);
        assert_eq!(listing.last_start_of(7), Some(100));
    }

    #[test]
    fn a_reused_pid_is_told_apart_by_the_time_the_file_was_written() {
        let mut listing = Listing::default();
        listing.refresh(vec![process(7, 1_000), process(7, 5_000)], 60 * SECOND);
        let owners = Owners::of(&listing);
        let start_at = |written_s: u64| match owners.find(7, written_s * SECOND) {
            Owner::One(_, process) => Some(process.start_ticks),
            Owner::Nobody | Owner::Ambiguous => None,
        };
        assert_eq!(start_at(20), Some(1_000));
        assert_eq!(start_at(51), Some(5_000));
        assert_eq!(start_at(3), None);
        assert_eq!(owners.find(8, u64::MAX), Owner::Nobody);
    }

    #[test]
    fn a_pid_that_two_containers_have_at_once_names_nobody() {
        let inside = |pid, start_ticks| ListedProcess { own_pid: 7, ..process(pid, start_ticks) };
        let mut listing = Listing::default();
        listing.refresh(vec![inside(4_242, 1_000), inside(5_151, 2_000)], 60 * SECOND);
        // The first has ended by the second pass, the third had not started before it.
        listing.refresh(vec![inside(5_151, 2_000), inside(6_161, 9_000)], 100 * SECOND);
        let owners = Owners::of(&listing);
        assert!(matches!(owners.find(7, 15 * SECOND), Owner::One(_, first) if first.pid == 4_242));
        assert_eq!(owners.find(7, 50 * SECOND), Owner::Ambiguous);
        listing.refresh(vec![inside(6_161, 9_000)], 110 * SECOND);
        let owners = Owners::of(&listing);
        assert!(matches!(owners.find(7, 120 * SECOND), Owner::One(_, last) if last.pid == 6_161));
    }

    #[test]
    fn a_damaged_listing_reads_as_empty() {
        let state = tempfile::tempdir().unwrap();
        atomic_file::replace(
            &file_in(state.path()),
            b"{\"processes\":[{",
            0o600,
            Durability::PowerCut,
        )
        .unwrap();
        assert_eq!(Listing::load(state.path()).unwrap(), Listing::default());
    }
}
