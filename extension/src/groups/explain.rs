//! Why a process belongs to a group, or why it does not.

use crate::procfs::{BootClock, ProcError, ProcFs, Unread};

use super::compile::GroupRule;
use super::condition::Condition;
use super::facts::Facts;
use super::resolve::Verdict;
use super::{ConditionKey, Details, Process, Rules, Unreadable};

/// One process held against every monitored group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The pid that was asked about.
    pub pid: u32,
    /// What it is.
    pub subject: Subject,
    /// Every monitored group in the order in which they are tried; empty where there is no such
    /// process.
    pub groups: Vec<GroupExplanation>,
}

/// What a pid stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// No process, or one that is hidden from us.
    NotThere,
    /// The program that asks.
    Ourselves,
    /// A thread of the kernel's.
    KernelThread,
    /// A process that has ended and waits for its parent to notice.
    Ended,
    /// A process of which not even the necessary could be read.
    Unreadable(Unreadable),
    /// A process that can be monitored.
    Running(Box<Process>),
}

/// One group's rule and what the process has to say to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupExplanation {
    /// The group's name.
    pub name: String,
    /// What follows.
    pub outcome: GroupOutcome,
    /// The table's own conditions, all of which must hold.
    pub own: Vec<ConditionExplanation>,
    /// The entries of `any`, one of which must hold as a whole.
    pub alternatives: Vec<Vec<ConditionExplanation>>,
}

/// What follows from a group's conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupOutcome {
    /// The process belongs to this group.
    Takes,
    /// The conditions hold, but this group comes first in `monitored_pg_names`.
    TakenBy(String),
    /// The conditions hold, but the subject is of a kind that is never monitored.
    NeverMonitored,
    /// Everything that could be read holds; this could not be read.
    Undecided(Unreadable),
    /// A condition fails.
    DoesNotMatch,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionExplanation {
    /// Its key.
    pub key: ConditionKey,
    /// Its value in the configuration.
    pub wanted: String,
    /// What the process has.
    ///
    /// # Errors
    /// Why that could not be read.
    pub found: Result<Found, Unreadable>,
}

/// What a process has where a condition looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// In words.
    pub text: String,
    /// Whether the condition holds.
    pub holds: bool,
}

impl Rules {
    /// Holds one process against every group, condition by condition.
    ///
    /// # Errors
    /// When `/proc` itself cannot be used.
    pub fn explain(&self, proc: &ProcFs, pid: u32, own_pid: u32) -> Result<Explanation, ProcError> {
        let clock = proc.boot_clock()?;
        let facts = match proc.process(pid) {
            Ok(process) => Facts::about(process),
            Err(_) => {
                return Ok(Explanation { pid, subject: Subject::NotThere, groups: Vec::new() });
            }
        };
        let subject = if pid == own_pid {
            Subject::Ourselves
        } else {
            subject(&facts, &clock).unwrap_or_else(|cause| match cause.reason {
                Unread::Vanished => Subject::NotThere,
                _ => Subject::Unreadable(cause),
            })
        };
        let mut groups = Vec::new();
        let mut taken_by = None;
        for rule in &self.groups {
            let Some(outcome) = outcome(rule, &facts, &subject, &mut taken_by) else {
                return Ok(Explanation { pid, subject: Subject::NotThere, groups: Vec::new() });
            };
            groups.push(GroupExplanation {
                name: rule.name.clone(),
                outcome,
                own: rule.own.iter().map(|condition| explain(condition, &facts)).collect(),
                alternatives: rule
                    .alternatives
                    .iter()
                    .map(|way| way.iter().map(|condition| explain(condition, &facts)).collect())
                    .collect(),
            });
        }
        Ok(Explanation { pid, subject, groups })
    }
}

fn subject(facts: &Facts, clock: &BootClock) -> Result<Subject, Unreadable> {
    let stat = facts.stat()?;
    if stat.is_kernel_thread {
        return Ok(Subject::KernelThread);
    }
    if stat.has_ended {
        return Ok(Subject::Ended);
    }
    let mut process = Process::read(facts, clock, |_| {})?;
    process.details = Details::read(facts).ok();
    Ok(Subject::Running(Box::new(process)))
}

/// `None` when the process has ended in the meantime.
fn outcome(
    rule: &GroupRule,
    facts: &Facts,
    subject: &Subject,
    taken_by: &mut Option<String>,
) -> Option<GroupOutcome> {
    Some(match rule.judge(facts).ok()? {
        Verdict::DoesNotMatch => GroupOutcome::DoesNotMatch,
        Verdict::Undecided(cause) => GroupOutcome::Undecided(cause),
        Verdict::Matches => match (subject, &taken_by) {
            (Subject::Running(_), None) => {
                *taken_by = Some(rule.name.clone());
                GroupOutcome::Takes
            }
            (Subject::Running(_), Some(first)) => GroupOutcome::TakenBy(first.clone()),
            _ => GroupOutcome::NeverMonitored,
        },
    })
}

fn explain(condition: &Condition, facts: &Facts) -> ConditionExplanation {
    let found =
        condition.holds(facts).and_then(|holds| Ok(Found { text: condition.found(facts)?, holds }));
    ConditionExplanation { key: condition.key.clone(), wanted: condition.wanted.clone(), found }
}
