//! `warpgauge check`: configuration and environment, what is wrong and how to mend it.

mod containers;
mod devices;
pub(super) mod process;

use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Instant;

use comfy_table::Color;
use nix::unistd::{AccessFlags, access};
use serde::Serialize;

use super::columns::Columns;
use super::printable::printable;
use super::screen::{Screen, write_json};
use crate::config::Paths;
use crate::config::export::Protocol;
use crate::control::RuntimeConfig;
use crate::forward;
use crate::forward::dead_letters::DeadLetters;
use crate::otlp::sender::{self, Outcome};
use crate::otlp::settings::Finding;
use crate::report::Exit;
use crate::setup::{Environment, Export, Setup, SetupError};
use crate::spool::Spool;

/// How much a remark matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// Measurements may be missing or wrong.
    Warning,
    /// A pass cannot do its work.
    Error,
}

#[derive(Debug, Serialize)]
struct Remark {
    level: Level,
    about: String,
    message: String,
}

#[derive(Debug, Default)]
struct Remarks(Vec<Remark>);

impl Remarks {
    fn add(&mut self, level: Level, about: impl Into<String>, message: impl Into<String>) {
        self.0.push(Remark { level, about: about.into(), message: message.into() });
    }
}

pub(super) fn check(
    path: &Path,
    offline: bool,
    environment: Environment<'_>,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let mut remarks = Remarks::default();
    let exit = match Setup::load_with_export(path, environment) {
        Ok((setup, export)) => {
            remarks.add(Level::Good, "configuration", format!("{} is sound", path.display()));
            check_folders(&setup.config.paths, &mut remarks);
            check_runtime_config(&setup, &mut remarks);
            check_processes(&setup, &mut remarks);
            containers::check(&setup, &mut remarks);
            devices::check(&setup, &mut remarks);
            check_spool(&setup, &mut remarks);
            check_export(&export, offline, &mut remarks);
            if let Some(settings) = &export.forward {
                check_forward(settings, &setup.config.paths.state, &mut remarks);
            }
            let found = remarks
                .0
                .iter()
                .any(|remark| matches!(remark.level, Level::Warning | Level::Error));
            if found { Exit::Findings } else { Exit::Done }
        }
        Err(SetupError::Faults { faults, .. }) => {
            for fault in faults {
                let line = fault.line.map_or_else(String::new, |line| format!("line {line}: "));
                let about =
                    if fault.key.is_empty() { "configuration".to_owned() } else { fault.key };
                remarks.add(Level::Error, about, format!("{line}{}", fault.message));
            }
            Exit::Config
        }
        Err(fault) => {
            remarks.add(Level::Error, "configuration", fault.to_string());
            Exit::Config
        }
    };
    if screen.json {
        write_json(out, &remarks.0)?;
    } else {
        write(out, &remarks.0, screen)?;
    }
    Ok(exit)
}

fn write(out: &mut dyn Write, remarks: &[Remark], screen: &Screen) -> io::Result<()> {
    let mut columns = Columns::wrapping(&["", "ABOUT", "WHAT"], screen);
    for remark in remarks {
        let level = match remark.level {
            Level::Good => screen.cell("ok", Color::Green),
            Level::Note => screen.cell("note", Color::Cyan),
            Level::Warning => screen.cell("warning", Color::Yellow),
            Level::Error => screen.cell("error", Color::Red),
        };
        columns.row(vec![level, (&remark.about).into(), printable(&remark.message).into()]);
    }
    columns.write(out, "")
}

