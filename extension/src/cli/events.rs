//! `warpgauge events`: event logs, traces and telemetry, checked, converted, summed up and followed.

mod convert;
mod filters;
mod follow;
mod progress;
mod stat;
mod telemetry;
mod trace_stat;
mod units;
mod validate;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use regex::Regex;

use self::filters::Filters;
use self::telemetry::Telemetry;
use super::screen::Screen;
use crate::events::format::Format;
use crate::report::Exit;
use crate::traces::split::SplitBy;

/// Heading of the arguments that work on traces.
const OF_TRACES: &str = "Traces";

/// What to do with event logs and traces.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What is wrong with logs and traces, by file, line and field
    #[command(after_help = "\
Examples:
  warpgauge events validate --format gpumon gpumon_trainer_1234.log
  warpgauge events validate --format gpu-flight train.*.log.gz
  zstdcat old.zst | warpgauge events validate --format gpumon --strict --json - | jq 'select(.ok | not)'
  warpgauge events validate --format kineto trace.json.gz
  warpgauge events validate --format telemetry-v2 run.json events.ndjson
  warpgauge events validate --format telemetry-v2 --records --json - < events.ndjson
  warpgauge events validate --format kineto --repair --json trace.json | jq 'select(.ok == false).error'

The channels of a session are read as one log, device first. Files may be packed with gzip or zstd,
whatever their names. With --json there is one verdict for each line that is not blank, with the
event in the words of the common model; what is no line goes to standard error.

Of traces (PyTorch's, or Chrome's JSON) a finding names line and column. With --json there is a line
for each finding, and one for each file behind them. --repair reads on where quotes within texts were
written as /\" and says how many; `events convert --repair` writes the mended trace.

Of telemetry (TelemetryEvent v2: one JSON document, or a record a line, told apart by looking) a finding
names line and record. With --json there is one verdict for each record: ok, the event as version 2,
and the error; with --records one for each line, whatever stands in it.

Exit codes: 0 nothing to find fault with   1 findings   2 wrong usage, or a file that cannot be opened")]
    Validate(Validate),
    /// From one format to another; refuses to lose anything unless told so
    #[command(after_help = "\
Examples:
  warpgauge events convert --to gpu-flight -o small/train.zst train.*.log
  warpgauge events convert --to parquet -o tables train.*.log
  warpgauge events convert --from parquet --to gpu-flight-fat tables | less
  warpgauge events convert --from gpu-flight --to gpumon --lossy -o trainer.log.gz train.*.log
  warpgauge events convert --to perfetto -o trace.pftrace trace.json.gz
  warpgauge events convert --to chrome -o train.json.gz train.*.log
  warpgauge events convert --to kineto --window 2s..2.5s --category kernel -o part.json trace.json
  warpgauge events convert --to kineto --merge -o all.json.gz rank*.json.gz
  warpgauge events convert --to kineto --split time=1s -o part.json.gz all.json.gz
  warpgauge events convert --from telemetry --to telemetry-v2 -o events.ndjson old.json

OUT is a file for gpumon, kineto, chrome and perfetto, the prefix of <OUT>.<channel>.log for gpu-flight
and gpu-flight-fat, and a folder with one folder for each session for parquet. The ending .gz or .zst
packs. The result gets its name when it is whole: an interrupted conversion leaves nothing behind.

Traces (kineto, chrome) become kineto, chrome or perfetto; event logs become those, too. No trace
becomes an event log, and Perfetto's form is only written.

Telemetry becomes telemetry-v2 (a record a line), a table, scope samples of gpumon, or counters of a
trace. Legacy records need --from telemetry.

Filters keep the names of processes and threads, the base time, and what is said of the trace as a
whole. An arrow goes with either of its ends; what was left out is counted. --merge puts the times of
several ranks on one clock, and keeps their processes and ids apart. --split writes OUT with .rank0 or
.0001 before its endings; --merge of the parts gives the same events.

Exit codes: 0 converted   1 something would be lost, nothing was written   2 wrong usage   75 try again later")]
    Convert(Box<Convert>),
    /// What a log or a trace holds: kernels, scopes, copies, memory, busy and idle time
    #[command(after_help = "\
Examples:
  warpgauge events stat train.*.log.gz
  warpgauge events stat --top 3 tables
  warpgauge events stat rank*.json.gz
  warpgauge events stat --json gpumon.log | jq '.kernels[0]'")]
    Stat(Stat),
    /// What logs say, as they say it, through every rotation
    #[command(after_help = "\
Examples:
  warpgauge events follow gpumon_trainer_1234.log
  warpgauge events follow --type kernel --name gemm '/var/log/gpu/*.log'
  warpgauge events follow --json --for 60 train.*.log | jq 'select(.duration_ns > 1000000)'
  warpgauge events follow --from-start train.log | less

Without FILE, the logs of [[events]] in the configuration. A file is followed with what rotation makes
of it (train.log.1, train.log.2.gz, train.3.log), from now on. Quote a pattern, so that files that come
later are found; a file that is not there yet is waited for. Of GPU Flight logs, what stands there is
looked through for the names that later lines use. With --json there is one event in each line, in the
words of the common model; findings, and files that are not read, go to standard error.

