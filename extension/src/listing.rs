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
    /// The uid of its Kubernetes pod.
    #[serde(default)]
    pub pod_uid: Option<String>,
    /// The container folder that it is served by; `None` for the top one.
    #[serde(default)]
    pub folder: Option<String>,
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

    /// The container folders of those that have one, by pid and start.
    #[must_use]
    pub fn folders(&self) -> HashMap<(u32, u64), &str> {
        let processes = self.processes.iter();
        processes
            .filter_map(|process| Some((process.identity(), process.folder.as_deref()?)))
            .collect()
    }

    /// Whether a person's line that names a process is about the one that started then, and not
    /// about an earlier one under the same number, `is_numbered` being what tells the processes
    /// under it. The pass that finds a process gone drops its line; so a line that stands after
    /// that pass was written since, and is about whoever has the number now.
    #[must_use]
    pub fn line_is_about(
        &self,
        start_ticks: u64,
        is_numbered: impl Fn(&ListedProcess) -> bool,
    ) -> bool {
        let numbered = self.processes.iter().filter(|process| is_numbered(process));
        // The largest start time would not do: ticks count from boot, and the listing outlives one.
        let last = numbered.max_by_key(|process| (process.until_ns(), process.created_ns));
        last.is_none_or(|last| last.start_ticks == start_ticks || last.gone_since_ns.is_some())
    }
}

impl ListedProcess {
    fn identity(&self) -> (u32, u64) {
        (self.pid, self.start_ticks)
    }

    /// Whether the other one had ended before this one, the younger, got its number.
    fn is_successor_of(&self, other: &Self) -> bool {
        // A restarted container has a new pid namespace and keeps its id; while both are listed,
        // each is in a namespace of its own.
        let is_restarted = other.gone_since_ns.is_some()
            && self.container_id.is_some()
            && self.container_id == other.container_id;
        self.pid == other.pid || is_restarted
    }

    /// Until when it was listed; those that still are come last.
    fn until_ns(&self) -> u64 {
        self.gone_since_ns.unwrap_or(u64::MAX)
    }

    fn meet_again(&mut self, mut now: Self) {
        now.created_ns = self.created_ns;
        // Nobody leaves a container; but one that is ending does not say any more where it was.
        now.container_id = now.container_id.or(self.container_id.take());
        now.pod_uid = now.pod_uid.or(self.pod_uid.take());
        now.uids.extend(&self.uids);
        now.uids.sort_unstable();
        now.uids.dedup();
        *self = now;
    }
}

/// The processes that one folder serves, arranged for look-ups by the pid in a file's name.
#[derive(Debug, Default)]
pub struct Owners<'l> {
    by_own_pid: HashMap<u32, Vec<(usize, &'l ListedProcess)>>,
}

impl<'l> Owners<'l> {
    /// Arranges a listing by folder, `None` being the top one; a folder without a process is left
    /// out. The index handed out with each process is its place in [`Listing::processes`].
    #[must_use]
    pub fn by_folder(listing: &'l Listing) -> HashMap<Option<&'l str>, Self> {
        let mut by_folder = HashMap::<_, Self>::new();
        for (index, process) in listing.processes.iter().enumerate() {
            let owners = by_folder.entry(process.folder.as_deref()).or_default();
            owners.by_own_pid.entry(process.own_pid).or_default().push((index, process));
        }
        by_folder
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
        let mut others = started.filter(|(_, process)| !last.is_successor_of(process));
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
            pod_uid: None,
            folder: None,
            gone_since_ns: None,
        }
    }

    fn top(listing: &Listing) -> Owners<'_> {
        Owners::by_folder(listing).remove(&None).unwrap_or_default()
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
        assert_eq!(listing.processes().len(), 1);
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
    fn a_line_is_about_the_last_process_of_its_number_also_when_ticks_began_anew() {
        let mut listing = Listing::default();
        let is_about = |listing: &Listing, start| listing.line_is_about(start, |one| one.pid == 7);
        assert!(is_about(&listing, 9_000_000));
        listing.refresh(vec![process(7, 9_000_000)], SECOND);
        listing.refresh(vec![process(7, 100)], 2 * SECOND);
        assert!(is_about(&listing, 100));
        assert!(!is_about(&listing, 9_000_000) && !is_about(&listing, 500));
    }

    #[test]
    fn a_line_that_stands_after_its_process_was_found_gone_is_about_the_next_one() {
        let mut listing = Listing::default();
        listing.refresh(vec![process(7, 100)], SECOND);
        listing.refresh(vec![], 2 * SECOND);
        assert!(listing.line_is_about(500, |one| one.pid == 7));
    }

    #[test]
    fn a_reused_pid_is_told_apart_by_the_time_the_file_was_written() {
        let mut listing = Listing::default();
        listing.refresh(vec![process(7, 1_000), process(7, 5_000)], 60 * SECOND);
        let owners = top(&listing);
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
        let owners = top(&listing);
        assert!(matches!(owners.find(7, 15 * SECOND), Owner::One(_, first) if first.pid == 4_242));
        assert_eq!(owners.find(7, 50 * SECOND), Owner::Ambiguous);
        listing.refresh(vec![inside(6_161, 9_000)], 110 * SECOND);
        let owners = top(&listing);
        assert!(matches!(owners.find(7, 120 * SECOND), Owner::One(_, last) if last.pid == 6_161));
    }

    #[test]
    fn a_pid_that_two_folders_have_at_once_names_one_process_in_each() {
        let inside = |pid, folder: &str| ListedProcess {
            own_pid: 7,
            folder: Some(folder.into()),
            ..process(pid, 1_000)
        };
        let mut listing = Listing::default();
        listing.refresh(vec![inside(4_242, "a"), inside(5_151, "b"), process(7, 500)], SECOND);
        let by_folder = Owners::by_folder(&listing);
        for (folder, pid) in [(Some("a"), 4_242), (Some("b"), 5_151), (None, 7)] {
            let owner = by_folder[&folder].find(7, 60 * SECOND);
            assert!(matches!(owner, Owner::One(_, process) if process.pid == pid), "{owner:?}");
        }
        assert!(!by_folder.contains_key(&Some("c")));
    }

    #[test]
    fn the_first_process_of_a_restarted_container_takes_over_its_number_at_once() {
        let inside = |pid, start_ticks, container: &str| ListedProcess {
            own_pid: 1,
            container_id: Some(container.into()),
            ..process(pid, start_ticks)
        };
        let mut listing = Listing::default();
        listing.refresh(vec![inside(4_242, 1_000, "a")], 20 * SECOND);
        listing.refresh(vec![inside(5_151, 3_000, "a")], 60 * SECOND);
        // Written before any pass could find the first one gone.
        let owner = top(&listing).find(1, 40 * SECOND).to_owned();
        assert!(matches!(owner, Owner::One(_, process) if process.pid == 5_151), "{owner:?}");
        // Of different containers, the first may have lived until that pass.
        listing.refresh(vec![inside(6_161, 7_000, "b")], 100 * SECOND);
        assert_eq!(top(&listing).find(1, 80 * SECOND), Owner::Ambiguous);
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
