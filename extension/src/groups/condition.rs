//! One compiled condition: what it asks of a process, and whether that holds.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use globset::{Candidate, GlobMatcher};
use nix::unistd::{Uid, User};
use regex::bytes::Regex;

use crate::procfs::{cgroup, nul_separated};

use super::Unreadable;
use super::facts::Facts;
use super::process_name::ProcessName;

/// The keys of a condition, the cheapest to answer first: a rule is checked in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionKey {
    /// `process_name`
    ProcessName,
    /// `user`
    User,
    /// `exe`
    Exe,
    /// `systemd_unit`
    SystemdUnit,
    /// `cgroup`
    Cgroup,
    /// `container`
    Container,
    /// `cmdline`
    Cmdline,
    /// `env`, and the variable's name
    Env(String),
    /// `gpu`
    Gpu,
}

impl fmt::Display for ConditionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProcessName => f.write_str("process_name"),
            Self::User => f.write_str("user"),
            Self::Exe => f.write_str("exe"),
            Self::SystemdUnit => f.write_str("systemd_unit"),
            Self::Cgroup => f.write_str("cgroup"),
            Self::Container => f.write_str("container"),
            Self::Cmdline => f.write_str("cmdline"),
            Self::Env(variable) => write!(f, "env.{variable}"),
            Self::Gpu => f.write_str("gpu"),
        }
    }
}

/// A condition, ready to be checked.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) key: ConditionKey,
    /// The value, as written.
    pub(super) wanted: String,
    pub(super) test: Test,
}

/// What is compared with what.
#[derive(Debug)]
pub(super) enum Test {
    ProcessName(ProcessName),
    User(Uid),
    Exe(GlobMatcher),
    SystemdUnit(GlobMatcher),
    Cgroup(GlobMatcher),
    Container(String),
    Cmdline(Regex),
    Env { variable: String, value: GlobMatcher },
    Gpu(bool),
}

impl Condition {
    /// Whether it holds.
    ///
    /// # Errors
    /// When what it needs could not be read: then it neither holds nor fails.
    pub(super) fn holds(&self, facts: &Facts) -> Result<bool, Unreadable> {
        Ok(match &self.test {
            Test::ProcessName(name) => name.holds(facts)?,
            Test::User(uid) => facts.status()?.uids.effective == uid.as_raw(),
            Test::Exe(glob) => facts.exe()?.is_some_and(|exe| matches(glob, &exe.path)),
            Test::SystemdUnit(glob) => cgroup::paths(facts.cgroup()?)
                .flat_map(cgroup::units)
                .any(|unit| matches(glob, unit.as_bytes())),
            Test::Cgroup(glob) => {
                cgroup::paths(facts.cgroup()?).any(|path| matches(glob, path.as_bytes()))
            }
            Test::Container(start) => {
                facts.membership()?.container_id.is_some_and(|id| id.starts_with(start))
            }
            Test::Cmdline(regex) => regex.is_match(&facts.command_line()?),
            Test::Env { variable, value } => nul_separated::variable(facts.environ()?, variable)
                .is_some_and(|found| matches(value, found)),
            Test::Gpu(wanted) => facts.mapped()?.cuda_driver == *wanted,
        })
    }

    /// What the process has instead or as well, for people.
    ///
    /// # Errors
    /// As [`Condition::holds`].
    pub(super) fn found(&self, facts: &Facts) -> Result<String, Unreadable> {
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
        Ok(match &self.test {
            Test::ProcessName(name) => name.found(facts)?,
            Test::User(_) => {
                let uid = facts.status()?.uids.effective;
                match User::from_uid(Uid::from_raw(uid)) {
                    Ok(Some(user)) => format!("{} ({uid})", user.name),
                    _ => uid.to_string(),
                }
            }
            Test::Exe(_) => facts.exe()?.map_or_else(
                || "none".to_owned(),
                |exe| lossy(&exe.path) + if exe.deleted { " (deleted)" } else { "" },
            ),
            Test::SystemdUnit(_) => {
                let units: Vec<_> =
                    cgroup::paths(facts.cgroup()?).flat_map(cgroup::units).collect();
                or_none(units.join(", "))
            }
            Test::Cgroup(_) => {
                or_none(cgroup::paths(facts.cgroup()?).collect::<Vec<_>>().join(", "))
            }
            Test::Container(_) => or_none(facts.membership()?.container_id.unwrap_or_default()),
            Test::Cmdline(_) => or_none(lossy(&facts.command_line()?)),
            Test::Env { variable, .. } => nul_separated::variable(facts.environ()?, variable)
                .map_or_else(|| "not set".to_owned(), |value| format!("{:?}", lossy(value))),
            Test::Gpu(_) => match facts.mapped()?.cuda_driver {
                true => "libcuda.so is mapped".to_owned(),
                false => "libcuda.so is not mapped".to_owned(),
            },
        })
    }
}

fn matches(glob: &GlobMatcher, bytes: &[u8]) -> bool {
    glob.is_match_candidate(&Candidate::new(OsStr::from_bytes(bytes)))
}