Nothing is written to the disk: what a pass has read and has still to read is its own business.

Exit codes: 0 interrupted, the pipe was closed or the time is over   2 wrong usage   78 configuration error")]
    Follow(Follow),
}

/// Arguments of `events validate`.
#[derive(Debug, Args)]
pub struct Validate {
    /// Format of the files
    #[arg(long, value_enum)]
    format: Checked,
    /// gpumon: exactly the published schema; gpu-flight: what is unknown is a finding; telemetry-v2:
    /// no legacy records
    #[arg(long)]
    strict: bool,
    /// kineto: read on where quotes within texts were written as `/"`, and say how many were mended
    #[arg(long)]
    repair: bool,
    /// telemetry-v2: each line is a record, also one that is blank or no JSON
    #[arg(long)]
    records: bool,
    #[command(flatten)]
    telemetry: Telemetry,
    /// Logs or traces; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The formats that can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Checked {
    /// gpumon's lines, one event each
    Gpumon,
    /// GPU Flight's batches, and its older lines
    #[value(alias = "gpu-flight-fat")]
    GpuFlight,
    /// PyTorch's traces, and Chrome's JSON
    #[value(alias = "chrome")]
    Kineto,
    /// Samples of a device's memory, and their legacy records
    #[value(name = "telemetry-v2", alias = "telemetry")]
    Telemetry,
}

/// Arguments of `events convert`.
#[derive(Debug, Args)]
pub struct Convert {
    /// Format to read [default: told by the content]
    #[arg(long, value_enum)]
    from: Option<Format>,
    /// Format to write
    #[arg(long, value_enum)]
    to: Format,
    /// Where to [default: standard output]
    #[arg(long, short, value_name = "OUT")]
    out: Option<PathBuf>,
    /// gpu-flight: details of all kernels, or of the first of each name
    #[arg(long, value_enum, default_value_t = Details::All)]
    details: Details,
    /// Leave out what the format cannot hold, and say what that was
    #[arg(long)]
    lossy: bool,
    #[command(flatten)]
    filter: Filters,
    #[command(flatten)]
    telemetry: Telemetry,
    /// Make one trace of several: times on one clock, ranks apart
    #[arg(long, help_heading = OF_TRACES)]
    merge: bool,
    /// Make several traces of one: `rank`, or `time=100ms`
    #[arg(long, value_name = "BY", help_heading = OF_TRACES)]
    split: Option<SplitBy>,
    /// Mend quotes within texts that were written as `/"`
    #[arg(long, help_heading = OF_TRACES)]
    repair: bool,
    /// Replace what stands at OUT
    #[arg(long, short)]
    force: bool,
    /// Logs, traces, or folders of tables; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Which kernels keep their details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Details {
    /// All kernels that have any
    All,
    /// The first kernel of each name: needs --lossy where others have some
    First,
}

/// Arguments of `events stat`.
#[derive(Debug, Args)]
pub struct Stat {
    /// Format of the logs [default: told by the content]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Kernels to show, scopes within each scope, streams and counters
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Traces: mend quotes within texts that were written as `/"`
    #[arg(long)]
    repair: bool,
    /// Logs, or folders of tables; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The formats whose lines can be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Followed {
    /// gpumon's lines, one event each
    Gpumon,
    /// GPU Flight's batches, and its older lines
    #[value(alias = "gpu-flight-fat")]
    GpuFlight,
    /// TelemetryEvent v2, a record a line: what it tells of the device's memory
    #[value(name = "telemetry-v2", alias = "telemetry")]
    Telemetry,
}

/// Arguments of `events follow`.
#[derive(Debug, Args)]
pub struct Follow {
    /// Format of the logs [default: told by the content, or by the configuration]
    #[arg(long, value_enum)]
    format: Option<Followed>,
    /// Show what stands there already, too, the oldest first
    #[arg(long)]
    from_start: bool,
    /// Only events of these types, as --json names them, or all of `scope` or `sampling`
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',',
        value_parser = clap::builder::PossibleValuesParser::new(follow::TYPES))]
    types: Vec<String>,
    /// Only events whose kernel, scope, copy or sampling has such a name
    #[arg(long, value_name = "REGEX")]
    name: Option<Regex>,
    /// Stop after so many seconds
    #[arg(long = "for", visible_alias = "duration", value_name = "SECONDS", value_parser = positive)]
    seconds: Option<f64>,
    /// Files or patterns
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

fn positive(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    seconds.ok_or_else(|| "not a number of seconds from 0".to_owned())
}

pub(super) fn events(
    command: &Command,
    config: &Path,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    match command {
        Command::Validate(arguments) => validate::validate(arguments, screen, out),
        Command::Convert(arguments) => convert::convert(arguments, screen, out),
        Command::Stat(arguments) => stat::stat(arguments, screen, out),
        Command::Follow(arguments) => follow::follow(arguments, config, screen, out),
    }
}

/// Says what is wrong with the arguments.
fn misused(words: impl std::fmt::Display) -> Exit {
    eprintln!("warpgauge: {}", super::printable::printable(&words.to_string()));
    Exit::Usage
}
