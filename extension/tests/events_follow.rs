//! `warpgauge events follow` shows what logs say while they are written and rotated.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "support/event_logs.rs"]
#[allow(dead_code, reason = "not every test file needs all of it")]
mod event_logs;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use event_logs::{command, events, write};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use support::rotated_log::{RotatedLog, Rotation, append_to};
use support::world::{PATIENCE, World};

fn kernel(number: usize, name: &str) -> String {
    let start = 1_706_800_122_000_000_000 + number;
    format!(
        "{{\"type\":\"kernel\",\"pid\":7,\"app\":\"train\",\"kernel\":\"{name}\",\"ts_start_ns\":{start},\"ts_end_ns\":{},\"duration_ns\":1500,\"grid\":[2,1,1],\"block\":[32,1,1],\"shared_mem_bytes\":0,\"cuda_error\":\"cudaSuccess\"}}\n",
        start + 1_500
    )
}

fn scope(what: &str, time: u64) -> String {
    format!(
        "{{\"type\":\"scope_{what}\",\"pid\":7,\"app\":\"train\",\"name\":\"step\",\"ts_ns\":{time}}}\n"
    )
}

/// A command that is running, and its output as it comes.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            // Whoever is tested may be gone before all of it was taken.
            out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    fn next(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    fn next_json(&self) -> Value {
        serde_json::from_str(&self.next()).unwrap()
    }

    fn end_by(mut self, signal: Signal) -> (ExitStatus, Vec<String>) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
        let status = ended(&mut self.child);
        (status, self.lines.iter().collect())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already, but where a test has failed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn ended(child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(began.elapsed() < PATIENCE, "it does not end");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Every file below a folder, and what is in it.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    all
}

#[test]
fn each_event_is_shown_once_and_in_order_while_its_log_is_rotated() {
    for rotation in Rotation::ALL {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RotatedLog::new(folder.path().to_owned(), "x", rotation);
        let pattern = format!("{}/x*.log", folder.path().display());
        let follow = Running::start(&mut command(&["follow", "--json", "--from-start", &pattern]));
        for number in 0..120 {
            let line = kernel(number, "k");
            let (half, rest) = line.split_at(number % line.len());
            log.write(half);
            if number % 20 == 0 {
                thread::sleep(Duration::from_millis(60));
            }
            log.write(rest);
            if number % 15 == 14 {
                log.rotate();
            }
        }
        log.write(kernel(120, "last"));
        let mut starts = vec![];
        while starts.len() <= 120 {
            starts.push(follow.next_json()["start_ns"].as_u64().unwrap());
        }
        let (status, rest) = follow.end_by(Signal::SIGTERM);
        assert_eq!((status.code(), rest), (Some(0), vec![]), "{rotation:?}");
        let starts: Vec<_> = starts.iter().map(|start| start - 1_706_800_122_000_000_000).collect();
        let expected: Vec<_> = (0..=120).collect();
        assert_eq!(starts, expected, "{rotation:?}");
    }
}

#[test]
fn from_now_on_is_shown_what_comes_with_the_names_that_stood_there() {
    let folder = tempfile::tempdir().unwrap();
    let batch = |number: u64| {
        format!(
            "{{\"type\":\"kernel_event_batch\",\"session_id\":\"s\",\"batch_id\":{number},\"base_time_ns\":{number},\"columns\":[\"dt_ns\",\"kernel_id\",\"duration_ns\"],\"rows\":[[0,1,10]]}}\n"
        )
    };
    let past = "{\"type\":\"job_start\",\"session_id\":\"s\",\"pid\":7,\"app\":\"train\",\"ts_ns\":1}\n{\"type\":\"dictionary_update\",\"session_id\":\"s\",\"kernel_dict\":{\"1\":\"gemm\"}}\n";
    let log = write(folder.path(), "run.device.log", past.to_owned() + &batch(1));
    let follow = Running::start(&mut command(&["follow", "--json", &log]));
    // When it has begun to follow cannot be seen from outside.
    let mut file = append_to(PathBuf::from(&log));
    let began = Instant::now();
    let mut number = 1;
    let first = loop {
        number += 1;
        file.write_all(batch(number).as_bytes()).unwrap();
        if let Ok(line) = follow.lines.recv_timeout(Duration::from_millis(100)) {
            break line;
        }
        assert!(began.elapsed() < PATIENCE, "nothing is shown");
    };
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(
        (&first["name"], &first["app"], &first["pid"]),
        (&"gemm".into(), &"train".into(), &7.into())
    );
    assert!(first["start_ns"].as_u64().unwrap() > 1, "{first}");
    let mut last = first["start_ns"].as_u64().unwrap();
    while last < number {
        let event = follow.next_json();
        assert_eq!(event["start_ns"].as_u64().unwrap(), last + 1);
        last += 1;
    }
    assert_eq!(follow.end_by(Signal::SIGINT).0.code(), Some(0));
}

#[test]
fn a_log_that_comes_later_is_waited_for_and_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later.log");
    let follow = Running::start(&mut command(&["follow", path.to_str().unwrap()]));
    thread::sleep(Duration::from_millis(300));
    write(folder.path(), "later.log", kernel(1, "gemm"));
    assert_eq!(
        follow.next(),
        "2024-02-01T15:08:42.000000001Z  train/7  kernel          gemm  1.500 us  2x1x1 of 32x1x1"
    );
    assert_eq!(follow.end_by(Signal::SIGINT).0.code(), Some(0));
}

