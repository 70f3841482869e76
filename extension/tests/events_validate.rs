//! `warpgauge events validate`: what people and machines are told about a log, and the exit code.

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

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use event_logs::{
    Ran, command, events, events_in, events_with_input, fixture, folder, gzip, scopes_of_gpumon,
    write,
};
use serde_json::{Value, json};

fn gpumon(arguments: &[&str]) -> Ran {
    events(&[&["validate", "--format", "gpumon"], arguments].concat())
}

fn flight(arguments: &[&str]) -> Ran {
    events(&[&["validate", "--format", "gpu-flight"], arguments].concat())
}

/// The lines of the verdicts that are ok.
fn accepted(ran: &Ran) -> Vec<i64> {
    let verdicts = ran.lines();
    let accepted = verdicts.iter().filter(|verdict| verdict["ok"] == true);
    accepted.map(|verdict| verdict["line"].as_i64().unwrap()).collect()
}

#[test]
fn strict_takes_what_the_schema_takes_and_tolerant_what_producers_write() {
    let invalid = fixture("gpumon/invalid.ndjson");
    let strict = gpumon(&["--strict", "--json", &invalid]);
    assert_eq!((strict.code, strict.lines().len()), (Some(1), 10));
    assert_eq!(accepted(&strict), [0; 0]);
    let tolerant = gpumon(&["--json", &invalid]);
    assert_eq!(accepted(&tolerant), [3, 4, 5, 6]);
    assert_eq!(tolerant.lines()[4]["findings"][0]["severity"], "suspect");
    let valid = gpumon(&["--strict", "--json", &fixture("gpumon/stress.scope.log")]);
    assert_eq!((valid.code, valid.lines().len()), (Some(0), accepted(&valid).len()));
    assert_eq!(accepted(&valid).len(), 25);
}

#[test]
fn a_verdict_has_the_line_the_fault_and_the_event() {
    let log = "{\"type\":\"init\",\"pid\":1,\"app\":\"a\",\"ts_ns\":5,\"new\":1}\n\n{\"type\":\"init\",\"pid\":-1,\"app\":\"a\",\"ts_ns\":5}\n";
    let ran = events_with_input(&["validate", "--format", "gpumon", "--json", "-"], log.as_bytes());
    let event = json!({ "type": "start", "pid": 1, "app": "a", "time_ns": 5 });
    let expected = [
        json!({ "file": "standard input", "line": 1, "ok": true, "error": null, "event": event }),
        json!({
            "file": "standard input", "line": 3, "ok": false,
            "error": "pid: expected an integer >= 0, found a negative number", "event": null,
            "findings": [{
                "severity": "refused", "field": "pid", "expected": "an integer >= 0",
                "found": "a negative number",
            }],
        }),
    ];
    assert_eq!(ran.lines(), expected);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("standard input:1: init.new is unknown and was not read, 1 time"),
        "{}",
        ran.err
    );
}

#[test]
fn people_get_each_finding_with_its_place_and_a_table() {
    let (_kept, folder) = folder();
    write(&folder, "a.log", "{\"type\":\"init\",\"pid\":1,\"app\":\"\",\"ts_ns\":5}\n");
    write(&folder, "b.log", scopes_of_gpumon());
    let ran = events_in(&folder, &["validate", "--format", "gpumon", "a.log", "b.log"]);
    let expected = "\
a.log:1: app: expected a string that is not empty, found \"\"
LINES  EVENTS  REFUSED  SUSPECT  FILE
    1       0        1        0  a.log
   14      14        0        0  b.log
   15      14        1        0  all
";
    assert_eq!((ran.out.as_str(), ran.code), (expected, Some(1)));
}

#[test]
fn a_log_cannot_write_to_the_terminal() {
    let log = b"{\"type\":\"k\x1b[2J\",\"pid\":1}\n\"\x1b]0;title\x07\"\n";
    let ran = events_with_input(&["validate", "--format", "gpumon", "-"], log);
    assert!(
        !ran.out.contains(|letter: char| letter.is_control() && letter != '\n'),
        "{:?}",
        ran.out
    );
}

