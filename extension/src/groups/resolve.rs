//! Applying the rules to every process.

use crate::procfs::{BootClock, ProcError, ProcFile, ProcFs, Unread};

use super::compile::GroupRule;
use super::facts::Facts;
use super::unreadable::count;
use super::{Details, Process, Rules, Skipped, Unreadable};

/// The monitored groups and who belongs to them now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolution {
    /// Every monitored group, in the order of `monitored_pg_names`, those without a process too.
    pub groups: Vec<Group>,
    /// How many processes were there to choose from.
    pub listed: usize,
    /// Processes that a group could not decide on: all conditions that could be read hold.
    pub skipped: Vec<Skipped>,
    /// Processes that were matched although something about them could not be read.
    pub incomplete: Vec<Skipped>,
    /// Whether `/proc` is mounted so that processes of other users are not shown at all.
    pub others_hidden: bool,
}

/// A group and the processes that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name in `monitored_pg_names`.
    pub name: String,
    /// In ascending order of their pids.
    pub processes: Vec<Process>,
}

/// What a group's rule says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Matches,
    DoesNotMatch,
    /// Everything that could be read holds, but this could not be read.
    Undecided(Unreadable),
}

impl Rules {
    /// Finds the processes of every group. `own_pid` is never among them
    /// ([`ProcFs::own_pid`] or `std::process::id()`).
    ///
    /// # Errors
    /// When `/proc` itself cannot be used. Single processes never fail the whole.
    pub fn resolve(&self, proc: &ProcFs, own_pid: u32) -> Result<Resolution, ProcError> {
        let clock = proc.boot_clock()?;
        let pids = proc.pids()?;
        let groups = self.groups.iter();
        let mut resolution = Resolution {
            groups: groups
                .map(|rule| Group { name: rule.name.clone(), processes: Vec::new() })
                .collect(),
            listed: pids.len(),
            // The first process of a namespace lives as long as the namespace; where it cannot be
            // seen, it is being hidden (`hidepid` of proc(5)).
            others_hidden: pids.first() != Some(&1),
            ..Resolution::default()
        };
        let mut buffer = [0; 128];
        for pid in pids {
            if pid == own_pid || !self.may_match(proc, pid, &mut buffer) {
                continue;
            }
            let process =
                proc.process(pid).map_err(|reason| Unreadable { file: ProcFile::Stat, reason });
            let looked_at = process
                .and_then(|process| self.look_at(&Facts::about(process), &clock, &mut resolution));
            if let Err(cause) = looked_at
                && cause.reason != Unread::Vanished
            {
                count(&mut resolution.skipped, pid, cause);
            }
        }
        Ok(resolution)
    }

    /// The cheapest question first. A name that cannot be read is left to the closer look, which
    /// says why.
    fn may_match(&self, proc: &ProcFs, pid: u32, buffer: &mut [u8; 128]) -> bool {
        let Some(comms) = &self.comms else { return true };
        match proc.comm(pid, buffer) {
            Ok(comm) => comms.contains(comm),
            Err(reason) => reason != Unread::Vanished,
        }
    }

    fn look_at(
        &self,
        facts: &Facts,
        clock: &BootClock,
        resolution: &mut Resolution,
    ) -> Result<(), Unreadable> {
        let mut undecided = None;
        for (rule, group) in self.groups.iter().zip(&mut resolution.groups) {
            match rule.judge(facts)? {
                Verdict::DoesNotMatch => continue,
                // Only now, because most processes are never asked for it.
                _ if !is_a_running_program(facts)? => return Ok(()),
                Verdict::Undecided(cause) => undecided = undecided.or(Some(cause)),
                Verdict::Matches => {
                    let incomplete = &mut resolution.incomplete;
                    let process = Process::read(facts, clock, |cause| {
                        count(incomplete, facts.pid(), cause);
                    })?;
                    group.processes.push(process);
                    break;
                }
            }
        }
        match undecided {
            Some(cause) => Err(cause),
            None => Ok(()),
        }
    }
}

impl GroupRule {
    /// Whether the process belongs to the group, were it the only one.
    ///
    /// # Errors
    /// Only when the process has ended.
    pub(super) fn judge(&self, facts: &Facts) -> Result<Verdict, Unreadable> {
        let mut verdict = Verdict::DoesNotMatch;
        'ways: for way in &self.ways {
            let mut unread = None;
            for condition in way {
                match condition.holds(facts) {
                    Ok(true) => {}
                    Ok(false) => continue 'ways,
                    Err(cause) if cause.reason == Unread::Vanished => return Err(cause),
                    // Go on: another condition may decide against the process.
                    Err(cause) => unread = unread.or(Some(cause)),
                }
            }
            match unread {
                None => return Ok(Verdict::Matches),
                Some(cause) if verdict == Verdict::DoesNotMatch => {
                    verdict = Verdict::Undecided(cause);
                }
                Some(_) => {}
            }
        }
        Ok(verdict)
    }
}

/// Neither a kernel thread nor over.
pub(super) fn is_a_running_program(facts: &Facts) -> Result<bool, Unreadable> {
    let stat = facts.stat()?;
    Ok(!stat.is_kernel_thread && !stat.has_ended)
}

impl Resolution {
    /// Reads what people want to see besides ([`Process::details`]). A process that has ended
    /// since stays in its group without details; what may not be read joins
    /// [`Resolution::incomplete`].
    pub fn read_details(&mut self, proc: &ProcFs) {
        for process in self.groups.iter_mut().flat_map(|group| &mut group.processes) {
            let Ok(dir) = proc.process(process.id.pid) else { continue };
            let facts = Facts::about(dir);
            let same = facts.stat().is_ok_and(|stat| stat.start_ticks == process.id.start_ticks);
            process.details = if same { Details::read(&facts).ok() } else { None };
            let unread = process.details.as_ref().and_then(|details| details.mapped.err());
            if let Some(reason) = unread.filter(|&reason| reason != Unread::Vanished) {
                let cause = Unreadable { file: ProcFile::Maps, reason };
                count(&mut self.incomplete, process.id.pid, cause);
            }
        }
    }
}
