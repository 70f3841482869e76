//! Who is to be measured in each container: the groups' processes under the numbers that they have
//! inside, and the lines that people wrote there.
//!
//! A container may write its runtime configuration itself, so what stands in it costs a bounded
//! amount of work and can list nothing but its own processes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::containers::{ContainerError, Containers, Refusal};
use crate::control::{OwnLine, RuntimeConfig};
use crate::groups::Process;
use crate::listing::{ListedProcess, Listing};
use crate::procfs::{ProcFile, Status};
use crate::setup::Setup;
use crate::skips::Skips;

use super::plan::{listed_process, place_of};

/// How many lines by hand one container may have; the first ones hold.
pub const MAX_LINES_BY_HAND: usize = 100;

/// `reason` of lines by hand that go since their process has gone.
const ENDED: &str = "their processes have ended";

/// The lines of every container, and the processes that people listed there.
pub(super) struct ContainerPlan {
    own: BTreeMap<String, Vec<OwnLine>>,
    /// By container and number inside, whether the line is about a process that runs. A line that
    /// was written since these were looked up stays.
    runs: HashMap<(String, u32), bool>,
    pub(super) by_hand: Vec<ListedProcess>,
}

/// What became of the containers' files.
#[derive(Default)]
pub(super) struct Applied {
    pub(super) listed: usize,
    pub(super) changed: bool,
    pub(super) dropped: Skips,
    pub(super) refused: Skips,
}

/// Looks up whom people mean, container by container.
pub(super) fn plan(
    setup: &Setup,
    containers: &Containers,
    own: BTreeMap<String, Vec<OwnLine>>,
    listing: &Listing,
) -> ContainerPlan {
    let mut wanted = BTreeMap::new();
    for name in containers.names() {
        // What cannot be read is counted when it is to be written.
        let Ok(Some(config)) = load(containers, name) else { continue };
        let pids = config.manual.iter().take(MAX_LINES_BY_HAND).map(|line| line.entry.pid);
        let pids: BTreeSet<_> = pids.collect();
        if !pids.is_empty() {
            wanted.insert(name.as_str(), pids);
        }
    }
    let mut planned = ContainerPlan { own, runs: HashMap::new(), by_hand: Vec::new() };
    if wanted.is_empty() {
        return planned;
    }
    let found = look_up(setup, containers, &wanted);
    for (name, pids) in wanted {
        let own = planned.own.get(name).map(Vec::as_slice).unwrap_or_default();
        for pid in pids {
            let key = (name.to_owned(), pid);
            let mut runs = found.unreadable.contains(&pid);
            for process in found.processes.get(&key).into_iter().flatten() {
                let is_numbered = |known: &ListedProcess| {
                    known.folder.as_deref() == Some(name) && known.own_pid == pid
                };
                if !listing.line_is_about(process.id.start_ticks, is_numbered) {
                    continue;
                }
                runs = true;
                if own.iter().all(|own| own.pid != pid) {
                    planned.by_hand.push(listed_process(process, None, Some(name)));
                }
            }
            planned.runs.insert(key, runs);
        }
    }
    planned
}

impl ContainerPlan {
    /// Brings every container's file up to date; without `write` only says whether any is not.
    pub(super) fn apply(&self, containers: &Containers, enabled: bool, write: bool) -> Applied {
        let mut applied = Applied::default();
        for name in containers.names() {
            let outcome = self.apply_one(containers, name, enabled, write, &mut applied);
            if let Err((refusal, words)) = outcome {
                applied.refused.note(refusal.reason(), || words);
            }
        }
        applied
    }