#[test]
fn a_batch_that_waits_gets_its_verdict_when_its_dictionary_has_come() {
    let ran = flight(&["--json", &fixture("gpuflight/edge/04_dict_after_batch.ndjson")]);
    let verdicts: Vec<_> = ran.lines().iter().map(|verdict| verdict["line"].clone()).collect();
    assert_eq!((verdicts, ran.code), (vec![json!(1), json!(2)], Some(0)));
    assert_eq!(ran.lines()[0]["events"][0]["name"], "k1");
    let (_kept, folder) = folder();
    // The dictionary stands in another channel, which is read later.
    let batch = r#"{"type":"kernel_event_batch","session_id":"s","batch_id":1,"base_time_ns":5,"columns":["dt_ns","kernel_id","duration_ns"],"rows":[[0,1,2],[1,2,2]]}"#;
    write(&folder, "a.device.log", batch);
    write(
        &folder,
        "a.scope.log",
        r#"{"type":"dictionary_update","session_id":"s","kernel_dict":{"1":"k1"}}"#,
    );
    let arguments = ["validate", "--format", "gpu-flight", "--json", "a.scope.log", "a.device.log"];
    let verdicts = events_in(&folder, &arguments).lines();
    let place =
        |verdict: &Value| (verdict["file"].clone(), verdict["line"].clone(), verdict["ok"].clone());
    let places: Vec<_> = verdicts.iter().map(place).collect();
    let expected = [
        (json!("a.scope.log"), json!(1), json!(true)),
        (json!("a.device.log"), json!(1), json!(false)),
    ];
    assert_eq!(places, expected);
    assert!(verdicts[1]["error"].as_str().unwrap().contains("id 2"), "{}", verdicts[1]);
    assert_eq!(verdicts[1]["events"].as_array().unwrap().len(), 1);
}

#[test]
fn unknown_types_and_fields_are_said_once_and_are_findings_when_strict() {
    let log = fixture("gpuflight/edge/08_unknown_type_and_fields.ndjson");
    let ran = flight(&[&log]);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.out.contains(":1: perf_metric_event is unknown and was not read, 1 time\n"),
        "{}",
        ran.out
    );
    let strict = flight(&["--strict", &log]);
    assert_eq!(strict.code, Some(1));
    assert!(
        strict.out.contains("expected a known type or field, found perf_metric_event"),
        "{}",
        strict.out
    );
}

#[test]
fn the_channels_of_a_session_are_one_log() {
    let names = ["kernel", "scope", "system"]
        .map(|channel| fixture(&format!("gpumon/gpufl_basic.{channel}.0.log")));
    let ran = gpumon(&["--json", &names[2], &names[1], &names[0]]);
    assert_eq!((ran.code, ran.lines().len()), (Some(0), 57));
    assert!(ran.lines()[0]["file"].as_str().unwrap().contains("kernel.0.log"), "device first");
    // All times are since the machine's start; the files' own times tell when that was.
    assert_eq!(ran.err.matches("ns makes them Unix time").count(), 3, "{}", ran.err);
}

#[test]
fn a_monotonic_clock_is_said_with_what_makes_it_unix_time() {
    let (_kept, folder) = folder();
    let path =
        write(&folder, "a.log", "{\"type\":\"init\",\"pid\":1,\"app\":\"a\",\"ts_ns\":5000}\n");
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + Duration::from_nanos(1_700_000_000_000_005_000))
        .unwrap();
    let ran = gpumon(&[&path]);
    assert!(ran.out.contains("adding 1700000000000000000 ns makes them Unix time"), "{}", ran.out);
    assert_eq!(ran.code, Some(0));
    let wall = scopes_of_gpumon();
    let ran = events_with_input(&["validate", "--format", "gpumon", "-"], wall.as_bytes());
    assert!(!ran.out.contains("Unix time"), "{}", ran.out);
}

