//! What `warpgauge run` costs from start to exit when there is nothing to measure: one group with
//! one process that does nothing, among the processes of this machine; once with the destination
//! `file`, once with a receiver in this process. The floor is `true`, started in the same way.
//!
//! ```text
//! cargo bench -p warpgauge --bench idle_pass -- [--json] [--rounds N]
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark stops at the first surprise"
)]

#[path = "support/figures.rs"]
#[allow(dead_code, reason = "not every benchmark needs all of it")]
mod figures;
#[path = "../tests/otlp_transport/http_receiver.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod http_receiver;
#[path = "support/rounds.rs"]
#[allow(dead_code, reason = "not every benchmark needs all of it")]
mod rounds;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use figures::{Budget, Figure, Samples};
use http_receiver::{Behaviour, HttpReceiver};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rounds::{Asked, milliseconds, place};
use serde::{Deserialize, Serialize};

/// Budgets of the project's specification.
const MILLISECONDS: f64 = 15.0;
const RESIDENT_MEGABYTES: f64 = 12.0;

/// What one helper process starts, one run after the other.
const RUNS_AT_A_TIME: usize = 10;

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, role, runs, program @ ..] = &arguments[..]
        && role == "start"
    {
        return start(runs.parse().unwrap(), program);
    }
    let asked = Asked::from_arguments();
    let place = place();
    let receiver = HttpReceiver::start(Behaviour::respond("200 OK", &[], b""));
    let _idle = Idle::start();
    let to_a_file =
        configure(place.path(), "file", "path", &place.path().join("file/metrics.otlp.jsonl"));
    let to_a_receiver =
        configure(place.path(), "http/protobuf", "endpoint", Path::new(&receiver.url()));
    // The first pass of all makes folders, and lists the process that is there to stay.
    pass(&to_a_file, 1);
    pass(&to_a_receiver, 1);

    let [mut floor, mut file, mut http] = [(); 3].map(|()| Started::default());
    for _ in 0..asked.rounds(5) {
        floor.add(&in_a_helper(RUNS_AT_A_TIME, &["true"]));
        file.add(&pass(&to_a_file, RUNS_AT_A_TIME));
        http.add(&pass(&to_a_receiver, RUNS_AT_A_TIME));
    }
    assert_eq!(receiver.received().len(), 1 + asked.rounds(5) * RUNS_AT_A_TIME);

    let processes = fs::read_dir("/proc").unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
    });
    let of = |values: fn(&Started) -> &Vec<f64>, started: &Started| -> Samples {
        values(started).iter().copied().collect()
    };
    let mut figures = Vec::new();
    for (to, started) in [("a file", &file), ("a receiver", &http)] {
        let mut add = |part: &str, unit, values: fn(&Started) -> &Vec<f64>, budget| {
            let figure =
                Figure::new(format!("idle pass to {to}: {part}"), unit, of(values, started));
            figures.push(figure.over(&of(values, &floor)).within(budget));
        };
        add("from start to exit", "ms", |started| &started.ms, Budget::AtMost(MILLISECONDS));
        add("processor time", "ms", |started| &started.processor_ms, Budget::None);
        let memory = Budget::AtMost(RESIDENT_MEGABYTES);
        add("peak resident", "MB", |started| &started.peak_mb, memory);
    }
    let processes = [processes.count() as f64].into_iter().collect();
    figures.push(Figure::new("processes of this machine", "1", processes));
    figures::print("idle_pass", place.path(), figures, asked);
}

/// Runs of one program.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Started {
    ms: Vec<f64>,
    /// Of one run, the mean of those of a helper.
    processor_ms: Vec<f64>,
    /// The largest of a helper's.
    peak_mb: Vec<f64>,
}

impl Started {
    fn add(&mut self, more: &Self) {
        self.ms.extend(&more.ms);
        self.processor_ms.extend(&more.processor_ms);
        self.peak_mb.extend(&more.peak_mb);
    }
}

fn pass(configuration: &Path, runs: usize) -> Started {
    let program = env!("CARGO_BIN_EXE_warpgauge");
    in_a_helper(runs, &[program, "run", "--config", configuration.to_str().unwrap()])
}

/// Has a small process start the program, for the memory of a process counts what its starter had
/// when it was started.
fn in_a_helper(runs: usize, program: &[&str]) -> Started {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.arg("start").arg(runs.to_string()).args(program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The helper.
fn start(runs: usize, program: &[String]) {
    let mut started = Started::default();
    for _ in 0..runs {
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        started.ms.push(milliseconds(|| assert!(command.status().unwrap().success())));
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let microseconds = [usage.user_time(), usage.system_time()].map(|time| time.num_microseconds());
    started.processor_ms.push(microseconds.iter().sum::<i64>() as f64 / 1e3 / runs as f64);
    // getrusage(2): the largest of the children, in kilobytes of 1,024.
    started.peak_mb.push(usage.max_rss() as f64 * 1024.0 / 1e6);
    println!("{}", serde_json::to_string(&started).unwrap());
}

/// The only process of the group.
struct Idle(Child);

impl Idle {
    const SECONDS: &str = "86399.25";

    fn start() -> Self {
        Self(Command::new("sleep").arg(Self::SECONDS).spawn().unwrap())
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Writes a configuration and returns its path.
fn configure(place: &Path, protocol: &str, key: &str, destination: &Path) -> PathBuf {
    let root = place.join(protocol.replace('/', "-"));
    fs::create_dir_all(&root).unwrap();
    let path = root.join("warpgauge.toml");
    let mut file = File::create(&path).unwrap();
    let (root, destination) = (root.display(), destination.display());
    let seconds = Idle::SECONDS;
    write!(
        file,
        r#"monitored_pg_names = ["idle"]

[paths]
runtime_config = "{root}/runtime.conf"
measurements = "{root}/measurements"
state = "{root}/state"

[[process_group]]
name = "idle"
cmdline = '^sleep {seconds}$'

[export]
protocol = "{protocol}"
{key} = "{destination}"
"#
    )
    .unwrap();
    path
}
