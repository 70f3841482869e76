//! The groups and their processes as text.

use std::collections::HashMap;
use std::io::{self, Write};

use comfy_table::{Cell, Color};
use nix::unistd::{Uid, User};

use crate::groups::{Process, Resolution};

use super::age::age;
use super::health::{self, Healths};
use crate::cli::Screen;
use crate::cli::columns::Columns;
use crate::cli::printable::printable;

/// How much of a container's id is shown, as `docker ps` does.
const SHORT_ID: usize = 12;

pub(super) fn write(
    out: &mut dyn Write,
    resolution: &Resolution,
    healths: &Healths,
    options: &Screen,
) -> io::Result<()> {
    if resolution.groups.iter().any(|group| !group.processes.is_empty()) {
        table(resolution, healths, options).write(out, "")?;
    }
    for note in health::notes(resolution, healths, options.now_unix_nanoseconds) {
        writeln!(out, "{}", printable(&note))?;
    }
    for note in notes(resolution) {
        writeln!(out, "{}", printable(&note))?;
    }
    Ok(())
}

fn table(resolution: &Resolution, healths: &Healths, options: &Screen) -> Columns {
    let processes = || resolution.groups.iter().flat_map(|group| &group.processes);
    // Outside of containers these two would only repeat the pid and say nothing.
    let inside = processes().any(|process| process.namespace_pid != process.id.pid);
    let containers = processes().any(|process| process.container_id.is_some());
    let mut titles = vec!["GROUP", "PID"];
    titles.extend(inside.then_some("PID INSIDE"));
    titles.extend(containers.then_some("CONTAINER"));
    titles.extend(["USER", "AGE", "CUDA", "MODULE"]);
    let told = !healths.is_empty();
    titles.extend(health::TITLES.iter().filter(|_| told));
    titles.push("COMMAND");
    let mut columns = Columns::new(&titles, options);
    columns.align_right("PID", &titles);
    columns.align_right("PID INSIDE", &titles);
    let mut users = Users::default();
    for group in &resolution.groups {
        for process in &group.processes {
            let mut cells = vec![Cell::new(printable(&group.name)), Cell::new(process.id.pid)];
            cells.extend(inside.then(|| Cell::new(process.namespace_pid)));
            cells.extend(containers.then(|| Cell::new(short_id(process))));
            let mapped = process.details.as_ref().and_then(|details| details.mapped.ok());
            cells.extend([
                Cell::new(users.name(process.uids.effective)),
                Cell::new(age(process.created_unix_nanoseconds, options.now_unix_nanoseconds)),
                yes_or_no(mapped.map(|mapped| mapped.cuda_driver)),
                yes_or_no(mapped.map(|mapped| mapped.module)),
            ]);
            if told {
                cells.extend(health::cells(healths.of(process), options.now_unix_nanoseconds));
            }
            cells.push(Cell::new(printable(command(process))));
            columns.row(cells);
        }
    }
    columns
}

/// What to do next, one line each.
fn notes(resolution: &Resolution) -> Vec<String> {
    let mut notes = Vec::new();
    if resolution.groups.is_empty() {
        notes.push(
            "no group is monitored: add names to `monitored_pg_names` in the configuration".into(),
        );
    }
    for group in resolution.groups.iter().filter(|group| group.processes.is_empty()) {
        let looked_at = match resolution.listed {
            1 => "1 process was".to_owned(),
            several => format!("{several} processes were"),
        };
        notes.push(format!(
            "no process matches group {}: {looked_at} looked at; try `warpgauge groups --explain \
             PID` with a process that should belong to it",
            group.name
        ));
    }
    if resolution.others_hidden {
        notes.push(
            "processes of other users are hidden (/proc is mounted with hidepid): run as root, or \
             as a member of the group that the mount option gid names"
                .into(),
        );
    }
    notes.extend(resolution.skipped.iter().map(|skipped| format!("left out: {skipped}")));
    notes.extend(resolution.incomplete.iter().map(|skipped| format!("incomplete: {skipped}")));
    notes
}

fn yes_or_no(mapped: Option<bool>) -> Cell {
    match mapped {
        Some(true) => Cell::new("yes").fg(Color::Green),
        Some(false) => Cell::new("no").fg(Color::Yellow),
        // Not readable, or the process is over.
        None => Cell::new("?"),
    }
}

pub(super) fn command(process: &Process) -> &str {
    process.details.as_ref().map_or(&process.comm, |details| &details.command)
}

fn short_id(process: &Process) -> &str {
    let id = process.container_id.as_deref().unwrap_or("-");
    id.get(..SHORT_ID).unwrap_or(id)
}

/// User names, each looked up once.
#[derive(Default)]
pub(super) struct Users {
    names: HashMap<u32, String>,
}

impl Users {
    /// The user's name, or the number where this machine has none for it.
    pub(super) fn name(&mut self, uid: u32) -> &str {
        self.names.entry(uid).or_insert_with(|| match User::from_uid(Uid::from_raw(uid)) {
            Ok(Some(user)) => printable(&user.name).into_owned(),
            _ => uid.to_string(),
        })
    }
}
