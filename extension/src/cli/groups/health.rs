//! What the instrument says of itself in each process of the groups.

use std::collections::HashMap;

use comfy_table::{Cell, Color};

use crate::containers::Containers;
use crate::groups::{Process, Resolution};
use crate::instrument_health::file::{HealthFault, Subject, read};
use crate::instrument_health::{HealthReport, State};
use crate::measurements::folder::Folder;
use crate::pass::place_of;
use crate::procfs::ProcessId;

/// The library's report is old when it has not written for this long; its default is every 10 s.
const STALE_AFTER_NS: u64 = 120_000_000_000;

/// The titles of its columns.
pub(super) const TITLES: [&str; 4] = ["STATE", "LAUNCHES", "MEASURED", "WINDOWS"];

/// Health files by process; a process without one has no entry.
#[derive(Debug, Default)]
pub struct Healths(HashMap<ProcessId, Result<HealthReport, HealthFault>>);

impl Healths {
    /// Reads those of all processes, each in the folder that serves it: its container's, or the top
    /// one. Without a folder nobody has said anything.
    #[must_use]
    pub fn read(resolution: &Resolution, top: Option<&Folder>, containers: &Containers) -> Self {
        let mut opened = HashMap::<&str, Option<Folder>>::new();
        let processes = resolution.groups.iter().flat_map(|group| &group.processes);
        let healths = processes.filter_map(|process| {
            let uids = process.uids.all();
            let subject = Subject {
                own_pid: process.namespace_pid,
                created_ns: process.created_unix_nanoseconds,
                uids: &uids,
            };
            let folder = match containers.folder_of(&place_of(process)) {
                None => top,
                Some(name) => {
                    let open = || containers.open_measurements(name).ok().flatten();
                    opened.entry(name).or_insert_with(open).as_ref()
                }
            };
            Some((process.id, read(folder?, subject).transpose()?))
        });
        Self(healths.collect())
    }

    /// What the library says in a process, if it says anything.
    pub(super) fn of(&self, process: &Process) -> Option<&Result<HealthReport, HealthFault>> {
        self.0.get(&process.id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether the library has fallen silent. What is disabled writes a last time.
pub(super) fn is_stale(report: &HealthReport, now_ns: u64) -> bool {
    report.state != State::Disabled && report.age_ns(now_ns) > STALE_AFTER_NS
}

/// The cells under [`TITLES`].
pub(super) fn cells(health: Option<&Result<HealthReport, HealthFault>>, now_ns: u64) -> [Cell; 4] {
    let none = || Cell::new("-");
    match health {
        None => [none(), none(), none(), none()],
        Some(Err(_)) => [Cell::new("refused").fg(Color::Red), none(), none(), none()],
        Some(Ok(report)) => {
            let state = match report.state {
                _ if is_stale(report, now_ns) => Cell::new("stale").fg(Color::Yellow),
                State::Measuring => Cell::new(report.state.name()).fg(Color::Green),
                State::Disabled => Cell::new(report.state.name()).fg(Color::Red),
                other => Cell::new(other.name()),
            };
            let share = report.launches_measured_share;
            let share =
                share.map_or_else(none, |share| Cell::new(format!("{:.0} %", share * 100.0)));
            [state, Cell::new(report.launches_seen), share, Cell::new(report.windows)]
        }
    }
}

/// What to say of each process besides, a line each.
pub(super) fn notes(resolution: &Resolution, healths: &Healths, now_ns: u64) -> Vec<String> {
    let processes = resolution.groups.iter().flat_map(|group| &group.processes);
    processes
        .filter_map(|process| {
            let pid = process.id.pid;
            let (what, why) = match healths.of(process)? {
                Err(fault) => ("its health file is refused", fault.to_string()),
                Ok(report) if is_stale(report, now_ns) => {
                    let seconds = report.age_ns(now_ns) / 1_000_000_000;
                    ("its library is silent", format!("it last wrote {seconds} s ago"))
                }
                Ok(report) => (report.state.name(), report.reason.clone()?),
            };
            Some(format!("process {pid}: {what}: {why}; `warpgauge check --pid {pid}` says more"))
        })
        .collect()
}
