//! `warpgauge events stat`: what a log holds.

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

use event_logs::{
    Ran, events, events_in, events_with_input, fat_session, fixture, folder, gzip,
    kernels_of_gpumon, scopes_of_gpumon, write,
};
use serde_json::json;

fn stat(arguments: &[&str]) -> Ran {
    events(&[&["stat"], arguments].concat())
}

#[test]
fn people_get_the_sums_as_tables() {
    let (_kept, folder) = folder();
    write(&folder, "train.log", fat_session(5));
    let ran = events_in(&folder, &["stat", "--top", "2", "train.log"]);
    let expected = "\
2023-11-14T22:13:20.000000000Z to 2023-11-14T22:13:20.900000000Z, 900.000 ms

EVENTS  PID  LENGTH      APP      SESSION
     9    7  900.000 ms  trainer  s/1

COUNT  EVENT
    1  copy
    1  end
    5  kernel
    1  start
    1  system_sample

DEVICE    SPAN     BUSY  COMPUTE  COMM  HIDDEN   MEMORY  WAITING    IDLE  NAME
     0  411 ns   13.1 %   13.1 %     -       -    0.0 %    0.0 %  86.9 %  trainer
     -  100 ns  100.0 %    0.0 %     -       -  100.0 %    0.0 %   0.0 %  trainer

DEVICE  STREAM  PIECES    BUSY    SHARE  HOST WAIT  KERNEL WAIT    OTHER WAIT
     0       3       5   54 ns   13.1 %       0 ns       357 ns          0 ns
     -    work       1  100 ns  100.0 %       0 ns         0 ns          0 ns

 TIME   SHARE  LAUNCHES   MEAN  LONGEST  KERNEL
22 ns  40.7 %         2  11 ns    11 ns  kernel_1
20 ns  37.0 %         2  10 ns    10 ns  kernel_0
and 1 more kernel

  BYTES  COPIES    TIME        RATE  COPY
4.0 KiB       1  100 ns  38.1 GiB/s  HtoD

DEVICE  PEAK MEMORY     OF  AT                              SAMPLES  NAME
     0        5 MiB  8 MiB  2023-11-14T22:13:20.000000700Z        1  -
";
    assert_eq!((ran.out.as_str(), ran.code), (expected, Some(0)), "{ran:?}");
}

#[test]
fn scopes_stand_within_those_that_were_open_around_them() {
    let ran = events_with_input(&["stat", "-"], scopes_of_gpumon().as_bytes());
    let expected = "
  TIME  COUNT  SCOPE
270 ns      3  step
 60 ns      3    load
";
    assert!(ran.out.ends_with(expected), "{}", ran.out);
}

#[test]
fn machines_get_whole_numbers() {
    let (_kept, folder) = folder();
    let path = write(&folder, "a.log", kernels_of_gpumon());
    let ran = stat(&["--json", &path]);
    let told = ran.json();
    assert_eq!(ran.code, Some(0));
    assert_eq!(told["format"], "gpumon");
    assert_eq!(told["events"], json!({ "kernel": 2, "scope_begin": 1, "scope_sample": 1 }));
    let kernel =
        json!({ "name": "gemm<int>", "launches": 2, "time_ns": 10, "mean_ns": 5, "longest_ns": 5 });
    assert_eq!(told["kernels"], json!([kernel]));
    assert_eq!((&told["first_ns"], &told["last_ns"]), (&json!(1), &json!(45)));
    assert_eq!(told["is_wall_clock"], false);
    assert!(told["remarks"][0].as_str().unwrap().contains("ns makes them Unix time"));
    let device = &told["devices"][0];
    assert_eq!((&device["peak_used_mib"], &device["peak_at_ns"]), (&json!(6), &json!(30)));
    let open = &told["scopes"][0];
    assert_eq!((&open["count"], &open["ended"]), (&json!(1), &json!(0)));
}

