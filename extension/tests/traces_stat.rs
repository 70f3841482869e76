//! `warpgauge events stat` on traces.

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

use event_logs::{Ran, events, events_in, events_with_input, fixture, folder, gzip, write};
use serde_json::{Value, json};

fn stat(arguments: &[&str]) -> Ran {
    events(&[&["stat"], arguments].concat())
}

fn slice(category: &str, name: &str, place: [i64; 2], times: [f64; 2], args: Value) -> Value {
    let ([pid, tid], [ts, dur]) = (place, times);
    json!({ "ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args })
}

/// A step of a rank: a copy, a kernel, and a collective operation that is half hidden behind it.
fn rank(rank: i64) -> String {
    let on = |stream: i64, correlation: i64| json!({ "device": 0, "stream": stream, "correlation": correlation, "bytes": 2_000 });
    let call = |correlation: i64| json!({ "correlation": correlation });
    let memory = json!({ "Bytes": 512, "Total Allocated": 1_024, "Total Reserved": 4_096, "Device Type": 1, "Device Id": 0 });
    let collective = 40.0 - 10.0 * rank as f64;
    let events = json!([
        { "ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": { "name": "python" } },
        slice("cuda_runtime", "cudaMemcpyAsync", [900, 1], [0.0, 2.0], call(1)),
        slice("cuda_runtime", "cudaLaunchKernel", [900, 1], [3.0, 2.0], call(2)),
        slice("cuda_runtime", "cudaLaunchKernel", [900, 1], [6.0, 2.0], call(3)),
        slice("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", [0, 7], [10.0, 10.0], on(7, 1)),
        slice("kernel", "gemm", [0, 7], [20.0, 40.0], on(7, 2)),
        slice("kernel", "ncclDevKernel_AllReduce", [0, 20], [40.0, collective], on(20, 3)),
        { "ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 900, "tid": 1, "ts": 5.0, "args": memory },
        { "ph": "C", "name": "power", "pid": 0, "ts": 7.0, "args": { "W": 71.5 } },
    ]);
    json!({
        "schemaVersion": 1,
        "distributedInfo": { "backend": "nccl", "rank": rank, "world_size": 2 },
        "deviceProperties": [{ "id": 0, "name": "NVIDIA H200" }],
        "traceEvents": events,
        "baseTimeNanoseconds": 1_700_000_000_000_000_000_i64,
    })
    .to_string()
}

#[test]
fn people_get_a_row_for_each_rank() {
    let (_kept, folder) = folder();
    write(&folder, "rank0.json", rank(0));
    write(&folder, "rank1.json.gz", gzip(rank(1).as_bytes()));
    let ran = events_in(&folder, &["stat", "--top", "1", "rank0.json", "rank1.json.gz"]);
    let expected = "RANK     LENGTH  FROM                            TO                              TRACE
   0  80.000 us  2023-11-14T22:13:20.000000000Z  2023-11-14T22:13:20.000080000Z  rank0.json
   1  70.000 us  2023-11-14T22:13:20.000000000Z  2023-11-14T22:13:20.000070000Z  rank1.json.gz

COUNT  CATEGORY
    2  (counter)
    2  (label)
    2  (memory)
    6  cuda_runtime
    2  gpu_memcpy
    4  kernel

RANK  DEVICE       SPAN     BUSY  COMPUTE    COMM  HIDDEN  MEMORY  WAITING   IDLE  NAME
   0       0  70.000 us  100.0 %   57.1 %  57.1 %  50.0 %  14.3 %    0.0 %  0.0 %  NVIDIA H200
   1       0  60.000 us  100.0 %   66.7 %  50.0 %  66.7 %  16.7 %    0.0 %  0.0 %  NVIDIA H200

RANK  DEVICE  STREAM  PIECES       BUSY   SHARE  HOST WAIT  KERNEL WAIT    OTHER WAIT
   0       0       7       2  50.000 us  71.4 %       0 ns         0 ns          0 ns
   1       0       7       2  50.000 us  83.3 %       0 ns         0 ns          0 ns
and 2 more streams

     TIME   SHARE  COUNT       MEAN   SHORTEST    LONGEST  KERNEL
80.000 us  53.3 %      2  40.000 us  40.000 us  40.000 us  gemm
70.000 us  46.7 %      2  35.000 us  30.000 us  40.000 us  (other)

  BYTES  COUNT       TIME        RATE    TOGETHER  COPY
3.9 KiB      2  20.000 us  0.200 GB/s  0.200 GB/s  Memcpy HtoD (Pinned -> Device)

RANK  DEVICE  LAUNCHES   CALL P50   CALL P90   CALL P99   CALL MAX  RETURN P50  RETURN P99  WITHOUT CALL
   0       0         3  16.960 us  33.920 us  33.920 us  34.000 us   15.008 us   32.000 us             0
   1       0         3  16.960 us  33.920 us  33.920 us  34.000 us   15.008 us   32.000 us             0

RANK  DEVICE  PEAK ALLOCATED  AT                              PEAK RESERVED  ALLOCATIONS         FREES
   0       0         1.0 KiB  2023-11-14T22:13:20.000005000Z        4.0 KiB            1             0
   1       0         1.0 KiB  2023-11-14T22:13:20.000005000Z        4.0 KiB            1             0

RANK  PROCESS  VALUES  LOWEST  HIGHEST  UNIT  COUNTER
   0        0       1    71.5     71.5  -     power: W
and 1 more counter
";
    assert_eq!(ran.out, expected);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn machines_get_whole_nanoseconds() {
    let ran = events_with_input(&["stat", "--json", "-"], rank(0).as_bytes());
    let told = ran.json();
    assert_eq!(ran.code, Some(0));
    let trace = &told["traces"][0];
    assert_eq!((&trace["rank"], &trace["world_size"]), (&json!(0), &json!(2)));
    let device = &trace["devices"][0];
    let communication =
        json!({ "time_ns": 40_000, "hidden_ns": 20_000, "exposed_ns": 20_000, "from": "kernels" });
    assert_eq!(device["communication"], communication);
    for (key, nanoseconds) in [
        ("span_ns", 70_000),
        ("busy_ns", 70_000),
        ("compute_ns", 40_000),
        ("non_compute_ns", 30_000),
        ("idle_ns", 0),
    ] {
        assert_eq!(device[key], nanoseconds, "{key}");
    }
    let delays = &device["launch_to_start"]["from_call"];
    assert_eq!((&delays["min_ns"], &delays["max_ns"]), (&json!(10_000), &json!(34_000)));
    assert_eq!(told["copies"][0]["gigabytes_per_second"], 0.2);
    assert_eq!(trace["memory"][0]["peak_allocated_bytes"], 1_024);
}

#[test]
fn a_trace_that_breaks_off_gives_the_sums_of_what_it_has_and_says_where_it_ends() {
    let (_kept, folder) = folder();
    let whole = rank(0);
    let torn = &whole[..whole.find("[memory]").unwrap()];
    let path = write(&folder, "torn.json", torn);
    let ran = stat(&[&path]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("gemm"), "{}", ran.out);
    let said = format!("{path}:1:");
    let line = ran.out.lines().find(|line| line.starts_with(&said)).unwrap();
    assert!(line.ends_with("the sums are those of what stands before"), "{line}");
    let packed = gzip(whole.as_bytes());
    let path = write(&folder, "torn.json.gz", &packed[..packed.len() / 2]);
    let ran = stat(&["--json", &path]);
    assert_eq!(ran.code, Some(1));
    let fault = ran.json()["faults"][0].as_str().unwrap().to_owned();
    assert!(fault.contains("the rest of the gzip stream"), "{fault}");
}

#[test]
fn an_empty_trace_has_no_events() {
    let ran = events_with_input(&["stat", "-"], b"{\"traceEvents\":[]}");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "no events\n"));
}

#[test]
fn quotes_can_be_mended_on_the_way() {
    let path = fixture("kineto/invalid_unescaped_metadata.json");
    let ran = stat(&[&path]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("--repair mends it"), "{}", ran.out);
    let ran = stat(&["--repair", &path]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.ends_with("2 quotes were mended\n"), "{}", ran.out);
}

#[test]
fn a_log_among_traces_is_refused_by_name() {
    let (_kept, folder) = folder();
    let trace = write(&folder, "a.json", rank(0));
    let log = write(&folder, "b.log", event_logs::kernels_of_gpumon());
    let ran = stat(&[&trace, &log]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    let said = format!("warpgauge: {log} is gpumon, not kineto; give logs of one format\n");
    assert_eq!(ran.err, said);
}

#[test]
fn a_wait_is_no_work_and_no_idle_time() {
    let told = stat(&["--json", &fixture("kineto/event_sync_trace.json.gz")]).json();
    let device = &told["traces"][0]["devices"][0];
    let times =
        ["busy_ns", "waiting_ns", "idle_ns", "span_ns"].map(|key| device[key].as_i64().unwrap());
    assert_eq!(times, [51_000, 5_000, 207_000, 263_000]);
}

#[test]
fn names_cannot_reach_the_terminal() {
    let event = slice("kernel", "\u{1b}[2Jgemm", [0, 7], [1.0, 1.0], json!({ "stream": 7 }));
    let trace = json!({ "traceEvents": [event] }).to_string();
    let ran = events_with_input(&["stat", "-"], trace.as_bytes());
    assert!(ran.out.contains(r"\u{1b}[2Jgemm") && !ran.out.contains('\u{1b}'), "{}", ran.out);
}

#[test]
fn broken_records_are_counted_and_the_first_is_shown() {
    let trace = r#"{"traceEvents":[{"ph":"X","name":"a","pid":0,"tid":0,"ts":1},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":1,"dur":-5,"args":{"stream":7}}]}"#;
    let ran = events_with_input(&["stat", "-"], trace.as_bytes());
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.out.contains("1 thing could not be read, the first: standard input:1: dur"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("1 thing cannot be right"), "{}", ran.out);
}
