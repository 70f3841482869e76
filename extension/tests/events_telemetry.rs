//! TelemetryEvent v2 on the command line: verdicts, and what it becomes.

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
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Stdio;

use event_logs::{
    Ran, command, events, events_in, events_with_input, fixture, folder, gzip, write,
};
use serde_json::{Value, json};

fn validate(arguments: &[&str]) -> Ran {
    events(&[&["validate", "--format", "telemetry-v2"], arguments].concat())
}

fn judged(arguments: &[&str], input: &[u8]) -> Ran {
    events_with_input(
        &[&["validate", "--format", "telemetry-v2"], arguments, &["-"]].concat(),
        input,
    )
}

/// An event of version 2 whose members `changed` replace or add.
fn event(changed: Value) -> Value {
    let mut event = json!({
        "schema_version": 2, "timestamp_ns": 1_700_000_000_000_000_000_i64,
        "event_type": "sample", "collector": "gpumemprof.cuda_tracker",
        "sampling_interval_ms": 100, "pid": 7, "host": "a", "device_id": 0,
        "allocator_allocated_bytes": 1 << 20, "allocator_reserved_bytes": 2 << 20,
        "allocator_active_bytes": null, "allocator_inactive_bytes": null,
        "allocator_change_bytes": 0, "device_used_bytes": 3 << 20,
        "device_free_bytes": 5 << 20, "device_total_bytes": 8 << 20,
        "context": null, "metadata": {},
    });
    for (key, value) in changed.as_object().unwrap() {
        event[key] = value.clone();
    }
    event
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

fn out_of_memory() -> Value {
    event(json!({
        "timestamp_ns": 1_700_000_000_200_000_000_i64, "event_type": "error",
        "context": "step 7", "metadata": { "oom_reason": "CUDA out of memory", "tries": 1.50 },
    }))
}

#[test]
fn every_record_of_the_reference_gets_its_verdict_event_and_error() {
    let records = fs::read(fixture("telemetry/records.ndjson")).unwrap();
    let expected = fs::read_to_string(fixture("telemetry/expected.ndjson")).unwrap();
    let expected: Vec<Value> =
        expected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for ran in [
        judged(&["--records", "--json"], &records),
        validate(&["--records", "--json", &fixture("telemetry/records.ndjson")]),
    ] {
        let verdicts = ran.lines();
        assert_eq!((verdicts.len(), ran.code), (expected.len(), Some(1)));
        let mut no_json = 0;
        for (line, (verdict, expected)) in verdicts.iter().zip(&expected).enumerate() {
            let place = format!("line {}: {verdict}\n{expected}", line + 1);
            assert_eq!(verdict["ok"], expected["ok"], "{place}");
            assert_eq!(verdict["event"], expected["event"], "{place}");
            // A JSON parser words its errors itself.
            match expected["error"].as_str() {
                Some(error) if error.contains("(char ") => no_json += 1,
                _ => assert_eq!(verdict["error"], expected["error"], "{place}"),
            }
        }
        assert_eq!(no_json, 11);
    }
}

#[test]
fn a_verdict_has_all_keys_of_the_schema_in_its_order() {
    let ran = judged(&["--json"], br#"{"memory_allocated": 5, "timestamp": 1.5, "note": 1}"#);
    assert_eq!(
        ran.out,
        "{\"ok\":true,\"event\":{\"schema_version\":2,\"timestamp_ns\":1500000000,\"event_type\":\"sample\",\"collector\":\"gpumemprof.cpu_tracker\",\"sampling_interval_ms\":0,\"pid\":-1,\"host\":\"unknown\",\"device_id\":-1,\"allocator_allocated_bytes\":5,\"allocator_reserved_bytes\":5,\"allocator_active_bytes\":null,\"allocator_inactive_bytes\":null,\"allocator_change_bytes\":0,\"device_used_bytes\":5,\"device_free_bytes\":null,\"device_total_bytes\":null,\"context\":null,\"metadata\":{}},\"error\":null}\n"
    );
    assert_eq!(ran.code, Some(0));
}

#[test]
fn strict_reads_no_legacy_records_and_later_producers_have_to_be_accepted() {
    let legacy = br#"{"timestamp": 1, "memory_mb": 2}"#;
    assert_eq!(judged(&[], legacy).code, Some(0));
    let strict = judged(&["--strict", "--json"], legacy);
    assert_eq!(strict.lines()[0]["error"], "Legacy record conversion is disabled");
    let told = judged(
        &["--json", "--default-collector", "own", "--default-sampling-interval-ms", "25"],
        br#"{"timestamp": 1}"#,
    );
    assert_eq!(told.lines()[0]["event"]["collector"], "own");
    assert_eq!(told.lines()[0]["event"]["sampling_interval_ms"], 25);
    let distributed = event(json!({ "job_id": "j", "rank": 1, "local_rank": 1, "world_size": 2 }));
    let distributed = distributed.to_string();
    let refused = judged(&["--json"], distributed.as_bytes());
    let error = "Unknown telemetry fields: job_id, local_rank, rank, world_size";
    assert_eq!(refused.lines()[0]["error"], error);
    let accepted = judged(&["--json", "--accept-distributed"], distributed.as_bytes());
    assert_eq!(accepted.lines()[0]["event"]["world_size"], 2);
    for misused in [
        &["validate", "--format", "gpumon", "--records", "-"][..],
        &["validate", "--format", "kineto", "--accept-distributed", "-"],
        &["validate", "--format", "telemetry-v2", "--repair", "-"],
        &["convert", "--from", "gpumon", "--to", "parquet", "--default-collector", "x", "-"],
    ] {
        assert_eq!(events(misused).code, Some(2), "{misused:?}");
    }
}

#[test]
fn people_get_file_line_and_record_of_each_fault_and_a_table() {
    let (_kept, folder) = folder();
    let good = event(json!({}));
    let bad = event(json!({ "pid": -2 }));
    write(&folder, "list.json", format!("[\n{good},\n{bad},\n5]"));
    write(&folder, "lines.ndjson.gz", gzip(format!("{good}\r\n\r\nnull\r\n").as_bytes()));
    write(&folder, "one.json", serde_json::to_string_pretty(&good).unwrap());
    write(&folder, "own.json", json!({ "events": 1, "mine": [good, good] }).to_string());
    write(&folder, "cut.json", format!("[{good},\n {}", &good.to_string()[..50]));
    let files = ["list.json", "lines.ndjson.gz", "one.json", "cut.json"];
    let arguments = ["validate", "--format", "telemetry-v2"];
    let ran = events_in(&folder, &[&arguments[..], &files].concat());
    let expected = "\
list.json:3: record 1: pid must be >= -1
list.json:4: record 2: Event at index 2 must be an object
lines.ndjson.gz:3: record 1: record must be a mapping
cut.json: line 2, column 52 (byte 503): the document ends here, but the string does not end
EVENTS  REFUSED  FORM    FILE
     1        2  list    list.json
     1        1  lines   lines.ndjson.gz
     1        0  record  one.json
     1        0  broken  cut.json
";
    assert_eq!((ran.out.as_str(), ran.code), (expected, Some(1)));
    let own = events_in(&folder, &[&arguments[..], &["--events-key", "mine", "own.json"]].concat());
    assert_eq!(
        (own.out.lines().last(), own.code),
        (Some("     2        0  object  own.json"), Some(0))
    );
    let missing = events_in(&folder, &[&arguments[..], &["no.json", "one.json"]].concat());
    assert_eq!((missing.out.lines().count(), missing.code), (2, Some(2)));
}

#[test]
fn a_file_that_is_no_json_is_named_with_its_position() {
    let deep = format!("[{}", "[".repeat(200));
    for (file, told) in [
        (&b""[..], "line 1, column 1"),
        (b"\xef\xbb\xbf[]", "byte 0: a UTF-8 byte order mark"),
        (b"[\n NaN]", "line 2, column 2 (byte 3)"),
        (b"[{\"a\": \xff}]", "line 1, column 8 (byte 7): the text is not UTF-8"),
        (deep.as_bytes(), "line 1, column 129"),
        (b"5", "Telemetry payload must be a JSON object or array"),
        (b"{\"events\": 1}", "JSON payload does not contain telemetry events"),
        (b"{\"events\": [],\n\"events\": []}", "comes twice"),
    ] {
        let ran = judged(&["--json"], file);
        let verdict = &ran.lines()[0];
        assert_eq!((ran.lines().len(), ran.code), (1, Some(1)));
        assert_eq!((&verdict["ok"], &verdict["event"]), (&json!(false), &Value::Null));
        assert!(verdict["error"].as_str().unwrap().contains(told), "{told}: {verdict}");
        assert!(ran.err.contains("standard input: "), "{}", ran.err);
    }
    let records = judged(&["--records", "--json"], b"\xef\xbb\xbf{}\n\n{\"timestamp\":1}\r\n");
    let verdicts: Vec<_> = records.lines().iter().map(|verdict| verdict["ok"].clone()).collect();
    assert_eq!(verdicts, [json!(false), json!(false), json!(true)]);
}

#[test]
fn of_a_key_that_comes_twice_the_last_value_counts() {
    let ran = judged(&["--json"], br#"{"timestamp": 1, "memory_mb": 1, "memory_mb": 2}"#);
    assert_eq!(ran.lines()[0]["event"]["allocator_allocated_bytes"], 2 << 20);
}

/// The most memory that the process has taken so far, bytes.
fn peak(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}

#[test]
fn a_list_that_is_larger_than_its_memory_is_streamed() {
    const RECORDS: usize = 150_000;
    let mut child = command(&["validate", "--format", "telemetry-v2", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let record = event(json!({})).to_string();
    let mut input = BufWriter::new(child.stdin.take().unwrap());
    let mut size = 0;
    for number in 0..RECORDS {
        let before = if number == 0 { "[" } else { "," };
        size += before.len() + record.len();
        write!(input, "{before}{record}").unwrap();
    }
    input.flush().unwrap();
    // It waits for the rest of the list and has read all but what a pipe holds.
    let peak = peak(child.id());
    input.write_all(b"]").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let last = format!("{RECORDS:>6}        0  list  standard input");
    assert_eq!((shown.lines().last(), output.status.code()), (Some(&*last), Some(0)));
    let peak = peak.expect("the process is there while its input is open");
    assert!(size > 60 << 20 && peak < 48 << 20, "{size} bytes took {peak}");
}

fn convert(folder: &Path, arguments: &[&str]) -> Ran {
    events_in(folder, &[&["convert"], arguments].concat())
}

#[test]
fn all_forms_become_records_a_line_and_legacy_ones_where_they_are_named() {
    let (_kept, folder) = folder();
    let events = [event(json!({})), out_of_memory()];
    let records = lines(&events);
    write(&folder, "list.json", json!(events).to_string());
    write(&folder, "object.json", json!({ "made": "x", "events": events }).to_string());
    write(&folder, "lines", &records);
    for file in ["list.json", "object.json", "lines"] {
        let ran = convert(&folder, &["--to", "telemetry-v2", file]);
        let read: Vec<Value> =
            ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((read.as_slice(), ran.code), (&events[..], Some(0)), "{file}: {}", ran.err);
    }
    let legacy = r#"{"timestamp": 1, "type": "allocation", "memory_allocated": 4}"#;
    write(&folder, "old.json", legacy);
    let told = convert(&folder, &["--to", "telemetry-v2", "old.json"]);
    assert_eq!(told.code, Some(2), "it looks like gpumon: {}", told.err);
    let named = convert(&folder, &["--from", "telemetry", "--to", "telemetry-v2", "old.json"]);
    assert_eq!(named.code, Some(0), "{}", named.err);
    assert_eq!(named.lines()[0]["event_type"], "allocation");
}

#[test]
fn what_cannot_be_read_is_named_and_left_out_only_when_asked() {
    let (_kept, folder) = folder();
    let log = lines(&[event(json!({})), event(json!({ "pid": -2 })), event(json!({ "pid": 8 }))]);
    write(&folder, "a.ndjson", log);
    let refused = convert(&folder, &["--to", "telemetry-v2", "-o", "b", "a.ndjson"]);
    assert_eq!(refused.code, Some(1));
    assert!(!folder.join("b").exists());
    let named =
        "a.ndjson:2: expected a telemetry record, found one that is refused: pid must be >= -1";
    assert!(refused.err.contains(named), "{}", refused.err);
    let lossy = convert(&folder, &["--to", "telemetry-v2", "--lossy", "-o", "b", "a.ndjson"]);
    assert_eq!(lossy.code, Some(0), "{}", lossy.err);
    assert_eq!(fs::read_to_string(folder.join("b")).unwrap().lines().count(), 2);
}

#[test]
fn a_table_holds_all_of_it_and_is_read_back_as_the_same_events() {
    let (_kept, folder) = folder();
    let events = [
        event(json!({ "allocator_active_bytes": 5, "device_total_bytes": null, "device_id": -1 })),
        event(json!({ "job_id": null, "rank": 1, "local_rank": 0, "world_size": 2 })),
        out_of_memory(),
    ];
    write(&folder, "a.ndjson", lines(&events));
    let to = ["--accept-distributed", "--to", "parquet", "-o", "tables", "a.ndjson"];
    let made = convert(&folder, &to);
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert!(folder.join("tables/telemetry/telemetry.parquet").is_file());
    for from in [&["tables"][..], &["--from", "parquet", "tables"]] {
        let back = convert(&folder, &[&["--to", "telemetry-v2"], from].concat());
        assert_eq!((back.lines(), back.code), (events.to_vec(), Some(0)), "{}", back.err);
    }
    let stat = events_in(&folder, &["stat", "tables"]);
    assert!(stat.code == Some(2) && stat.err.contains("is telemetry"), "{}", stat.err);
    // No number of a table has more than 64 bits.
    let log = event(json!({})).to_string().replace("\"pid\":7", "\"pid\":9223372036854775808");
    write(&folder, "large", log);
    let large = convert(&folder, &["--to", "parquet", "-o", "more", "large"]);
    assert_eq!(large.code, Some(1));
    assert!(large.err.contains("1  event with a number beyond 64 bits"), "{}", large.err);
}

#[test]
fn gpumon_holds_the_devices_memory_and_the_rest_is_named() {
    let (_kept, folder) = folder();
    let alone = event(json!({ "device_total_bytes": null, "event_type": "allocation" }));
    write(&folder, "a.ndjson", lines(&[event(json!({})), alone, out_of_memory()]));
    let refused = convert(&folder, &["--to", "gpumon", "a.ndjson"]);
    assert_eq!((refused.out.as_str(), refused.code), ("", Some(1)));
    for loss in [
        "3  allocator_allocated_bytes, allocator_reserved_bytes, allocator_change_bytes",
        "1  device_used_bytes without device, free and total",
        "3  host",
        "1  metadata",
        "3  sampling_interval_ms",
    ] {
        assert!(refused.err.contains(loss), "{loss}: {}", refused.err);
    }
    let lossy = convert(&folder, &["--to", "gpumon", "--lossy", "-o", "out.log", "a.ndjson"]);
    assert_eq!(lossy.code, Some(0), "{}", lossy.err);
    let log = fs::read_to_string(folder.join("out.log")).unwrap();
    assert_eq!(
        log.lines().collect::<Vec<_>>(),
        [
            r#"{"type":"scope_sample","pid":7,"app":"gpumemprof.cuda_tracker","name":"sample","ts_ns":1700000000000000000,"memory":[{"device":0,"used_mib":3,"free_mib":5,"total_mib":8}]}"#,
            r#"{"type":"scope_sample","pid":7,"app":"gpumemprof.cuda_tracker","name":"allocation","ts_ns":1700000000000000000}"#,
            r#"{"type":"scope_sample","pid":7,"app":"gpumemprof.cuda_tracker","name":"error","tag":"step 7","ts_ns":1700000000200000000,"memory":[{"device":0,"used_mib":3,"free_mib":5,"total_mib":8}]}"#,
        ]
    );
    let valid = events_in(&folder, &["validate", "--format", "gpumon", "--strict", "out.log"]);
    assert_eq!(valid.code, Some(0), "{}", valid.out);
}

/// The records of a trace with that phase.
fn of_phase<'t>(trace: &'t Value, phase: &str) -> Vec<&'t Value> {
    let records = trace["traceEvents"].as_array().unwrap();
    records.iter().filter(|record| record["ph"] == phase).collect()
}

#[test]
fn a_trace_has_counters_for_each_process_and_device_and_instants_for_what_happened() {
    let (_kept, folder) = folder();
    let other = event(json!({ "pid": 8, "device_id": 1, "device_free_bytes": null }));
    write(&folder, "a.ndjson", lines(&[event(json!({})), other, out_of_memory()]));
    let ran = convert(&folder, &["--to", "kineto", "a.ndjson"]);
    assert_eq!(ran.code, Some(0), "nothing is lost: {}", ran.err);
    let trace = ran.json();
    let counters: Vec<_> = of_phase(&trace, "C")
        .iter()
        .map(|counter| format!("{} {} {}", counter["pid"], counter["name"], counter["args"]))
        .collect();
    let of_7 = [
        r#"7 "GPU 0 allocator [By]" {"allocated":1048576,"reserved":2097152}"#,
        r#"7 "GPU 0 allocator change [By]" {"change":0}"#,
        r#"7 "GPU 0 memory [By]" {"free":5242880,"used":3145728}"#,
        r#"7 "GPU 0 memory total [By]" {"total":8388608}"#,
    ];
    assert_eq!(counters[..4], of_7);
    assert_eq!(counters[6], r#"8 "GPU 1 memory [By]" {"used":3145728}"#);
    assert_eq!(counters[8..], of_7);
    let instants = of_phase(&trace, "i");
    assert_eq!(instants.len(), 1);
    let instant = instants[0];
    assert_eq!(
        (&instant["name"], &instant["cat"], &instant["s"], &instant["pid"]),
        (&json!("out of memory"), &json!("out_of_memory"), &json!("p"), &json!(7))
    );
    assert_eq!(instant["args"]["context"], "step 7");
    assert_eq!(instant["args"]["metadata"]["oom_reason"], "CUDA out of memory");
    let labels: Vec<_> = of_phase(&trace, "M")
        .iter()
        .filter(|label| label["name"] == "process_labels")
        .map(|label| label["args"]["labels"].clone())
        .collect();
    assert_eq!(
        labels,
        [json!("host a, pid 7, every 100 ms"), json!("host a, pid 8, every 100 ms")]
    );
}

#[test]
fn chrome_and_perfetto_hold_units_and_devices_and_filters_work_on_them() {
    let (_kept, folder) = folder();
    let other = event(json!({ "pid": 8, "device_id": 1 }));
    write(&folder, "a.ndjson", lines(&[event(json!({})), other, out_of_memory()]));
    let ran = convert(&folder, &["--to", "chrome", "a.ndjson"]);
    assert_eq!(ran.code, Some(0), "nothing is lost: {}", ran.err);
    let trace = ran.json();
    let counter = of_phase(&trace, "C")[0];
    assert_eq!((&counter["unit"], &counter["device"]), (&json!("By"), &json!(0)));
    let filtered = convert(&folder, &["--to", "chrome", "--device", "1", "a.ndjson"]).json();
    let counters = of_phase(&filtered, "C");
    assert!(counters.len() == 4 && counters.iter().all(|counter| counter["device"] == 1));
    let perfetto = convert(&folder, &["--to", "perfetto", "-o", "out.pftrace", "a.ndjson"]);
    assert_eq!(perfetto.code, Some(0), "nothing is lost: {}", perfetto.err);
    assert!(fs::metadata(folder.join("out.pftrace")).unwrap().len() > 100);
}

#[test]
fn telemetry_is_neither_summed_up_nor_made_of_something_else() {
    let (_kept, folder) = folder();
    write(&folder, "a.ndjson", lines(&[event(json!({}))]));
    write(&folder, "b.log", event_logs::scopes_of_gpumon());
    for (arguments, told) in [
        (&["stat", "a.ndjson"][..], "a.ndjson is telemetry"),
        (&["convert", "--to", "gpu-flight", "-o", "x", "a.ndjson"], "cannot become gpu-flight"),
        (&["convert", "--to", "telemetry-v2", "b.log"], "gpumon tells no telemetry"),
        (&["convert", "--to", "telemetry-v2", "a.ndjson", "b.log"], "b.log is gpumon"),
    ] {
        let ran = events_in(&folder, arguments);
        assert!(ran.code == Some(2) && ran.err.contains(told), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn following_shows_what_an_event_has_a_place_for() {
    let (_kept, folder) = folder();
    write(
        &folder,
        "run.log",
        lines(&[event(json!({})), event(json!({ "pid": -2 })), out_of_memory()]),
    );
    let arguments = ["follow", "--from-start", "--for", "0.3", "--json", "run.log"];
    let told = events_in(&folder, &arguments);
    let named = events_in(&folder, &[&arguments[..], &["--format", "telemetry-v2"]].concat());
    for ran in [told, named] {
        let names: Vec<_> = ran.lines().iter().map(|event| event["name"].clone()).collect();
        assert_eq!(names, ["sample", "error"]);
        assert_eq!(ran.lines()[0]["devices"][0]["used_mib"], 3);
        assert!(ran.err.contains("run.log:2: expected a telemetry record"), "{}", ran.err);
    }
}
