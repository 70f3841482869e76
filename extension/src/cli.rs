//! The command line: arguments in, text or JSON out, an exit code back.

mod check;
mod columns;
mod control;
mod events;
pub mod groups;
mod printable;
mod run;
mod screen;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};

use crate::containers::Containers;
use crate::lock::LockError;
use crate::measurements;
use crate::report::Exit;
use crate::setup::{Environment, Setup, SetupError};

pub use self::screen::Screen;

/// Kernel-level GPU measurements for every OpenTelemetry backend.
#[derive(Debug, Parser)]
#[command(name = "warpgauge", version, about, long_about = None, after_help = EXAMPLES)]
pub struct Arguments {
    /// Configuration file
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        default_value = "/etc/warpgauge/warpgauge.toml",
        env = "WARPGAUGE_CONFIG"
    )]
    pub config: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Say more on standard error
    #[arg(long, short, global = true)]
    pub verbose: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  warpgauge check                         what is wrong with this machine's set-up, and how to mend it
  warpgauge check --pid 4242              why process 4242 is not measured
  warpgauge run --dry-run                 what a pass would do now
  warpgauge run                           one pass; let a timer start it every minute
  warpgauge groups --explain 4242         why process 4242 is monitored, or is not
  warpgauge control set 4242 occupancy    look into one process by hand
  warpgauge events stat train.*.log.gz    what an event log holds
  warpgauge events follow gpumon.log      what it says, as it says it

Exit codes:
  0 done   1 findings   2 wrong usage   4 the receiver refused part of the data
  65 the receiver refused data for good   69 the receiver was away too long: the spool dropped data
  75 try again later, nothing is lost   78 configuration error";

const CHECK_EXAMPLES: &str = "\
Examples:
  warpgauge check
  warpgauge check --pid 4242
  warpgauge check --pid 4242 --json | jq -r '.findings[] | select(.weight == \"obstacle\") | .remedy'

Exit codes with --pid:
  0 the process is measured   1 it is not, and the findings say why   2 wrong usage";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// One pass: list processes, read measurements, export (what the scheduler starts)
    #[command(
        after_help = "Examples:\n  warpgauge run\n  warpgauge run --dry-run --json | jq .processes"
    )]
    Run {
        /// Show what a pass would do, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Configuration and environment: what is wrong, and how to mend it
    #[command(after_help = CHECK_EXAMPLES)]
    Check {
        /// Do not ask the receiver whether it answers
        #[arg(long)]
        offline: bool,
        /// Say why this process is not measured, from outside and without touching it
        #[arg(long, value_name = "PID", conflicts_with = "offline")]
        pid: Option<u32>,
    },
    /// The process groups and pids that a pass would monitor now
    #[command(after_help = "Examples:\n  warpgauge groups\n  warpgauge groups --explain 4242")]
    Groups {
        /// Say for each group why this process belongs to it or not
        #[arg(long, value_name = "PID")]
        explain: Option<u32>,
    },
    /// The runtime configuration, for people
    Control {
        /// In the folder of this container; pids are those that its processes have inside
        #[arg(long, global = true, value_name = "NAME")]
        container: Option<String>,
        /// What to do with it
        #[command(subcommand)]
        command: control::Command,
    },
    /// Event logs: what is wrong with them, what they hold, and into other formats
    #[command(subcommand)]
    Events(events::Command),
    /// Completions for a shell, on standard output
    #[command(
        after_help = "Example:\n  warpgauge completions bash > /etc/bash_completion.d/warpgauge"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Does what the arguments say.
pub fn main(arguments: &Arguments, environment: Environment<'_>) -> Exit {
    let mut out = io::stdout().lock();
    let screen = Screen::of_stdout(arguments.json, environment);
    let outcome = dispatch(arguments, environment, &screen, &mut out).and_then(|exit| {
        out.flush()?;
        Ok(exit)
    });
    match outcome {
        Ok(exit) => exit,
        // The reader of a pipe has seen enough; that is no fault.
        Err(fault) if is_broken_pipe(&fault) => Exit::Done,
        Err(fault) => {
            eprintln!("warpgauge: {fault:#}");
            exit_of(&fault)
        }
    }
}

fn dispatch(
    arguments: &Arguments,
    environment: Environment<'_>,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let path = &arguments.config;
    match &arguments.command {
        Command::Run { dry_run } => {
            let (setup, export) = Setup::load_with_export(path, environment)?;
            run::run(&setup, &export, *dry_run, screen, out)
        }
        Command::Check { pid: Some(pid), .. } => {
            check::process::check(&Setup::load(path)?, *pid, screen, out)
        }
        Command::Check { offline, pid: None } => {
            check::check(path, *offline, environment, screen, out)
        }
        Command::Groups { explain } => {
            let setup = Setup::load(path)?;
            show_groups(&setup, *explain, screen, out)
        }
        Command::Control { container, command } => {
            control::control(&Setup::load(path)?, container.as_deref(), command, screen, out)
        }
        Command::Events(command) => events::events(command, path, screen, out),
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut Arguments::command(), "warpgauge", out);
            Ok(Exit::Done)
        }
    }
}

fn show_groups(
    setup: &Setup,
    explain: Option<u32>,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    if let Some(pid) = explain {
        let explanation = setup.rules.explain(&setup.proc, pid, setup.own_pid)?;
        groups::render_explanation(out, &explanation, screen)?;
    } else {
        let mut resolution = setup.rules.resolve(&setup.proc, setup.own_pid)?;
        resolution.read_details(&setup.proc);
        let top = measurements::open(&setup.config.paths.measurements).ok();
        let containers = Containers::look(&setup.config.paths.containers);
        let healths = groups::Healths::read(&resolution, top.as_ref(), &containers);
        groups::render_groups(out, &resolution, &healths, screen)?;
    }
    Ok(Exit::Done)
}

fn is_broken_pipe(fault: &anyhow::Error) -> bool {
    let io = fault.downcast_ref::<io::Error>();
    io.is_some_and(|fault| fault.kind() == io::ErrorKind::BrokenPipe)
}

/// What a person has to mend is a configuration error; what may be gone the next time is not.
fn exit_of(fault: &anyhow::Error) -> Exit {
    if fault.is::<SetupError>() {
        return Exit::Config;
    }
    if let Some(LockError::Taken { .. }) = fault.downcast_ref() {
        return Exit::TryAgain;
    }
    let for_a_person =
        fault.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|cause| {
            matches!(
                cause.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::PermissionDenied
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::ReadOnlyFilesystem
            )
        });
    if for_a_person { Exit::Config } else { Exit::TryAgain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
