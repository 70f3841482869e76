//! Who is to be measured: from the resolved groups and the persons' lines to the listing and the
//! runtime configuration.

use std::collections::{BTreeMap, BTreeSet};

use crate::atomic_file::Durability;
use crate::config::{Config, Paths};
use crate::containers::Containers;
use crate::containers::assignment::Place;
use crate::control::{self, OwnLine, RuntimeConfig, RuntimeConfigOutcome};
use crate::groups::{Process, Resolution};
use crate::listing::{ListedProcess, Listing};
use crate::setup::Setup;
use crate::skips::Skips;

use super::container_plan::{self, ContainerPlan};

/// The processes to be listed, the file as it should be, and what to say of persons' lines.
pub(super) struct Planned {
    pub(super) alive: Vec<ListedProcess>,
    pub(super) content: Vec<u8>,
    listed: usize,
    remarks: Vec<String>,
    containers: ContainerPlan,
}

impl Planned {
    pub(super) fn outcome(&self, changed: bool) -> RuntimeConfigOutcome {
        let Self { listed, remarks, .. } = self;
        RuntimeConfigOutcome { listed: *listed, changed, remarks: remarks.clone(), failure: None }
    }

    /// Deals with the runtime configurations of the containers; without `write` it only finds out
    /// whether any would change. One that fails is counted and keeps none of the others waiting.
    pub(super) fn apply_to_containers(
        &self,
        setup: &Setup,
        containers: &Containers,
        outcome: &mut RuntimeConfigOutcome,
        refused: &mut Skips,
        write: bool,
    ) {
        let enabled = setup.config.instrumentation_enabled;
        let applied = self.containers.apply(containers, enabled, write);
        outcome.listed += applied.listed;
        outcome.changed |= applied.changed;
        outcome.remarks.extend(applied.dropped.iter().map(|(reason, skip)| {
            format!(
                "containers: {} lines by hand dropped, {reason}, the first: {}",
                skip.count, skip.example
            )
        }));
        refused.merge(applied.refused);
    }
}

/// Remembers who is listed, then tells the instrument. The order matters: nothing may be measured
/// that nobody remembers.
pub(super) fn list(
    setup: &Setup,
    containers: &mut Containers,
    resolution: &Resolution,
    now_ns: u64,
) -> anyhow::Result<(Listing, RuntimeConfigOutcome)> {
    let Paths { state, runtime_config, .. } = &setup.config.paths;
    for skipped in resolution.skipped.iter().chain(&resolution.incomplete) {
        tracing::warn!("/proc: {skipped}");
    }
    let mut listing = Listing::load(state)?;
    let loaded = RuntimeConfig::load(runtime_config);
    let (existing, old) = match loaded {
        Ok(loaded) => loaded,
        Err(fault) => {
            // Somebody else's file, perhaps: it is not overwritten unread.
            let failure = RuntimeConfigOutcome {
                failure: Some(fault.to_string()),
                ..RuntimeConfigOutcome::default()
            };
            return Ok((listing, failure));
        }
    };
    let planned = plan(setup, containers, resolution, existing, &listing);
    if listing.refresh(planned.alive.clone(), now_ns) {
        listing.store(state, Durability::PowerCut)?;
    }
    let mut outcome = match control::write_if_changed(runtime_config, &old, &planned.content) {
        Ok(written) => planned.outcome(written),
        Err(fault) => {
            RuntimeConfigOutcome { failure: Some(fault.to_string()), ..planned.outcome(false) }
        }
    };
    for remark in &outcome.remarks {
        tracing::warn!("{}: {remark}", runtime_config.display());
    }
    let own_remarks = outcome.remarks.len();
    let mut refused = std::mem::take(&mut containers.refused);
    planned.apply_to_containers(setup, containers, &mut outcome, &mut refused, true);
    containers.refused = refused;
    for remark in outcome.remarks.iter().skip(own_remarks) {
        tracing::warn!("{remark}");
    }
    Ok((listing, outcome))
}

pub(super) fn plan(
    setup: &Setup,
    containers: &Containers,
    resolution: &Resolution,
    mut existing: RuntimeConfig,
    listing: &Listing,
) -> Planned {
    let Config { functions, instrumentation_enabled, .. } = &setup.config;
    let mut alive = Vec::new();
    let mut own = Vec::new();
    let mut of_containers = BTreeMap::<_, Vec<_>>::new();
    let folders_before = listing.folders();
    for group in &resolution.groups {
        for process in &group.processes {
            let place = place_of(process);
            let folder = containers.folder_of(&place).or_else(|| {
                // Its last files lie where it was.
                let before = folders_before.get(&(process.id.pid, process.id.start_ticks))?;
                containers.names().get(*before).map(String::as_str).filter(|_| place.is_unknown())
            });
            alive.push(listed_process(process, Some(&group.name), folder));
            let (pid, group) = (process.namespace_pid, group.name.clone());
            let line = OwnLine { pid, functions: *functions, group };
            match folder {
                Some(folder) => of_containers.entry(folder.to_owned()).or_default().push(line),
                None => own.push(line),
            }
        }
    }
    let of_containers = container_plan::plan(setup, containers, of_containers, listing);
    alive.extend(of_containers.by_hand.iter().cloned());
    let mut remarks: Vec<_> = existing
        .malformed
        .iter()
        .map(|line| format!("line {}: {}: `{}`", line.number, line.fault, line.shown()))
        .collect();
    existing.manual.retain(|line| {
        let pid = line.entry.pid;
        match Process::look_up(&setup.proc, pid) {
            Ok(Some(process))
                if listing.line_is_about(process.id.start_ticks, |known| known.pid == pid) =>
            {
                if own.iter().all(|own| own.pid != pid) {
                    alive.push(listed_process(&process, None, None));
                }
                true
            }
            // Ended, and perhaps its pid is another's by now.
            Ok(_) => {
                remarks.push(format!(
                    "line {}: process {pid} has ended; its line is dropped",
                    line.number
                ));
                false
            }
            Err(cause) => {
                remarks.push(format!(
                    "line {}: process {pid}: {cause}; its line stays, its measurements cannot be attributed",
                    line.number
                ));
                true
            }
        }
    });
    let listed = if *instrumentation_enabled {
        let manual = existing.manual.iter().map(|line| line.entry.pid);
        own.iter().map(|line| line.pid).chain(manual).collect::<BTreeSet<_>>().len()
    } else {
        0
    };
    let content = existing.render(&own, *instrumentation_enabled);
    Planned { alive, content, listed, remarks, containers: of_containers }
}

/// Where a process stands in the control groups.
#[must_use]
pub fn place_of(process: &Process) -> Place<'_> {
    Place {
        container_id: process.container_id.as_deref(),
        pod_uid: process.pod_uid.as_deref(),
        systemd_unit: process.systemd_unit.as_deref(),
    }
}

/// A process as the listing keeps it; `folder` is the container folder that serves it, if any.
#[must_use]
pub fn listed_process(
    process: &Process,
    group: Option<&str>,
    folder: Option<&str>,
) -> ListedProcess {
    ListedProcess {
        pid: process.id.pid,
        own_pid: process.namespace_pid,
        start_ticks: process.id.start_ticks,
        created_ns: process.created_unix_nanoseconds,
        uids: process.uids.all(),
        group: group.map(str::to_owned),
        executable: process.executable_name.clone().unwrap_or_else(|| process.comm.clone()),
        service_name: process.otel_service_name.clone(),
        container_id: process.container_id.clone(),
        pod_uid: process.pod_uid.clone(),
        folder: folder.map(str::to_owned),
        gone_since_ns: None,
    }
}