#[test]
fn packed_logs_are_told_by_content_and_a_torn_one_by_where_it_ends() {
    let (_kept, folder) = folder();
    let log = scopes_of_gpumon().repeat(50);
    let valid =
        r#"{"type":"system_sample","app":"a","ts_ns":1700000000000000000}"#.to_owned() + "\n";
    let packed = write(&folder, "packed", gzip(valid.as_bytes()));
    let zstd = write(&folder, "zstd.log", zstd::encode_all(valid.as_bytes(), 1).unwrap());
    let ran = gpumon(&["--json", &packed, &zstd]);
    assert_eq!((ran.code, ran.lines().len()), (Some(0), 2), "{ran:?}");
    let whole = gzip(log.as_bytes());
    let torn = write(&folder, "torn.gz", &whole[..whole.len() - 40]);
    let ran = gpumon(&["--json", &torn]);
    let verdicts = ran.lines();
    let last = verdicts.last().unwrap();
    assert_eq!((ran.code, &last["ok"]), (Some(1), &json!(false)));
    assert!(
        last["error"].as_str().unwrap().starts_with("expected the rest of the gzip stream"),
        "{last}"
    );
    assert!(verdicts.len() > 300, "what came before holds: {}", verdicts.len());
    let whole = zstd::encode_all(log.as_bytes(), 1).unwrap();
    let torn = write(&folder, "torn.zst", &whole[..whole.len() - 5]);
    let ran = gpumon(&[&torn]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("expected the rest of the zstd stream"), "{}", ran.out);
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_one_stands() {
    let long = format!("{{\"type\":\"{}\"}}\n", "x".repeat(5 << 20));
    let log = long + &scopes_of_gpumon();
    let ran = events_with_input(&["validate", "--format", "gpumon", "--json", "-"], log.as_bytes());
    let verdicts = ran.lines();
    assert_eq!((ran.code, verdicts.len()), (Some(1), 15));
    assert_eq!(verdicts[0]["error"], "expected at most 4194304 bytes, found a longer line");
    assert!(verdicts[1..].iter().all(|verdict| verdict["ok"] == true));
}

#[test]
fn a_torn_last_line_is_named() {
    let ran = flight(&[&fixture("gpuflight/edge/05_torn_tail.ndjson")]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("the last line has no newline: it may be half a line"), "{}", ran.out);
}

#[test]
fn an_empty_file_is_no_fault_and_is_said() {
    let (_kept, folder) = folder();
    let path = write(&folder, "empty.log", "");
    let ran = gpumon(&[&path]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("the file is empty"), "{}", ran.out);
}

#[test]
fn what_cannot_be_opened_is_wrong_usage_and_the_others_are_still_read() {
    let (_kept, folder) = folder();
    let good = write(&folder, "good.log", scopes_of_gpumon());
    let own = folder.to_str().unwrap();
    for (path, words) in [
        (own, "is a folder"),
        ("/nonexistent/log", "No such file"),
        ("/proc/self/mem", "Input/output error"),
    ] {
        let ran = gpumon(&[path, &good]);
        assert_eq!(ran.code, Some(2), "{path}: {ran:?}");
        assert!(ran.err.contains(words) && ran.err.contains(path), "{path}: {}", ran.err);
        assert!(ran.out.contains("good.log"), "{path}: {}", ran.out);
    }
    assert_eq!(events(&["validate", &good]).code, Some(2), "without a format");
    assert_eq!(gpumon(&[]).code, Some(2), "without a file");
}

/// Memory does not grow with the log: 100 MB pass through a process that never has 64 MiB.
#[test]
fn a_hundred_megabytes_stream_through_gzip() {
    const MOST_KIB: u64 = 64 << 10;
    let (_kept, folder) = folder();
    let path = folder.join("large.log.gz");
    let mut encoder = flate2::write::GzEncoder::new(
        std::fs::File::create(&path).unwrap(),
        flate2::Compression::fast(),
    );
    let (mut written, mut lines) = (0, 0_u64);
    while written < 100_000_000 {
        let line = format!(
            "{{\"type\":\"scope_sample\",\"pid\":7,\"app\":\"trainer\",\"name\":\"step\",\"ts_ns\":{},\"tag\":\"{:0>400}\"}}\n",
            1_700_000_000_000_000_000 + lines,
            lines
        );
        encoder.write_all(line.as_bytes()).unwrap();
        (written, lines) = (written + line.len(), lines + 1);
    }
    encoder.finish().unwrap();
    let mut child = command(&["validate", "--format", "gpumon", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let (mut most, begun) = (0, Instant::now());
    while child.try_wait().unwrap().is_none() {
        let told = std::fs::read_to_string(&status).unwrap_or_default();
        let peak =
            told.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        most = peak.map_or(most, |peak| peak.trim().parse().unwrap());
        assert!(begun.elapsed() < Duration::from_secs(300), "it hangs");
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains(&format!("{lines}  {lines:>6}")), "{table}");
    assert!(most > 0 && most < MOST_KIB, "{most} KiB");
}
