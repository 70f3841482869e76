//! The name of a process, of which the kernel keeps 15 bytes.

use crate::procfs::nul_separated;

use super::Unreadable;
use super::facts::Facts;

/// `TASK_COMM_LEN` of `include/linux/sched.h` without its NUL.
const COMM_LENGTH: usize = 15;

/// A script's own name stands behind its interpreter's and at most one option of that
/// (execve(2), "Interpreter scripts").
const ARGUMENTS_WITH_NAMES: usize = 3;

/// The condition `process_name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessName {
    name: Vec<u8>,
}

impl ProcessName {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.as_bytes().to_vec() }
    }

    /// What the kernel's name must be, whatever else has to hold.
    pub(super) fn comm(&self) -> &[u8] {
        self.name.get(..COMM_LENGTH).unwrap_or(&self.name)
    }

    /// Up to 15 bytes the kernel's name decides. A longer name must be that of the executable, of
    /// the first argument or of the script that is run.
    pub(super) fn holds(&self, facts: &Facts) -> Result<bool, Unreadable> {
        if facts.stat()?.comm != self.comm() {
            return Ok(false);
        }
        if self.name.len() <= COMM_LENGTH {
            return Ok(true);
        }
        let exe = facts.exe();
        if exe.is_ok_and(|exe| exe.is_some_and(|exe| exe.file_name() == self.name)) {
            return Ok(true);
        }
        let mut arguments = nul_separated::strings(facts.arguments()?).take(ARGUMENTS_WITH_NAMES);
        if arguments.any(|argument| file_name(argument) == self.name) {
            return Ok(true);
        }
        // Nothing readable has the name; the executable may, where it was not readable.
        exe.map(|_| false)
    }

    /// What there is to compare with, for people.
    pub(super) fn found(&self, facts: &Facts) -> Result<String, Unreadable> {
        let comm = &facts.stat()?.comm;
        let mut names = vec![comm.clone()];
        if self.name.len() > COMM_LENGTH && comm == self.comm() {
            names.extend(facts.exe().ok().flatten().map(|exe| exe.file_name().to_vec()));
            let arguments = nul_separated::strings(facts.arguments()?).take(ARGUMENTS_WITH_NAMES);
            names.extend(arguments.map(|argument| file_name(argument).to_vec()));
            names.dedup();
        }
        let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
        Ok(names.join(", "))
    }
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}
