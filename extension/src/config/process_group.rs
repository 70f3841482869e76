//! `[[process_group]]`: what belongs to a group. Plain data; `groups` compiles and applies it.

use std::collections::BTreeMap;

/// One table `[[process_group]]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessGroup {
    /// `name`: what `monitored_pg_names` calls it, and `service.name` of what is exported.
    pub name: String,
    /// The table's own conditions; all that are given must hold.
    pub all: Conditions,
    /// `any = [{...}, ...]`: when not empty, at least one of these must hold as well.
    pub any: Vec<Conditions>,
}

/// Conditions on a process; all that are given must hold. An empty set matches nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    /// `process_name`: the kernel's name of the process (`comm`), or, beyond its 15 bytes, the
    /// last part of the executable's path or of the first argument.
    pub process_name: Option<String>,
    /// `exe`: glob over the executable's path; `*` stays within one part of it, `**` crosses.
    pub exe: Option<String>,
    /// `cmdline`: regular expression searched in the arguments joined by single spaces.
    pub cmdline: Option<String>,
    /// `user`: name or number of the effective user.
    pub user: Option<String>,
    /// `systemd_unit`: glob over the unit's name in the process's cgroup path, such as
    /// `trainer@*.service`.
    pub systemd_unit: Option<String>,
    /// `cgroup`: glob over the process's cgroup path; `*` stays within one part, `**` crosses.
    pub cgroup: Option<String>,
    /// `container`: container id, or at least its first 12 characters.
    pub container: Option<String>,
    /// `env`: variables of the process's environment; each value is a glob.
    pub env: BTreeMap<String, String>,
    /// `gpu = true`: the process has the CUDA driver (`libcuda.so`) mapped; `false`: it has not.
    pub gpu: Option<bool>,
}
