//! `warpgauge control`: the runtime configuration, for people.

mod target;

use std::io::Write;
use std::time::Duration;

use anyhow::bail;
use clap::Subcommand;
use comfy_table::{Cell, Color};
use serde_json::json;
use warpgauge_wire::{Entry, Function, FunctionSet, PrimitiveId};

use self::target::{NoProcess, Target};
use super::columns::Columns;
use super::printable::printable;
use super::screen::{Screen, write_json};
use crate::atomic_file::Durability;
use crate::control::RuntimeConfig;
use crate::listing::Listing;
use crate::lock::Lock;
use crate::pass::{folders, listed_process};
use crate::report::Exit;
use crate::setup::Setup;

/// A pass takes seconds at most; a person can wait that long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What to do with the runtime configuration.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Which processes are measured now, how, and who said so
    Show,
    /// Measure one process until it ends, whatever its group
    #[command(
        after_help = "Examples:\n  warpgauge control set 4242 0,1\n  warpgauge control set 4242 instructions,occupancy\n  warpgauge control --container 3f5a0c1b2d3e set 7 occupancy"
    )]
    Set {
        /// The process
        pid: u32,
        /// Functions by name or number, separated by commas: 0 instructions, 1 occupancy,
        /// 2 coalescence, 3 divergence
        functions: String,
    },
    /// Take a line back that was added by hand
    Unset {
        /// The process
        pid: u32,
    },
    /// What is wrong with the file, by line
    Lint,
}

pub(super) fn control(
    setup: &Setup,
    container: Option<&str>,
    command: &Command,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let target = match Target::new(setup, container) {
        Ok(target) => target,
        Err(words) => {
            eprintln!("warpgauge: {words}");
            return Ok(Exit::Usage);
        }
    };
    match command {
        Command::Show => show(&target, screen, out),
        Command::Set { pid, functions } => set(setup, &target, *pid, functions, out),
        Command::Unset { pid } => unset(setup, &target, *pid, out),
        Command::Lint => lint(&target, screen, out),
    }
}

fn show(target: &Target<'_>, screen: &Screen, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let path = target.path();
    let (config, _) = target.load()?;
    let entries: Vec<_> = config
        .effective()
        .into_iter()
        .map(|(entry, group)| (entry, group, target.look_up(entry.pid)))
        .collect();
    if screen.json {
        let entries: Vec<_> = entries
            .iter()
            .map(|(entry, group, process)| {
                json!({
                    "pid": entry.pid,
                    "functions": entry.functions.iter().map(Function::name).collect::<Vec<_>>(),
                    "unknown_ids": entry.unknown.iter().map(|id| id.0).collect::<Vec<_>>(),
                    "group": group,
                    "by_hand": group.is_none(),
                    "running": match process {
                        Ok(_) => Some(true),
                        Err(NoProcess::NotRunning) => Some(false),
                        Err(NoProcess::Unknown(_)) => None,
                    },
                })
            })
            .collect();
        write_json(out, &json!({ "file": path, "entries": entries }))?;
        return Ok(Exit::Done);
    }
    if entries.is_empty() {
        writeln!(
            out,
            "{}: no process is measured; a pass adds those of the groups, `warpgauge control set PID FUNCTIONS` adds one by hand",
            path.display()
        )?;
        return Ok(Exit::Done);
    }
    let mut columns = Columns::new(&["PID", "FUNCTIONS", "SAID BY", "PROCESS"], screen);
    for (entry, group, process) in &entries {
        columns.row(vec![
            Cell::new(entry.pid),
            Cell::new(names(entry)),
            match group {
                Some(group) => screen.cell(format!("group {}", printable(group)), Color::Cyan),
                None => screen.cell("a person", Color::Yellow),
            },
            match process {
                Ok(process) => Cell::new(printable(&process.comm)),
                Err(NoProcess::NotRunning) => screen.cell("not running here", Color::Red),
                Err(NoProcess::Unknown(cause)) => screen.cell(cause, Color::Red),
            },
        ]);
    }
    columns.write(out, "")?;
    Ok(Exit::Done)
}

fn set(
    setup: &Setup,
    target: &Target<'_>,
    pid: u32,
    functions: &str,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let functions = match parse_functions(functions) {
        Ok(functions) => functions,
        Err(words) => {
            eprintln!("warpgauge: {words}");
            return Ok(Exit::Usage);
        }
    };
    let process = match target.look_up(pid) {
        Ok(process) => process,
        Err(NoProcess::NotRunning) => {
            let place = target.folder().map_or_else(
                || "; `warpgauge groups` and ps show those that run".to_owned(),
                |name| format!(" in the container {name}; the pid is the one inside"),
            );
            eprintln!("warpgauge: there is no process {pid}{place}");
            return Ok(Exit::Usage);
        }
        Err(NoProcess::Unknown(cause)) => bail!("process {pid}: {cause}; run this as root"),
    };
    if let Some(folder) = target.elsewhere(&process) {
        let inside = process.namespace_pid;
        eprintln!(
            "warpgauge: process {pid} does not read this file; it is process {inside} of a container with a folder: warpgauge control --container {folder} set {inside} ..."
        );
        return Ok(Exit::Usage);
    }
    change(setup, target, |config, listing| {
        config.set(Entry { pid, functions, unknown: Vec::new() });
        listing.join([listed_process(&process, None, target.folder())]);
    })?;
    writeln!(
        out,
        "process {pid} ({}) is measured: {}; its library takes the line up at its next look, 10 s by default",
        printable(&process.comm),
        names(&Entry { pid, functions, unknown: Vec::new() }),
    )?;
    Ok(Exit::Done)
}