fn check_folders(paths: &Paths, remarks: &mut Remarks) {
    let Paths { runtime_config, measurements, state, .. } = paths;
    let parent = runtime_config.parent().unwrap_or(Path::new("/"));
    for (about, folder) in [("paths.runtime_config", parent), ("paths.state", state)] {
        if !folder.exists() {
            remarks.add(
                Level::Note,
                about,
                format!("{} does not exist yet; a pass makes it", folder.display()),
            );
        } else if access(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_err() {
            remarks.add(
                Level::Error,
                about,
                format!(
                    "{} is not writable for this user; run warpgauge as its owner",
                    folder.display()
                ),
            );
        } else {
            remarks.add(Level::Good, about, format!("{} is writable", folder.display()));
        }
    }
    let about = "paths.measurements";
    match measurements.metadata() {
        Err(_) => remarks.add(
            Level::Note,
            about,
            format!(
                "{} does not exist yet; a pass makes it, with mode 1777",
                measurements.display()
            ),
        ),
        Ok(metadata) if !metadata.is_dir() => remarks.add(
            Level::Error,
            about,
            format!("{} is no folder; move it away", measurements.display()),
        ),
        Ok(metadata) => {
            let mode = metadata.permissions().mode();
            if mode & 0o002 != 0 && mode & 0o1000 == 0 {
                remarks.add(
                    Level::Warning,
                    about,
                    format!(
                        "everybody may remove everybody's files in {}: chmod 1777 {0}",
                        measurements.display()
                    ),
                );
            } else if mode & 0o022 == 0 {
                remarks.add(Level::Warning, about, format!("only user {} may write to {}; processes of other users cannot leave measurements there: chmod 1777 {1}", metadata.uid(), measurements.display()));
            } else {
                remarks.add(
                    Level::Good,
                    about,
                    format!("{} has mode {:o}", measurements.display(), mode & 0o7777),
                );
            }
        }
    }
}

fn check_runtime_config(setup: &Setup, remarks: &mut Remarks) {
    let path = &setup.config.paths.runtime_config;
    match RuntimeConfig::load(path) {
        Err(fault) => remarks.add(Level::Error, "runtime configuration", fault.to_string()),
        Ok((config, _)) if config.malformed.is_empty() => {
            let entries = config.effective().len();
            remarks.add(
                Level::Good,
                "runtime configuration",
                format!("{entries} processes in {}", path.display()),
            );
        }
        Ok((config, _)) => remarks.add(
            Level::Warning,
            "runtime configuration",
            format!(
                "{} lines of {} are skipped; `warpgauge control lint` names them",
                config.malformed.len(),
                path.display()
            ),
        ),
    }
    if !setup.config.instrumentation_enabled {
        remarks.add(Level::Note, "instrumentation_enabled", "is false: nothing is measured");
    }
}

fn check_processes(setup: &Setup, remarks: &mut Remarks) {
    if setup.config.monitored_pg_names.is_empty() {
        remarks.add(
            Level::Warning,
            "monitored_pg_names",
            "names no group: a pass lists nobody; name a [[process_group]], or a process",
        );
        return;
    }
    let mut resolution = match setup.rules.resolve(&setup.proc, setup.own_pid) {
        Ok(resolution) => resolution,
        Err(fault) => return remarks.add(Level::Error, "processes", fault.to_string()),
    };
    resolution.read_details(&setup.proc);
    for skipped in &resolution.skipped {
        remarks.add(Level::Warning, "processes", skipped.to_string());
    }
    for group in &resolution.groups {
        let about = format!("group {}", group.name);
        if group.processes.is_empty() {
            remarks.add(Level::Note, about, "no process now; `warpgauge groups --explain PID` tells why one does not belong to it");
            continue;
        }
        remarks.add(Level::Good, &about, format!("{} processes", group.processes.len()));
        for process in &group.processes {
            let mapped = process.details.as_ref().and_then(|details| details.mapped.as_ref().ok());
            if mapped.is_some_and(|mapped| mapped.cuda_driver && !mapped.module) {
                remarks.add(
                    Level::Warning,
                    &about,
                    format!("process {} uses CUDA without our library; start it with CUDA_INJECTION64_PATH=/path/to/libwarpgauge_instrument.so", process.id.pid),
                );
            }
        }
    }
}

fn check_spool(setup: &Setup, remarks: &mut Remarks) {
    let state = &setup.config.paths.state;
    if !state.join("spool").exists() {
        return;
    }
    match Spool::look(state).pending() {
        Err(fault) => remarks.add(Level::Error, "spool", fault.to_string()),
        Ok(pending) if pending.is_empty() => remarks.add(Level::Good, "spool", "nothing waits"),
        Ok(pending) => {
            let bytes: u64 = pending.iter().map(|request| request.size).sum();
            remarks.add(
                Level::Note,
                "spool",
                format!("{} requests wait, {bytes} bytes", pending.len()),
            );
        }
    }
}

fn check_export(export: &Export, offline: bool, remarks: &mut Remarks) {
    let settings = &export.settings;
    for warning in settings.warnings() {
        remarks.add(
            Level::Warning,
            &warning.key,
            format!("{}; {}", warning.problem, warning.remedy),
        );
    }
    if settings.protocol() == Protocol::File || offline {
        return;
    }
    let outcome = match sender::open(settings) {
        // A request without content: every receiver answers it, and nothing is stored.
        Ok(mut sender) => sender.send(&[], Instant::now() + settings.timeout),
        Err(fault) => return remarks.add(Level::Error, "export", fault.to_string()),
    };
    match outcome {
        Outcome::Accepted | Outcome::Partial { .. } => {
            remarks.add(Level::Good, "export", "the receiver answers");
        }
        Outcome::Refused { reason } => {
            remarks.add(
                Level::Note,
                "export",
                format!("the receiver answers, but refuses an empty request: {reason}"),
            );
        }
        Outcome::Retry { reason, .. } => {
            remarks.add(Level::Warning, "export", format!("the receiver does not answer now: {reason}; measurements wait in the spool until it does"));
        }
        Outcome::Misconfigured { reason } => remarks.add(Level::Error, "export", reason),
    }
}

/// What a backend does with a request without a line, nobody knows; so it is not asked.
fn check_forward(settings: &forward::settings::Settings, state: &Path, remarks: &mut Remarks) {
    for Finding { key, problem, remedy } in settings.warnings() {
        remarks.add(Level::Warning, key, format!("{problem}; {remedy}"));
    }
    let letters = DeadLetters::new(state, settings.max_dead_letter_bytes);
    match letters.size() {
        0 => remarks.add(Level::Good, "forward", "no dead letters"),
        bytes => {
            let place = letters.path();
            let message = format!("{bytes} bytes of dead letters, the last in {}", place.display());
            remarks.add(Level::Note, "forward", message);
        }
    }
}
