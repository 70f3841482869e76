//! Why a process belongs to a group or not, as text.

use std::io::{self, Write};

use comfy_table::{Cell, Color};

use crate::groups::{
    ConditionExplanation, Explanation, GroupExplanation, GroupOutcome, Process, Subject, Unreadable,
};

use super::age::age;
use super::resolution::{Users, command};
use crate::cli::Screen;
use crate::cli::columns::Columns;
use crate::cli::printable::printable;

pub(super) fn write(
    out: &mut dyn Write,
    explanation: &Explanation,
    options: &Screen,
) -> io::Result<()> {
    let text = subject(explanation, options);
    writeln!(out, "process {}: {}", explanation.pid, printable(&text))?;
    if let Subject::Running(process) = &explanation.subject {
        writeln!(out, "command: {}", printable(command(process)))?;
    }
    if explanation.groups.is_empty() && explanation.subject != Subject::NotThere {
        writeln!(out, "no group is monitored: add names to `monitored_pg_names`")?;
    }
    for group in &explanation.groups {
        writeln!(out)?;
        let outcome = outcome(&group.outcome);
        writeln!(out, "group {}: {}", printable(&group.name), printable(&outcome))?;
        conditions(group, options).write(out, "  ")?;
    }
    Ok(())
}

fn subject(explanation: &Explanation, options: &Screen) -> String {
    match &explanation.subject {
        Subject::NotThere => "there is no such process, or it is hidden from this user; `ps -e` \
                              lists those that there are"
            .to_owned(),
        Subject::Ourselves => "this is warpgauge itself, which is never monitored".to_owned(),
        Subject::KernelThread => "a thread of the kernel, which is never monitored".to_owned(),
        Subject::Ended => "it has ended and waits for its parent to notice".to_owned(),
        Subject::Unreadable(cause) => unread(cause),
        Subject::Running(process) => running(process, options),
    }
}

fn running(process: &Process, options: &Screen) -> String {
    let mut users = Users::default();
    let user = users.name(process.uids.effective);
    let age = age(process.created_unix_nanoseconds, options.now_unix_nanoseconds);
    let mut text = format!("{}, user {user}, started {age} ago", process.comm);
    if process.namespace_pid != process.id.pid {
        text += &format!(", pid {} in its own namespace", process.namespace_pid);
    }
    if let Some(id) = &process.container_id {
        text += &format!(", container {id}");
    }
    text
}

fn outcome(outcome: &GroupOutcome) -> String {
    match outcome {
        GroupOutcome::Takes => "takes this process".to_owned(),
        GroupOutcome::TakenBy(first) => format!(
            "matches, but group {first} comes first in `monitored_pg_names` and takes it, so that \
             nothing is counted twice"
        ),
        GroupOutcome::NeverMonitored => "matches, but such a process is never monitored".to_owned(),
        GroupOutcome::Undecided(cause) => format!("cannot be decided; {}", unread(cause)),
        GroupOutcome::DoesNotMatch => "does not match".to_owned(),
    }
}

fn conditions(group: &GroupExplanation, options: &Screen) -> Columns {
    // What is written in front of each line takes two columns away.
    let width = options.width.map(|width| width.saturating_sub(2));
    let options = Screen { width, ..*options };
    let mut columns = Columns::new(&["RESULT", "CONDITION", "WANTED", "FOUND"], &options);
    for condition in &group.own {
        columns.row(cells(condition, condition.key.to_string()));
    }
    for (index, way) in group.alternatives.iter().enumerate() {
        for condition in way {
            columns.row(cells(condition, format!("any {}: {}", index + 1, condition.key)));
        }
    }
    columns
}

fn cells(condition: &ConditionExplanation, label: String) -> Vec<Cell> {
    let (result, color, found) = match &condition.found {
        Ok(found) if found.holds => ("holds", Color::Green, found.text.clone()),
        Ok(found) => ("fails", Color::Red, found.text.clone()),
        Err(cause) => ("unknown", Color::Yellow, unread(cause)),
    };
    vec![
        Cell::new(result).fg(color),
        Cell::new(printable(&label)),
        Cell::new(printable(&condition.wanted)),
        Cell::new(printable(&found)),
    ]
}

fn unread(cause: &Unreadable) -> String {
    match cause.reason.advice() {
        "" => cause.to_string(),
        advice => format!("{cause}: {advice}"),
    }
}