fn unset(
    setup: &Setup,
    target: &Target<'_>,
    pid: u32,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let mut removed = 0;
    let mut of_a_group = false;
    change(setup, target, |config, _| {
        removed = config.unset(pid);
        of_a_group = config.own.iter().any(|(entry, _)| entry.pid == pid);
    })?;
    match (removed, of_a_group) {
        (0, false) => writeln!(out, "no line for process {pid}; nothing changed")?,
        (0, true) => writeln!(
            out,
            "process {pid} is listed by its group, not by hand; nothing changed. Take it out of its [[process_group]], or set instrumentation_enabled = false"
        )?,
        (_, true) => {
            writeln!(out, "the line for process {pid} is gone; what its group says holds again")?
        }
        (_, false) => {
            writeln!(out, "the line for process {pid} is gone; it is no longer measured")?
        }
    }
    Ok(Exit::Done)
}

/// Changes the file under the lock that passes take, so that neither overwrites the other.
fn change(
    setup: &Setup,
    target: &Target<'_>,
    edit: impl FnOnce(&mut RuntimeConfig, &mut Listing),
) -> anyhow::Result<()> {
    let paths = &setup.config.paths;
    folders::make(&setup.config)?;
    let _lock = Lock::wait(&paths.state, PATIENCE)?;
    let (mut config, old) = target.load()?;
    let mut listing = Listing::load(&paths.state)?;
    edit(&mut config, &mut listing);
    let own: Vec<_> = config.own_lines().collect();
    let new = config.render(&own, setup.config.instrumentation_enabled);
    listing.store(&paths.state, Durability::PowerCut)?;
    target.write(&old, &new)
}

fn lint(target: &Target<'_>, screen: &Screen, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let path = target.path();
    let (config, _) = target.load()?;
    let mut findings: Vec<(usize, String)> = config
        .malformed
        .iter()
        .map(|line| {
            (line.number, format!("{}: `{}`; the line is skipped", line.fault, line.shown()))
        })
        .collect();
    for (position, line) in config.manual.iter().enumerate() {
        let pid = line.entry.pid;
        if !line.entry.unknown.is_empty() {
            let ids: Vec<_> = line.entry.unknown.iter().map(|id| id.to_string()).collect();
            findings.push((
                line.number,
                format!("unknown function ids {} are ignored by the library", ids.join(", ")),
            ));
        }
        if let Err(NoProcess::NotRunning) = target.look_up(pid) {
            findings.push((
                line.number,
                format!("process {pid} does not run here; the next pass drops the line"),
            ));
        }
        if config.manual.iter().skip(position + 1).any(|later| later.entry.pid == pid) {
            findings
                .push((line.number, format!("a later line for process {pid} wins; remove one")));
        }
    }
    findings.sort();
    if screen.json {
        let findings: Vec<_> = findings
            .iter()
            .map(|(line, message)| json!({ "line": line, "message": message }))
            .collect();
        write_json(out, &json!({ "file": path, "findings": findings }))?;
    } else {
        for (line, message) in &findings {
            writeln!(out, "{}:{line}: {message}", path.display())?;
        }
        if findings.is_empty() {
            writeln!(out, "{}: nothing to find fault with", path.display())?;
        }
    }
    Ok(if findings.is_empty() { Exit::Done } else { Exit::Findings })
}

fn names(entry: &Entry) -> String {
    let known = entry.functions.iter().map(|function| function.name().to_owned());
    let unknown = entry.unknown.iter().map(|id| format!("unknown {id}"));
    known.chain(unknown).collect::<Vec<_>>().join(", ")
}

fn parse_functions(text: &str) -> Result<FunctionSet, String> {
    text.split(',')
        .map(str::trim)
        .map(|word| {
            let by_number = word.parse().ok().and_then(|id| Function::from_id(PrimitiveId(id)));
            by_number.or_else(|| Function::from_name(word)).ok_or_else(|| {
                format!("`{word}` is no function; there are 0 instructions, 1 occupancy, 2 coalescence, 3 divergence")
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_taken_by_name_or_number() {
        assert_eq!(parse_functions("0, occupancy").unwrap().to_string(), "0,1");
        assert!(parse_functions("0,4").unwrap_err().contains("`4` is no function"));
        assert!(parse_functions("").is_err());
    }
}