    fn apply_one(
        &self,
        containers: &Containers,
        name: &str,
        enabled: bool,
        write: bool,
        applied: &mut Applied,
    ) -> Result<(), (Refusal, String)> {
        let unusable = |fault: ContainerError| (Refusal::Unusable, fault.to_string());
        let of_file = |fault: ContainerError| (Refusal::RuntimeConfig, fault.to_string());
        let Some(container) = containers.open(name).map_err(unusable)? else { return Ok(()) };
        match write {
            true => container.make_measurements().map_err(unusable)?,
            false => drop(container.measurements().map_err(unusable)?),
        }
        let old = container.read_runtime_config().map_err(of_file)?;
        let mut config = RuntimeConfig::parse(old.as_deref().unwrap_or_default());
        let shown =
            |number| format!("{}/{name}/runtime.conf:{number}", containers.path().display());
        if let Some(first) = config.malformed.first() {
            let count = config.malformed.len() as u64;
            applied.refused.note_many(Refusal::MalformedLine.reason(), count, || {
                format!("{}: {}", shown(first.number), first.fault)
            });
        }
        if let Some(first) = config.manual.get(MAX_LINES_BY_HAND) {
            let count = (config.manual.len() - MAX_LINES_BY_HAND) as u64;
            applied
                .refused
                .note_many(Refusal::TooManyLines.reason(), count, || shown(first.number));
            config.manual.truncate(MAX_LINES_BY_HAND);
        }
        config.manual.retain(|line| {
            let runs = self.runs.get(&(name.to_owned(), line.entry.pid)).copied().unwrap_or(true);
            if !runs {
                let pid = line.entry.pid;
                applied.dropped.note(ENDED, || format!("{}: process {pid}", shown(line.number)));
            }
            runs
        });
        let own = self.own.get(name).map(Vec::as_slice).unwrap_or_default();
        let new = config.render(own, enabled);
        if old.as_deref() != Some(&new) {
            if write {
                container.write_runtime_config(&new).map_err(of_file)?;
            }
            applied.changed = true;
        }
        if enabled {
            let manual = config.manual.iter().map(|line| line.entry.pid);
            let pids: BTreeSet<_> = own.iter().map(|line| line.pid).chain(manual).collect();
            applied.listed += pids.len();
        }
        Ok(())
    }
}

fn load(containers: &Containers, name: &str) -> Result<Option<RuntimeConfig>, ContainerError> {
    let Some(container) = containers.open(name)? else { return Ok(None) };
    Ok(container.read_runtime_config()?.map(|content| RuntimeConfig::parse(&content)))
}

/// Who has the wanted numbers.
#[derive(Default)]
struct Found {
    /// By container and number inside; several where a folder serves several pid namespaces.
    processes: HashMap<(String, u32), Vec<Process>>,
    /// Numbers of processes of which could not be read to which container they belong.
    unreadable: BTreeSet<u32>,
}

/// Looks all processes through for those that have one of the wanted numbers inside. One small
/// read dismisses nearly all of them.
fn look_up(
    setup: &Setup,
    containers: &Containers,
    wanted: &BTreeMap<&str, BTreeSet<u32>>,
) -> Found {
    let numbers: BTreeSet<_> = wanted.values().flatten().copied().collect();
    let mut found = Found::default();
    let mut text = Vec::new();
    // A /proc that cannot be listed was said already, by the groups.
    for pid in setup.proc.pids().unwrap_or_default() {
        if pid == setup.own_pid {
            continue;
        }
        let read = setup.proc.process(pid).and_then(|dir| dir.read(ProcFile::Status, &mut text));
        let Some(status) = read.ok().and_then(|()| Status::parse(&text)) else { continue };
        let number = status.namespace_pid.unwrap_or(pid);
        if !numbers.contains(&number) {
            continue;
        }
        match Process::look_up(&setup.proc, pid) {
            Ok(Some(process)) => {
                if let Some(folder) = containers.folder_of(&place_of(&process))
                    && wanted.get(folder).is_some_and(|pids| pids.contains(&number))
                {
                    found.processes.entry((folder.to_owned(), number)).or_default().push(process);
                }
            }
            Ok(None) => {}
            Err(_) => {
                found.unreadable.insert(number);
            }
        }
    }
    found
}

/// The process of a container that has a number inside, for people who name it.
///
/// # Errors
/// The number of processes that have it, where there is not exactly one.
pub fn process_in(
    setup: &Setup,
    containers: &Containers,
    name: &str,
    pid: u32,
) -> Result<Process, usize> {
    let wanted = BTreeMap::from([(name, BTreeSet::from([pid]))]);
    let found = look_up(setup, containers, &wanted).processes.remove(&(name.to_owned(), pid));
    let mut processes = found.unwrap_or_default();
    match (processes.len(), processes.pop()) {
        (1, Some(process)) => Ok(process),
        (count, _) => Err(count),
    }
}
