//! The containers' folders: whether they can be used, and whether each has its container.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use super::{Level, Remarks};
use crate::containers::Containers;
use crate::containers::assignment::Place;
use crate::pass::place_of;
use crate::procfs::ProcFile;
use crate::procfs::cgroup::Membership;
use crate::setup::Setup;

const ABOUT: &str = "paths.containers";

pub(super) fn check(setup: &Setup, remarks: &mut Remarks) {
    let path = &setup.config.paths.containers;
    // Most machines have none, and need none.
    let Ok(metadata) = path.metadata() else { return };
    let containers = Containers::look(path);
    for (reason, skip) in containers.refused.iter() {
        let message = format!("{} x {reason}, the first: {}", skip.count, skip.example);
        remarks.add(Level::Warning, ABOUT, message);
    }
    if metadata.permissions().mode() & 0o022 != 0 {
        let message = format!(
            "others may make folders in {}, and so choose whose processes they serve: chmod 755 {0}",
            path.display()
        );
        remarks.add(Level::Warning, ABOUT, message);
    }
    let running = with_a_process(setup, &containers);
    let idle: Vec<_> = containers.names().difference(&running).collect();
    remarks.add(Level::Good, ABOUT, format!("{} folders with a running container", running.len()));
    if let Some(first) = idle.first() {
        let message = format!(
            "{} folders match no running container, {first} is one; a folder is named for the container's id (or its first 12 digits), the pod's uid or the systemd unit",
            idle.len()
        );
        remarks.add(Level::Note, ABOUT, message);
    }
    without_a_folder(setup, &containers, remarks);
}

/// The folders that serve at least one process.
fn with_a_process(setup: &Setup, containers: &Containers) -> BTreeSet<String> {
    let mut text = Vec::new();
    let mut running = BTreeSet::new();
    for pid in setup.proc.pids().unwrap_or_default() {
        let read = setup.proc.process(pid).and_then(|dir| dir.read(ProcFile::Cgroup, &mut text));
        if read.is_err() {
            continue;
        }
        let membership = Membership::parse(&String::from_utf8_lossy(&text));
        let place = Place {
            container_id: membership.container_id.as_deref(),
            pod_uid: membership.pod_uid.as_deref(),
            systemd_unit: membership.systemd_unit.as_deref(),
        };
        running.extend(containers.folder_of(&place).map(str::to_owned));
    }
    running
}

/// Processes to be measured that run in a container which has none of the folders.
fn without_a_folder(setup: &Setup, containers: &Containers, remarks: &mut Remarks) {
    // A /proc that cannot be used is said by the check of the groups.
    let Ok(resolution) = setup.rules.resolve(&setup.proc, setup.own_pid) else { return };
    let processes = resolution.groups.iter().flat_map(|group| &group.processes);
    let without: Vec<_> = processes
        .filter_map(|process| Some((process, process.container_id.as_deref()?)))
        .filter(|(process, _)| containers.folder_of(&place_of(process)).is_none())
        .collect();
    if let Some((process, id)) = without.first() {
        let message = format!(
            "{} processes run in containers without a folder of their own, process {} in {id} is one; they share {} and {}",
            without.len(),
            process.id.pid,
            setup.config.paths.runtime_config.display(),
            setup.config.paths.measurements.display(),
        );
        remarks.add(Level::Note, ABOUT, message);
    }
}
