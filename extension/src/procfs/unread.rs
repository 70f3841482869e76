//! The files of one process, and why one of them gave no answer.

use std::fmt;

use nix::errno::Errno;

/// The files below `/proc/<pid>` that are read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProcFile {
    /// The kernel's name of the process.
    Comm,
    /// State, flags and start time in one line.
    Stat,
    /// User ids and pids in all namespaces, one line each.
    Status,
    /// Link to the executable.
    Exe,
    /// The control groups.
    Cgroup,
    /// The arguments.
    Cmdline,
    /// The environment as it was when the program started.
    Environ,
    /// The memory mappings.
    Maps,
}

impl ProcFile {
    /// The file's name inside `/proc/<pid>`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Comm => "comm",
            Self::Stat => "stat",
            Self::Status => "status",
            Self::Exe => "exe",
            Self::Cgroup => "cgroup",
            Self::Cmdline => "cmdline",
            Self::Environ => "environ",
            Self::Maps => "maps",
        }
    }

    /// The most that is read of it, in bytes. A file beyond it is [`Unread::TooLarge`] and not
    /// judged by its beginning.
    pub fn limit(self) -> usize {
        match self {
            Self::Comm => 128,
            Self::Stat => 4 << 10,
            // `Groups:` comes before `NSpid:` and may hold 65,536 numbers.
            Self::Status => 1 << 20,
            // PATH_MAX and " (deleted)".
            Self::Exe => (4 << 10) + 16,
            // A line for each of at most some 13 hierarchies, each a path.
            Self::Cgroup => 64 << 10,
            // The kernel allows 6 MiB for both together (execve(2)); real ones stay far below.
            Self::Cmdline | Self::Environ => 1 << 20,
            // 65,530 mappings (`vm.max_map_count`) of 250 bytes and as much again; streamed.
            Self::Maps => 32 << 20,
        }
    }
}

impl fmt::Display for ProcFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a process's file gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// The process has ended: a normal answer.
    #[error("the process has ended")]
    Vanished,
    /// The process is another user's, or `/proc` is mounted with `hidepid`.
    #[error("permission denied")]
    Denied,
    /// It does not have the layout that proc(5) gives it.
    #[error("malformed")]
    Malformed,
    /// It is larger than [`ProcFile::limit`].
    #[error("larger than what is read of it")]
    TooLarge,
    /// The kernel said something else.
    #[error("{}", .0.desc())]
    Failed(Errno),
}

impl Unread {
    /// What a person can do about it; empty where nothing needs to be done.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Vanished => "",
            Self::Denied => "run as root or with the capability CAP_SYS_PTRACE",
            Self::Malformed => {
                "use a condition that needs another file, and report the kernel's version"
            }
            Self::TooLarge => "use a condition that needs another file",
            Self::Failed(_) => "see the kernel's log",
        }
    }
}
