//! `warpgauge events convert`: every pair of formats, what it refuses to lose, and what is left of
//! a conversion that does not end.

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

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use event_logs::{
    Ran, command, events, events_in, events_with_input, fat_session, fixture, folder, gzip,
    kernels_of_gpumon, names, scopes_of_gpumon, write,
};
use serde_json::{Value, json};
use warpgauge::events::tables::MOST_SESSIONS;

const FORMATS: [&str; 4] = ["gpumon", "gpu-flight", "gpu-flight-fat", "parquet"];

/// `events convert` in a folder.
fn convert(folder: &Path, arguments: &[&str]) -> Ran {
    events_in(folder, &[&["convert"], arguments].concat())
}

/// The files that a format has under a name.
fn files(format: &str, name: &str) -> Vec<String> {
    match format {
        "gpumon" | "parquet" => vec![name.to_owned()],
        _ => ["device", "scope", "system"].map(|channel| format!("{name}.{channel}.log")).into(),
    }
}

/// Converts files of a name into another name.
fn into(folder: &Path, (from, name): (&str, &str), (to, out): (&str, &str), more: &[&str]) -> Ran {
    let files = files(from, name);
    let mut arguments = vec!["--from", from, "--to", to, "-o", out];
    arguments.extend(more);
    arguments.extend(files.iter().map(String::as_str));
    convert(folder, &arguments)
}

/// The events of a log as JSON, in the order of their text.
fn events_of(folder: &Path, format: &str, name: &str) -> Vec<String> {
    let family = if format == "gpumon" { format } else { "gpu-flight" };
    let files = files(format, name);
    let mut arguments = vec!["validate", "--json", "--format", family];
    arguments.extend(files.iter().map(String::as_str));
    let ran = events_in(folder, &arguments);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut all = vec![];
    for verdict in ran.lines() {
        all.extend(verdict["event"].as_object().map(|event| json!(event).to_string()));
        let events = verdict["events"].as_array().cloned().unwrap_or_default();
        all.extend(events.iter().map(Value::to_string));
    }
    all.sort();
    all
}