#[test]
fn lines_are_plain_and_filtered_and_findings_stand_apart() {
    let folder = tempfile::tempdir().unwrap();
    let lines =
        kernel(1, "gemm") + &kernel(2, "relu") + "{\n" + &scope("begin", 5) + &scope("end", 2_005);
    let log = write(folder.path(), "x.log", lines);
    let ran = |more: &[&str]| {
        let ran = events(&[&["follow", "--from-start", "--for", "0.5", &log][..], more].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    };
    let all = ran(&[]);
    assert_eq!(
        all.out.lines().skip(2).collect::<Vec<_>>(),
        [
            "0.000000005 s  train/7  scope_begin     step",
            "0.000002005 s  train/7  scope_end       step  2.000 us"
        ]
    );
    assert!(all.err.contains("x.log:3: expected a JSON object"), "{}", all.err);
    assert_eq!(ran(&["--type", "scope", "--name", "^st"]).out.lines().count(), 2);
    assert_eq!(ran(&["--type", "kernel,scope_end"]).out.lines().count(), 3);
    let ran = ran(&["--json", "--name", "ge.m"]);
    assert_eq!((ran.lines().len(), &ran.lines()[0]["duration_ns"]), (1, &1_500.into()));
}

#[test]
fn the_json_of_an_event_is_that_of_validate() {
    let folder = tempfile::tempdir().unwrap();
    let log = write(folder.path(), "x.log", kernel(1, "gemm"));
    let follow = events(&["follow", "--from-start", "--for", "0.3", "--json", &log]);
    let validate = events(&["validate", "--format", "gpumon", "--json", &log]);
    assert_eq!(follow.lines(), [validate.lines()[0]["event"].clone()]);
}

#[test]
fn a_closed_pipe_ends_it_though_the_log_is_silent() {
    let folder = tempfile::tempdir().unwrap();
    let log = write(folder.path(), "x.log", "");
    let mut command = command(&["follow", &log]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(ended(&mut child).code(), Some(0));
}

#[test]
fn wrong_arguments_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (&["follow", folder.path().to_str().unwrap()][..], "is a folder"),
        (&["follow", "-"], "standard input"),
        (&["follow", "--type", "kernels", "x"], "possible values"),
        (&["follow", "--name", "(", "x"], "regex"),
        (&["follow", "--for=-1", "x"], "--for"),
    ] {
        let ran = events(arguments);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(words), "{ran:?}");
    }
}

#[test]
fn the_logs_of_the_configuration_are_followed_without_touching_what_the_pass_keeps() {
    let mut world = World::new();
    fs::create_dir(world.path("logs")).unwrap();
    let pattern = world.path("logs/gpumon_*.log").display().to_string();
    world.tables = format!("[[events]]\npattern = \"{pattern}\"\nformat = \"gpumon\"\n\n");
    support::world::write(world.path("logs/gpumon_a_7.log"), kernel(1, "gemm"));
    world.pass_ends(0);
    append_to(world.path("logs/gpumon_a_7.log")).write_all(kernel(2, "relu").as_bytes()).unwrap();
    let before = contents(&world.state());
    assert!(!before.is_empty());
    let mut command =
        world.command(&["events", "follow", "--json", "--from-start", "--for", "0.5"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
    assert_eq!(contents(&world.state()), before);
    assert_eq!(world.pass_ends(0).report["events"]["lines"], 1);
}

#[test]
fn memory_is_bounded_however_long_the_log_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.log");
    let mut file = append_to(path.clone());
    let block: String =
        (0..4_000).map(|number| kernel(number, &format!("k{}", number % 50))).collect();
    for _ in 0..60 {
        file.write_all(block.as_bytes()).unwrap();
    }
    file.write_all(kernel(0, "last").as_bytes()).unwrap();
    assert!(file.metadata().unwrap().len() > 48 << 20);
    let arguments = ["follow", "--from-start", "--name", "^last$", path.to_str().unwrap()];
    let follow = Running::start(&mut command(&arguments));
    assert!(follow.next().contains("last"));
    let status = fs::read_to_string(format!("/proc/{}/status", follow.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let kibibytes: u64 = peak.strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(kibibytes < 32 << 10, "{kibibytes} KiB");
    assert_eq!(follow.end_by(Signal::SIGTERM).0.code(), Some(0));
}
