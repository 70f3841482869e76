//! What could not be read, counted by reason so that it is said once.

use std::fmt;

use crate::procfs::{ProcFile, Unread};

/// A file of a process that gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable {
    /// Which file.
    pub file: ProcFile,
    /// Why.
    pub reason: Unread,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.reason)
    }
}

/// Processes about which the same thing could not be read for the same reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// What could not be read, and why.
    pub cause: Unreadable,
    /// How many processes.
    pub processes: usize,
    /// One of them, the lowest pid.
    pub example: u32,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.processes == 1 { "process" } else { "processes" };
        write!(f, "{} {plural} (pid {} for one): {}", self.processes, self.example, self.cause)?;
        match self.cause.reason.advice() {
            "" => Ok(()),
            advice => write!(f, "; {advice}"),
        }
    }
}

/// Counts one more process; processes come in ascending order of their pids.
pub(super) fn count(tally: &mut Vec<Skipped>, pid: u32, cause: Unreadable) {
    match tally.iter_mut().find(|skipped| skipped.cause == cause) {
        Some(skipped) => skipped.processes += 1,
        None => tally.push(Skipped { cause, processes: 1, example: pid }),
    }
}
