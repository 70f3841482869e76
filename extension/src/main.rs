//! Arguments, run, exit code.
#![forbid(unsafe_code)]

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Parser;
use tracing::Level;
use warpgauge::cli::{self, Arguments};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let environment = |name: &str| std::env::var(name).ok();
    let level = if arguments.verbose { Level::DEBUG } else { Level::WARN };
    let to_people = io::stderr().is_terminal();
    // A scheduler's journal stamps its lines itself.
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level);
    log.with_ansi(to_people).with_target(false).without_time().init();
    cli::main(&arguments, &environment).into()
}
