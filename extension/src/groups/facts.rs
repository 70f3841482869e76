//! What is known of one process while rules are applied to it: every file is read when it is
//! first asked for, and once.

use std::cell::OnceCell;

use crate::procfs::cgroup::Membership;
use crate::procfs::{Exe, Mapped, ProcFile, ProcessDir, Stat, Status, Unread, nul_separated};

use super::Unreadable;

/// A file's content once it was asked for.
type Asked<T> = OnceCell<Result<T, Unread>>;

/// One process, held open, and what was read of it so far.
#[derive(Debug)]
pub(super) struct Facts {
    process: ProcessDir,
    stat: Asked<StatFacts>,
    status: Asked<Status>,
    exe: Asked<Option<Exe>>,
    cgroup: Asked<String>,
    arguments: Asked<Vec<u8>>,
    environ: Asked<Vec<u8>>,
    mapped: Asked<Mapped>,
}

/// `Stat` with a name of its own.
#[derive(Debug)]
pub(super) struct StatFacts {
    pub(super) comm: Vec<u8>,
    pub(super) start_ticks: u64,
    pub(super) is_kernel_thread: bool,
    pub(super) has_ended: bool,
}

impl Facts {
    pub(super) fn about(process: ProcessDir) -> Self {
        Self {
            process,
            stat: Asked::new(),
            status: Asked::new(),
            exe: Asked::new(),
            cgroup: Asked::new(),
            arguments: Asked::new(),
            environ: Asked::new(),
            mapped: Asked::new(),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(super) fn stat(&self) -> Result<&StatFacts, Unreadable> {
        ask(&self.stat, ProcFile::Stat, || {
            let text = self.read(ProcFile::Stat)?;
            let stat = Stat::parse(&text).ok_or(Unread::Malformed)?;
            Ok(StatFacts {
                comm: stat.comm.to_vec(),
                start_ticks: stat.start_ticks,
                is_kernel_thread: stat.is_kernel_thread(),
                has_ended: stat.has_ended(),
            })
        })
    }

    pub(super) fn status(&self) -> Result<&Status, Unreadable> {
        ask(&self.status, ProcFile::Status, || {
            Status::parse(&self.read(ProcFile::Status)?).ok_or(Unread::Malformed)
        })
    }

    pub(super) fn exe(&self) -> Result<Option<&Exe>, Unreadable> {
        ask(&self.exe, ProcFile::Exe, || self.process.exe()).map(Option::as_ref)
    }

    /// The text of `/proc/<pid>/cgroup`.
    pub(super) fn cgroup(&self) -> Result<&str, Unreadable> {
        ask(&self.cgroup, ProcFile::Cgroup, || {
            Ok(String::from_utf8_lossy(&self.read(ProcFile::Cgroup)?).into_owned())
        })
        .map(String::as_str)
    }

    pub(super) fn membership(&self) -> Result<Membership, Unreadable> {
        self.cgroup().map(Membership::parse)
    }

    /// The arguments, each ended by a NUL.
    pub(super) fn arguments(&self) -> Result<&[u8], Unreadable> {
        ask(&self.arguments, ProcFile::Cmdline, || self.read(ProcFile::Cmdline)).map(Vec::as_slice)
    }

    /// The arguments joined by single spaces.
    pub(super) fn command_line(&self) -> Result<Vec<u8>, Unreadable> {
        let mut joined = Vec::new();
        nul_separated::join(self.arguments()?, &mut joined);
        Ok(joined)
    }

    /// The environment, each variable ended by a NUL.
    pub(super) fn environ(&self) -> Result<&[u8], Unreadable> {
        ask(&self.environ, ProcFile::Environ, || self.read(ProcFile::Environ)).map(Vec::as_slice)
    }

    pub(super) fn mapped(&self) -> Result<Mapped, Unreadable> {
        ask(&self.mapped, ProcFile::Maps, || self.process.mapped()).copied()
    }

    fn read(&self, file: ProcFile) -> Result<Vec<u8>, Unread> {
        let mut text = Vec::new();
        self.process.read(file, &mut text)?;
        Ok(text)
    }
}

fn ask<T>(
    cell: &Asked<T>,
    file: ProcFile,
    read: impl FnOnce() -> Result<T, Unread>,
) -> Result<&T, Unreadable> {
    cell.get_or_init(read).as_ref().map_err(|&reason| Unreadable { file, reason })
}
