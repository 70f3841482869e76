//! What a pass knows of a process that it monitors.

use crate::procfs::{BootClock, Mapped, ProcFile, ProcFs, ProcessId, Uids, Unread, nul_separated};

use super::Unreadable;
use super::facts::Facts;
use super::resolve::is_a_running_program;

/// A process that belongs to a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Which process.
    pub id: ProcessId,
    /// Its pid inside the innermost pid namespace that it is in: what it calls itself.
    pub namespace_pid: u32,
    /// Its user ids.
    pub uids: Uids,
    /// The kernel's name of it.
    pub comm: String,
    /// The last part of its executable's path, where that could be read.
    pub executable_name: Option<String>,
    /// The id of the container that it runs in.
    pub container_id: Option<String>,
    /// The innermost systemd service or scope that it runs in.
    pub systemd_unit: Option<String>,
    /// The uid of the Kubernetes pod that it runs in.
    pub pod_uid: Option<String>,
    /// `OTEL_SERVICE_NAME` of the environment that it was started with, where that could be read.
    pub otel_service_name: Option<String>,
    /// `OTEL_RESOURCE_ATTRIBUTES` likewise, as it stands there.
    pub otel_resource_attributes: Option<String>,
    /// When it was started, in nanoseconds since the epoch; moves when the clock is set
    /// ([`BootClock::boot_seconds`]).
    pub created_unix_nanoseconds: u64,
    /// What only people want to know; filled in by [`super::Resolution::read_details`].
    pub details: Option<Details>,
}

/// What costs more to read, and a pass does not need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// The arguments joined by single spaces, or the kernel's name in brackets where there are
    /// none; cut off after [`Details::LONGEST_COMMAND`] bytes.
    pub command: String,
    /// Which libraries it has mapped.
    ///
    /// # Errors
    /// Why that could not be read.
    pub mapped: Result<Mapped, Unread>,
}

/// The longest variable of the environment that is taken over, in bytes.
const LONGEST_VARIABLE: usize = 4096;

impl Process {
    /// The process of a pid, whatever its group; `None` when none runs under it.
    ///
    /// # Errors
    /// What could not be read; whether the process runs is then not known.
    pub fn look_up(proc: &ProcFs, pid: u32) -> Result<Option<Self>, Unreadable> {
        let stat = |reason| Unreadable { file: ProcFile::Stat, reason };
        let read = || {
            let facts = Facts::about(proc.process(pid).map_err(stat)?);
            if !is_a_running_program(&facts)? {
                return Ok(None);
            }
            // A /proc without a boot time tells nothing of its processes either.
            let clock = proc.boot_clock().map_err(|_| stat(Unread::Malformed))?;
            Self::read(&facts, &clock, |_| {}).map(Some)
        };
        match read() {
            Err(Unreadable { reason: Unread::Vanished, .. }) => Ok(None),
            outcome => outcome,
        }
    }

    /// Reads it. What is missing without being necessary is handed to `incomplete`.
    pub(super) fn read(
        facts: &Facts,
        clock: &BootClock,
        mut incomplete: impl FnMut(Unreadable),
    ) -> Result<Self, Unreadable> {
        let stat = facts.stat()?;
        let status = facts.status()?;
        let mut optional = |reason: Unreadable| {
            if reason.reason != Unread::Vanished {
                incomplete(reason);
            }
        };
        let exe = facts.exe().unwrap_or_else(|reason| {
            optional(reason);
            None
        });
        let membership = facts.membership().unwrap_or_else(|reason| {
            optional(reason);
            Default::default()
        });
        let environ = facts.environ().unwrap_or_else(|reason| {
            optional(reason);
            &[]
        });
        let mut variable = |name| {
            let value = nul_separated::variable(environ, name)?;
            if value.len() > LONGEST_VARIABLE {
                optional(Unreadable { file: ProcFile::Environ, reason: Unread::TooLarge });
                return None;
            }
            (!value.is_empty()).then(|| lossy(value))
        };
        Ok(Self {
            id: ProcessId { pid: facts.pid(), start_ticks: stat.start_ticks },
            namespace_pid: status.namespace_pid.unwrap_or(facts.pid()),
            uids: status.uids,
            comm: lossy(&stat.comm),
            executable_name: exe.map(|exe| lossy(exe.file_name())),
            container_id: membership.container_id,
            systemd_unit: membership.systemd_unit,
            pod_uid: membership.pod_uid,
            otel_service_name: variable("OTEL_SERVICE_NAME"),
            otel_resource_attributes: variable("OTEL_RESOURCE_ATTRIBUTES"),
            created_unix_nanoseconds: clock.unix_nanoseconds(stat.start_ticks),
            details: None,
        })
    }
}

impl Details {
    /// How much of a command is kept, in bytes.
    pub const LONGEST_COMMAND: usize = 4096;

    pub(super) fn read(facts: &Facts) -> Result<Self, Unreadable> {
        let mut command = facts.command_line().unwrap_or_default();
        if command.is_empty() {
            command = [b"[", facts.stat()?.comm.as_slice(), b"]"].concat();
        }
        command.truncate(Self::LONGEST_COMMAND);
        let mapped = facts.mapped().map_err(|unreadable| unreadable.reason);
        Ok(Self { command: lossy(&command), mapped })
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