#[test]
fn every_form_of_a_log_has_the_same_sums() {
    let (_kept, folder) = folder();
    let log = fat_session(700).replace(r#""device_id":0,"#, "");
    write(&folder, "train.log.gz", gzip(log.as_bytes()));
    for (to, out) in [("gpu-flight", "small"), ("gpu-flight-fat", "fat"), ("parquet", "tables")] {
        let ran = events_in(&folder, &["convert", "--to", to, "-o", out, "train.log.gz"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let sums = |files: &[&str]| {
        let ran = events_in(&folder, &[&["stat", "--json"], files].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let told = ran.json();
        ["kernels", "all_kernels", "copies", "devices", "scopes", "first_ns", "last_ns"]
            .map(|key| told[key].clone())
    };
    let expected = sums(&["train.log.gz"]);
    assert_eq!(expected[1]["launches"], 700);
    assert_eq!(sums(&["small.system.log", "small.scope.log", "small.device.log"]), expected);
    assert_eq!(sums(&["fat.device.log", "fat.scope.log", "fat.system.log"]), expected);
    assert_eq!(sums(&["tables"]), expected);
}

#[test]
fn what_was_not_read_is_said_and_is_a_finding() {
    let (_kept, folder) = folder();
    let path =
        write(&folder, "a.log", scopes_of_gpumon() + "{\"type\":\"kernel\",\"pid\":7}\ntorn");
    let ran = stat(&[&path]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("a.log:15: "), "{}", ran.out);
    assert!(ran.out.contains("`warpgauge events validate` shows all"), "{}", ran.out);
    assert_eq!(stat(&[&path, "--json"]).code, Some(1));
}

#[test]
fn the_channels_of_a_session_begin_it_once() {
    let names = ["kernel", "scope", "system"]
        .map(|channel| fixture(&format!("gpumon/gpufl_basic.{channel}.0.log")));
    let ran = stat(&["--json", &names[0], &names[1], &names[2]]);
    let told = ran.json();
    assert_eq!(told["devices"][0]["total_mib"], 8151);
    // Two of the files have one app's name, the third another.
    assert_eq!((&told["events"]["start"], &told["events"]["end"]), (&json!(2), &json!(2)));
}

#[test]
fn an_empty_log_has_no_events_and_an_unclear_one_is_asked_about() {
    let (_kept, folder) = folder();
    let empty = write(&folder, "empty.log", "");
    let ran = stat(&[&empty]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "no events\n"));
    let unclear = write(&folder, "unclear.log", "hello\n");
    let ran = stat(&[&unclear]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("cannot tell the format by its first lines"), "{}", ran.err);
    let log = write(&folder, "a.log", scopes_of_gpumon());
    assert_eq!(stat(&[&empty, &log]).code, Some(0), "an empty file decides nothing");
    let own = folder.to_str().unwrap();
    let ran = stat(&[own]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("holds no Parquet tables"), "{}", ran.err);
}

#[test]
fn names_in_a_log_cannot_write_to_the_terminal() {
    let log = kernels_of_gpumon().replace("gemm", "\\u001b[2Jgemm").replace("step", "\\u009b1m");
    let ran = events_with_input(&["stat", "-"], log.as_bytes());
    assert!(
        !ran.out.contains(|letter: char| letter.is_control() && letter != '\n'),
        "{:?}",
        ran.out
    );
    assert!(ran.out.contains(r"\u{1b}[2Jgemm"), "{}", ran.out);
}

/// 300,000 names are more than are kept apart: the rest is counted together, and nothing is missing
/// from the sums.
#[test]
fn more_kernels_than_are_kept_apart_are_counted_together() {
    let (_kept, folder) = folder();
    let mut log = String::new();
    for number in 0..300_000 {
        log += &format!(
            "{{\"type\":\"kernel_event\",\"session_id\":\"s\",\"name\":\"k{number}\",\"start_ns\":1700000000000000000,\"end_ns\":1700000000000000001}}\n"
        );
    }
    let path = write(&folder, "many.log.gz", gzip(log.as_bytes()));
    let told = stat(&["--json", "--top", "1", &path]).json();
    assert_eq!(told["all_kernels"]["launches"], 300_000);
    let apart = told["kernel_names"].as_u64().unwrap();
    assert_eq!(apart, 262_144);
    assert_eq!(told["kernels_beyond_the_limit"]["launches"], 300_000 - apart);
}

#[test]
fn calls_tell_how_long_work_waited_to_start() {
    let (_kept, folder) = folder();
    let kernel = |start: i64, correlation: i64| {
        format!(
            r#"{{"type":"kernel_event","pid":7,"app":"trainer","session_id":"s/1","name":"gemm","device_id":0,"stream_id":3,"start_ns":{start},"end_ns":{},"api_start_ns":{},"api_exit_ns":{},"corr_id":{correlation}}}"#,
            start + 100,
            start - 60,
            start - 40
        ) + "\n"
    };
    let at = 1_700_000_000_000_000_000;
    let path = write(&folder, "train.log", kernel(at, 1) + &kernel(at + 400, 2));
    let told = stat(&["--json", &path]).json();
    let device = &told["work"][0];
    assert_eq!((&device["busy_ns"], &device["idle_ns"]), (&json!(200), &json!(300)));
    let delays = &device["launch_to_start"];
    assert_eq!(
        (&delays["from_call"]["count"], &delays["from_call"]["min_ns"]),
        (&json!(2), &json!(60))
    );
    assert_eq!(
        (&delays["from_return"]["max_ns"], &delays["without_call"]),
        (&json!(40), &json!(0))
    );
    assert_eq!(device["streams"][0]["host_wait_ns"], 300);
    let shown = stat(&[&path]).out;
    assert!(shown.contains("CALL P50"), "{shown}");
}
