//! `/proc/<pid>/cgroup`: which container, systemd unit and Kubernetes pod a process belongs to.
//!
//! ```text
//! 0::/system.slice/docker-3f5a….scope          version 2: one line
//! 4:memory:/docker/3f5a…                       version 1: a line for each hierarchy
//! 1:name=systemd:/docker/3f5a…
//! ```
//!
//! Nothing but the path is known, so everything is read from the names of its parts:
//!
//! | who made it | part of the path |
//! |---|---|
//! | Docker, cgroupfs driver | `docker/ID` |
//! | Docker, systemd driver | `docker-ID.scope` |
//! | containerd under Kubernetes | `cri-containerd-ID.scope`, `SLICE:cri-containerd:ID` or `ID` |
//! | nerdctl | `nerdctl-ID.scope`, `NAMESPACE/ID` |
//! | CRI-O | `crio-ID.scope`; `crio-conmon-ID.scope` holds its monitor, not the container |
//! | podman | `libpod-ID.scope`, `libpod-payload-ID`; `libpod-conmon-ID.scope` is its monitor |
//! | Amazon ECS | `ecs/TASK/ID`, where ID may be 32 digits, `-` and a number |
//! | Kubernetes pods | `podUID` or `…-podUID.slice`, dashes of the UID written as `_` in slices |
//! | systemd | `NAME.slice`, `NAME.service`, `NAME.scope`, a leading `_` where it had to be escaped |
//!
//! Containers and units nest; the innermost is what a process belongs to. Containers that are
//! known by a name of their own choosing (LXC, `ctr run`) have no id in the path.

mod container;
mod unit;

/// Where a process stands in the control groups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Membership {
    /// The innermost container's id: 64 hexadecimal digits (ECS: 32, `-`, a number).
    pub container_id: Option<String>,
    /// The innermost systemd service, scope or other unit that is no slice, named as `systemctl`
    /// names it, escapes such as `\x2d` included.
    pub systemd_unit: Option<String>,
    /// The uid of the innermost Kubernetes pod, dashes restored.
    pub pod_uid: Option<String>,
}

impl Membership {
    /// Reads it from the text of `/proc/<pid>/cgroup`. Lines that are none are passed over.
    pub fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for path in paths(text) {
            let mut here = Self::default();
            for part in path.split('/') {
                if let Some(id) = container::id(part) {
                    here.container_id = Some(id.to_owned());
                } else if container::is_monitor(part) {
                    here.container_id = None;
                }
                if let Some(uid) = container::pod_uid(part) {
                    here.pod_uid = Some(uid);
                }
                if let Some(unit) = unit::name(part).filter(|unit| !unit.ends_with(".slice")) {
                    here.systemd_unit = Some(unit.to_owned());
                }
            }
            // Under version 1 each hierarchy may know something that the others do not.
            found.container_id = found.container_id.or(here.container_id);
            found.systemd_unit = found.systemd_unit.or(here.systemd_unit);
            found.pod_uid = found.pod_uid.or(here.pod_uid);
        }
        found
    }
}

/// The control group paths, each once, in the order of the lines. A path may hold colons.
pub fn paths(text: &str) -> impl Iterator<Item = &str> {
    let path = |line: &'_ str| -> Option<(usize, usize)> {
        let mut fields = line.splitn(3, ':');
        fields.next()?.parse::<u32>().ok()?;
        let (_controllers, path) = (fields.next()?, fields.next()?);
        path.starts_with('/').then_some((line.len() - path.len(), line.len()))
    };
    let mut seen: Vec<&str> = Vec::new();
    text.lines().filter_map(move |line| {
        let (start, end) = path(line)?;
        let path = line.get(start..end)?;
        if seen.contains(&path) {
            return None;
        }
        seen.push(path);
        Some(path)
    })
}

/// The names of all systemd units on a path, slices included, the outermost first.
pub fn units(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(unit::name)
}

#[cfg(test)]
mod tests;