/// What all formats hold of a log: type, name and time of each event.
fn essence(folder: &Path, format: &str, name: &str) -> Vec<String> {
    let out = format!("essence-{name}");
    let ran = into(folder, (format, name), ("gpumon", &out), &["--lossy", "--force"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events = events_of(folder, "gpumon", &out);
    let brief = events.iter().map(|event| {
        let event: Value = serde_json::from_str(event).unwrap();
        format!("{} {} {} {}", event["pid"], event["type"], event["name"], event["time_ns"])
    });
    brief.collect()
}

#[test]
fn every_pair_of_formats_keeps_what_both_can_hold() {
    let (_kept, folder) = folder();
    write(&folder, "origin", scopes_of_gpumon());
    let expected = essence(&folder, "gpumon", "origin");
    assert_eq!(expected.len(), 14);
    for from in FORMATS {
        let ran = into(&folder, ("gpumon", "origin"), (from, from), &[]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "gpumon into {from}: {ran:?}");
        for to in FORMATS {
            let out = format!("{from}-{to}");
            // A session's id, and which run of a scope it was, have no place in gpumon.
            let is_known_to_lose = to == "gpumon" && from.starts_with("gpu-flight");
            let more: &[&str] = if is_known_to_lose { &["--lossy"] } else { &[] };
            let ran = into(&folder, (from, from), (to, &out), more);
            assert_eq!(ran.code, Some(0), "{from} into {to}: {ran:?}");
            assert_eq!(ran.err.is_empty(), !is_known_to_lose, "{from} into {to}: {ran:?}");
            assert_eq!(essence(&folder, to, &out), expected, "{from} into {to}");
        }
    }
}

#[test]
fn gpumon_comes_back_whole_from_tables() {
    let (_kept, folder) = folder();
    for (name, log) in [
        ("kernels", kernels_of_gpumon()),
        ("real", fs::read_to_string(fixture("gpumon/stress.scope.log")).unwrap()),
    ] {
        write(&folder, name, log);
        let tables = format!("{name}-tables");
        let ran = into(&folder, ("gpumon", name), ("parquet", &tables), &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let back = format!("{name}-back");
        let ran = into(&folder, ("parquet", &tables), ("gpumon", &back), &["--lossy"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let (before, after) = (essence(&folder, "gpumon", name), essence(&folder, "gpumon", &back));
        assert_eq!(before, after);
        if name == "kernels" {
            assert_eq!(ran.err, "");
            assert_eq!(events_of(&folder, "gpumon", name), events_of(&folder, "gpumon", &back));
        }
    }
}

#[test]
fn the_fat_form_comes_back_whole_from_tables() {
    let (_kept, folder) = folder();
    let path = write(&folder, "train.log", fat_session(1_200));
    assert_eq!(convert(&folder, &["--to", "parquet", "-o", "tables", &path]).code, Some(0));
    assert_eq!(names(&folder.join("tables")), ["s%2F1"]);
    let ran = convert(&folder, &["--to", "gpu-flight-fat", "-o", "back", "tables"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let ran = convert(&folder, &["--to", "gpu-flight-fat", "-o", "again", &path]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let expected = events_of(&folder, "gpu-flight-fat", "again");
    assert_eq!(expected.len(), 1_204);
    assert_eq!(events_of(&folder, "gpu-flight-fat", "back"), expected);
}

#[test]
fn columnar_batches_find_their_details_again() {
    let (_kept, folder) = folder();
    let log = fat_session(1_200).replace(r#""device_id":0,"#, "");
    let path = write(&folder, "train.log", log);
    let ran = convert(&folder, &["--to", "gpu-flight", "-o", "small", &path]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let ran = into(&folder, ("gpu-flight", "small"), ("gpu-flight-fat", "back"), &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let ran = convert(&folder, &["--to", "gpu-flight-fat", "-o", "again", &path]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Batches tell host and devices in rows of their own, so that one sample becomes two.
    let without = |name: &str| -> Vec<_> {
        let events = events_of(&folder, "gpu-flight-fat", name);
        events.into_iter().filter(|event| !event.contains("system_sample")).collect()
    };
    assert_eq!(without("back"), without("again"));
}

#[test]
fn each_channel_begins_and_ends_with_its_session() {
    let (_kept, folder) = folder();
    write(&folder, "a.log", scopes_of_gpumon());
    for to in ["gpu-flight", "gpu-flight-fat"] {
        assert_eq!(
            into(&folder, ("gpumon", "a.log"), (to, "channels"), &["--force"]).code,
            Some(0)
        );
        // The device channel, which is read first, ends the session before the scopes come.
        let ran = into(&folder, (to, "channels"), (to, "again"), &["--force"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        for path in files(to, "again") {
            let log = fs::read_to_string(folder.join(&path)).unwrap();
            let lines: Vec<Value> =
                log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let first = if to == "gpu-flight" { "job_start" } else { "init" };
            let bounds = (&lines[0]["type"], &lines[lines.len() - 1]["type"]);
            assert_eq!(bounds, (&json!(first), &json!("shutdown")), "{path}: {log}");
            assert_eq!(log.matches("\"shutdown\"").count(), 1, "{path}: {log}");
        }
    }
}

#[test]
fn details_of_the_first_kernels_are_a_loss_that_is_said() {
    let (_kept, folder) = folder();
    let log = fat_session(30).replace(r#""device_id":0,"#, "");
    let path = write(&folder, "train.log", log);
    let arguments = ["--to", "gpu-flight", "--details", "first", "-o", "small", &path];
    let ran = convert(&folder, &arguments);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("     27  kernel.details\n"), "{}", ran.err);
    assert_eq!(names(&folder), ["train.log"]);
    let ran = convert(&folder, &[&arguments[..], &["--lossy"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let device = fs::read_to_string(folder.join("small.device.log")).unwrap();
    assert_eq!(device.matches("kernel_detail\"").count(), 3);
}

#[test]
fn what_would_be_lost_is_refused_and_named_and_left_out_only_when_told() {
    let (_kept, folder) = folder();
    let path = write(&folder, "a.log", kernels_of_gpumon());
    let arguments = ["--to", "gpu-flight", "-o", "out", path.as_str()];
    let ran = convert(&folder, &arguments);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    let expected = "\
nothing was written: this would be lost (--lossy leaves it out):
  TIMES  WHAT
      4  event.app that the session's start does not tell
      4  event.pid that the session's start does not tell
      2  kernel.cuda_error
      2  kernel.details
      2  kernel.tag
      1  scope_sample
";
    assert_eq!(ran.err, expected);
    assert_eq!(names(&folder), ["a.log"]);
    let ran = convert(&folder, &[&arguments[..], &["--lossy", "--json"]].concat());
    assert_eq!(ran.code, Some(0));
    let report = ran.json();
    assert_eq!((&report["is_written"], &report["events"]), (&json!(true), &json!(4)));
    assert_eq!(report["losses"][2], json!({ "what": "kernel.cuda_error", "times": 2 }));
    assert_eq!(names(&folder), ["a.log", "out.device.log", "out.scope.log", "out.system.log"]);
}

#[test]
fn what_cannot_be_read_would_be_lost_too() {
    let (_kept, folder) = folder();
    let log = scopes_of_gpumon() + "{\"type\":\"shutdown\",\"pid\":";
    let path = write(&folder, "torn.log", log);
    let ran = convert(&folder, &["--from", "gpumon", "--to", "parquet", "-o", "out", &path]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("torn.log:15: expected a JSON object"), "{}", ran.err);
    assert!(ran.err.contains("      1  what could not be read\n"), "{}", ran.err);
    let unknown = fixture("gpuflight/edge/08_unknown_type_and_fields.ndjson");
    let ran = convert(&folder, &["--to", "parquet", "-o", "out", &unknown]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("perf_metric_event (unknown)"), "{}", ran.err);
    let torn = gzip(scopes_of_gpumon().repeat(200).as_bytes());
    let torn = write(&folder, "torn.gz", &torn[..torn.len() / 2]);
    let ran = convert(&folder, &["--to", "parquet", "-o", "out", &torn]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("expected the rest of the gzip stream"), "{}", ran.err);
    assert_eq!(names(&folder), ["torn.gz", "torn.log"]);
}

#[test]
fn the_ending_of_the_name_packs() {
    let (_kept, folder) = folder();
    let path = write(&folder, "a.log", scopes_of_gpumon());
    let expected = events_of(&folder, "gpumon", "a.log");
    for (out, magic) in [("b.log.gz", &[0x1f, 0x8b][..]), ("b.log.zst", &[0x28, 0xb5])] {
        assert_eq!(convert(&folder, &["--to", "gpumon", "-o", out, &path]).code, Some(0));
        assert!(fs::read(folder.join(out)).unwrap().starts_with(magic), "{out}");
        assert_eq!(events_of(&folder, "gpumon", out), expected);
    }
    let ran = convert(&folder, &["--to", "gpu-flight", "-o", "c.zst", &path]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(folder.join("c.scope.log.zst").exists() && folder.join("c.system.log.zst").exists());
}

#[test]
fn standard_output_holds_the_log_and_nothing_else() {
    let (_kept, folder) = folder();
    let ran = events_with_input(
        &["convert", "--to", "gpu-flight-fat", "-"],
        scopes_of_gpumon().as_bytes(),
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines = ran.lines();
    assert_eq!(
        (lines.len(), &lines[0]["type"], &lines[13]["type"]),
        (14, &json!("init"), &json!("shutdown"))
    );
    assert!(ran.err.contains("14 events into standard output"), "{}", ran.err);
    let ran = events_with_input(&["convert", "--to", "gpumon", "-"], ran.out.as_bytes());
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "a session's id would be lost");
    let path = write(&folder, "a.log", scopes_of_gpumon());
    assert_eq!(
        events(&["convert", "--to", "parquet", &path]).code,
        Some(2),
        "tables need a folder"
    );
}

#[test]
fn nothing_is_replaced_unless_told() {
    let (_kept, folder) = folder();
    let path = write(&folder, "a.log", scopes_of_gpumon());
    for (to, out, made) in [
        ("gpumon", "log", "log"),
        ("gpu-flight", "log2", "log2.scope.log"),
        ("parquet", "tables", "tables/pid-7/scopes.parquet"),
    ] {
        let arguments = ["--to", to, "-o", out, &path];
        assert_eq!(convert(&folder, &arguments).code, Some(0));
        let first = fs::read(folder.join(made)).unwrap();
        let again = convert(&folder, &arguments);
        assert_eq!(again.code, Some(2));
        assert!(again.err.contains("is there already; --force replaces it"), "{}", again.err);
        let before = names(&folder);
        assert_eq!(convert(&folder, &[&arguments[..], &["--force"]].concat()).code, Some(0));
        assert_eq!(fs::read(folder.join(made)).unwrap(), first);
        assert_eq!(names(&folder), before);
    }
    // A folder with other things in it is nobody's data set.
    write(&folder, "tables/keep.txt", "precious");
    let ran = convert(&folder, &["--to", "parquet", "--force", "-o", "tables", &path]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("holds more than Parquet tables"), "{}", ran.err);
    assert_eq!(names(&folder.join("tables")), ["keep.txt", "pid-7"]);
    for (out, words) in
        [("/dev/null", "is no file"), ("missing/out", "is no folder; make it first")]
    {
        let ran = convert(&folder, &["--to", "gpumon", "--force", "-o", out, &path]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.err.contains(words), "{}", ran.err);
    }
}

#[test]
fn a_log_may_replace_itself() {
    let (_kept, folder) = folder();
    write(&folder, "a.log", scopes_of_gpumon());
    let expected = events_of(&folder, "gpumon", "a.log");
    let ran = convert(&folder, &["--to", "gpumon", "--force", "-o", "a.log", "a.log"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(events_of(&folder, "gpumon", "a.log"), expected);
}

#[test]
fn each_session_has_its_folder_and_hostile_names_stay_inside() {
    let (_kept, folder) = folder();
    let log: String = ["../../up", "", ".hidden"]
        .iter()
        .map(|session| format!("{{\"type\":\"shutdown\",\"session_id\":\"{session}\",\"ts_ns\":1700000000000000000}}\n"))
        .collect();
    let path = write(&folder, "a.log", log);
    let ran = convert(&folder, &["--to", "parquet", "-o", "tables", &path]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(names(&folder.join("tables")), ["%2E.%2F..%2Fup", "%2Ehidden", "no-session"]);
    assert_eq!(names(&folder), ["a.log", "tables"]);
}

#[test]
fn more_sessions_than_can_be_open_at_once_are_refused() {
    let (_kept, folder) = folder();
    let shutdown = |session| {
        format!(
            "{{\"type\":\"shutdown\",\"session_id\":\"{session}\",\"ts_ns\":1700000000000000000}}\n"
        )
    };
    let log: String = (0..=MOST_SESSIONS).map(shutdown).collect();
    let path = write(&folder, "a.log", log);
    let ran = convert(&folder, &["--to", "parquet", "-o", "tables", &path]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("more than 16 sessions: convert them a few at a time"), "{}", ran.err);
    assert_eq!(names(&folder), ["a.log"]);
}

#[test]
fn logs_of_different_formats_are_not_mixed() {
    let (_kept, folder) = folder();
    let gpumon = write(&folder, "a.log", scopes_of_gpumon());
    let fat = write(&folder, "b.log", fat_session(1));
    let ran = convert(&folder, &["--to", "gpumon", &gpumon, &fat]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("b.log is gpu-flight-fat, not gpumon"), "{}", ran.err);
    let other = write(&folder, "c.log", "hello\n");
    let ran = convert(&folder, &["--to", "gpumon", &other]);
    assert!(ran.err.contains("cannot tell the format"), "{}", ran.err);
    assert_eq!(ran.code, Some(2));
    assert_eq!(convert(&folder, &["--to", "gpumon", "/nonexistent"]).code, Some(2));
}

#[test]
fn a_damaged_table_is_a_finding() {
    let (_kept, folder) = folder();
    let path = write(&folder, "a.log", scopes_of_gpumon());
    assert_eq!(convert(&folder, &["--to", "parquet", "-o", "tables", &path]).code, Some(0));
    let table = folder.join("tables/pid-7/scopes.parquet");
    let bytes = fs::read(&table).unwrap();
    write(&folder, "tables/pid-7/scopes.parquet", &bytes[..bytes.len() / 2]);
    let ran = convert(&folder, &["--to", "gpumon", "-o", "back", "tables"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("scopes"), "{}", ran.err);
    assert!(!folder.join("back").exists());
}

/// Kills conversions in their middle: whatever the signal and the format, no result is there, and
/// the next conversion finds its way free.
#[test]
fn an_interrupted_conversion_leaves_nothing() {
    use nix::sys::signal::{Signal, kill};
    let log = fat_session(20_000);
    for to in ["gpumon", "gpu-flight", "gpu-flight-fat", "parquet"] {
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
            let (_kept, folder) = folder();
            let arguments = ["convert", "--to", to, "--lossy", "-o", "out", "-"];
            let mut interrupted = command(&arguments);
            interrupted.current_dir(&folder).stdin(Stdio::piped()).stderr(Stdio::null());
            let mut child = interrupted.spawn().unwrap();
            // A pipe holds 64 KiB: what went in has been read but for that.
            let half = log.len() / 2;
            child.stdin.as_mut().unwrap().write_all(&log.as_bytes()[..half]).unwrap();
            assert_eq!(child.try_wait().unwrap(), None, "it waits for the rest");
            kill(nix::unistd::Pid::from_raw(child.id().cast_signed()), signal).unwrap();
            assert!(!child.wait().unwrap().success());
            let left = names(&folder);
            // Only a file system without unnamed files keeps a hidden one.
            assert!(left.iter().all(|name| name.starts_with('.')), "{to}, {signal}: {left:?}");
            let path = write(&folder, "a.log", fat_session(5));
            let ran = convert(&folder, &["--to", to, "--lossy", "-o", "out", &path]);
            assert_eq!(ran.code, Some(0), "{to}, {signal}: {ran:?}");
        }
    }
}

#[test]
fn a_disk_that_is_full_leaves_nothing_and_can_be_tried_again() {
    // gpumon could hold next to nothing of this log.
    for to in ["gpu-flight", "gpu-flight-fat", "parquet"] {
        let (_kept, folder) = folder();
        let path = write(&folder, "a.log", fat_session(20_000));
        let binary = env!("CARGO_BIN_EXE_warpgauge");
        // No file may become larger than 4 blocks of 512 bytes.
        let script = "trap '' XFSZ; ulimit -f 4; exec \"$@\"";
        let mut limited = Command::new("sh");
        limited.args(["-c", script, "sh", binary, "events", "convert", "--to", to]);
        limited.args(["--lossy", "-o", "out", &path]).current_dir(&folder);
        let output = limited.output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(75), "{to}: {words}");
        assert!(words.contains("File too large"), "{to}: {words}");
        assert_eq!(names(&folder), ["a.log"], "{to}");
    }
}
