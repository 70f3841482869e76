//! `warpgauge events convert` on traces: every target, what it refuses to lose, and broken traces.

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
#[path = "support/traces.rs"]
#[allow(dead_code, reason = "not every test file needs all of it")]
mod traces;

use std::fs;
use std::path::Path;

use event_logs::{
    Ran, events_in, events_with_input, fat_session, fixture, folder, gzip, kernels_of_gpumon,
    names, scopes_of_gpumon, write,
};
use serde_json::json;
use traces::{document, events_of, names_of, rank_trace, read, slice};

fn convert(folder: &Path, arguments: &[&str]) -> Ran {
    events_in(folder, &[&["convert"], arguments].concat())
}

/// Converts, and expects that it can.
fn converted(folder: &Path, arguments: &[&str]) -> Ran {
    let ran = convert(folder, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    ran
}

#[test]
fn a_trace_of_pytorch_comes_back_equal_by_every_way() {
    let (_kept, folder) = folder();
    for origin in ["torch_cpu_plain.json", "mi250_minitoy_train_ROCm6_2_kineto.json.gz"] {
        let origin = fixture(&format!("kineto/{origin}"));
        converted(&folder, &["--to", "kineto", "--force", "-o", "expected.json", &origin]);
        let expected = read(&folder.join("expected.json"));
        for (to, out) in [("kineto", "a.json.gz"), ("chrome", "a.json.zst"), ("chrome", "b.json")] {
            converted(&folder, &["--to", to, "--force", "-o", out, &origin]);
            converted(&folder, &["--to", "kineto", "--force", "-o", "back.json", out]);
            let back = read(&folder.join("back.json"));
            assert_eq!(events_of(&back), events_of(&expected), "{to}: {origin}");
            assert_eq!(back["baseTimeNanoseconds"], expected["baseTimeNanoseconds"]);
            assert_eq!(back["deviceProperties"], expected["deviceProperties"]);
        }
    }
}

#[test]
fn perfetto_is_written_and_not_read() {
    let (_kept, folder) = folder();
    let origin = fixture("kineto/torch_cpu_plain.json");
    // Nothing of it is lost, so that nobody has to agree.
    converted(&folder, &["--to", "perfetto", "-o", "a.pftrace", &origin]);
    for arguments in [&["--to", "kineto", "a.pftrace"][..], &["--to", "gpumon", "a.pftrace"]] {
        let ran = convert(&folder, arguments);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("a.pftrace is a trace"), "{}", ran.err);
    }
}

#[test]
fn a_trace_becomes_no_event_log_and_the_message_says_what_it_can_become() {
    let (_kept, folder) = folder();
    let origin = fixture("kineto/torch_cpu_plain.json");
    for to in ["gpumon", "gpu-flight", "parquet"] {
        let ran = convert(&folder, &["--to", to, "-o", "out", &origin]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(
            ran.err.contains("it can become kineto, chrome or perfetto, and no event log"),
            "{}",
            ran.err
        );
    }
    let ran = convert(&folder, &["--to", "gpumon", "--merge", &origin]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("--merge works on traces"), "{}", ran.err);
    assert_eq!(names(&folder), [""; 0]);
}

#[test]
fn event_logs_are_drawn_as_traces() {
    let (_kept, folder) = folder();
    write(&folder, "scopes.log", scopes_of_gpumon());
    write(&folder, "kernels.log", kernels_of_gpumon());
    write(&folder, "fat.log", fat_session(20));
    converted(&folder, &["--to", "parquet", "-o", "tables", "fat.log"]);
    converted(&folder, &["--to", "gpu-flight", "--lossy", "-o", "small", "fat.log"]);
    let small = ["small.device.log", "small.scope.log", "small.system.log"];
    for (files, slices) in [
        (&["scopes.log"][..], 6),
        (&["kernels.log"], 2),
        (&["fat.log"], 21),
        (&["tables"], 21),
        (&small, 21),
    ] {
        for to in ["chrome", "kineto", "perfetto"] {
            let arguments = [&["--to", to, "--lossy", "--force", "-o", "out"], files].concat();
            converted(&folder, &arguments);
            if to != "perfetto" {
                let names = names_of(&read(&folder.join("out")), "X");
                let drawn = names.iter().filter(|name| !name.contains("Launch"));
                assert_eq!(drawn.count(), slices, "{files:?} into {to}: {names:?}");
            }
        }
    }
}

#[test]
fn what_a_form_cannot_hold_is_refused_unless_told() {
    let (_kept, folder) = folder();
    let origin = fixture("gpumon/stress.scope.log");
    let ran = convert(&folder, &["--to", "kineto", "-o", "out.json", &origin]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("counter.unit"), "{}", ran.err);
    assert_eq!(names(&folder), [""; 0]);
    let ran =
        converted(&folder, &["--to", "kineto", "--lossy", "--json", "-o", "out.json", &origin]);
    assert!(ran.json()["losses"].as_array().unwrap().iter().any(|l| l["what"] == "counter.unit"));
    converted(&folder, &["--to", "chrome", "-o", "out.chrome.json", &origin]);
}

#[test]
fn a_log_that_cannot_be_read_in_full_would_lose_something_as_a_trace() {
    let (_kept, folder) = folder();
    let torn = scopes_of_gpumon() + "{\"type\":\"shutdown\",\"pid\":";
    write(&folder, "torn.log", torn);
    let ran = convert(&folder, &["--to", "chrome", "-o", "out", "torn.log"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("torn.log:15: "), "{}", ran.err);
    assert!(ran.err.contains("what could not be read"), "{}", ran.err);
    assert_eq!(names(&folder), ["torn.log"]);
}

#[test]
fn standard_input_and_output_hold_traces_too() {
    let (_kept, folder) = folder();
    let packed = gzip(rank_trace(0, 1_000, 3).as_bytes());
    let ran = events_with_input(&["convert", "--to", "kineto", "-"], &packed);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(names_of(&ran.json(), "X").len(), 9);
    // Filters read it twice.
    let arguments = ["convert", "--to", "kineto", "--window", "0ns..50us", "-"];
    let ran = events_with_input(&arguments, &packed);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(names_of(&ran.json(), "X").len(), 3);
    let ran = events_with_input(&arguments, &packed[..packed.len() / 2]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.contains("standard input:"), "{}", ran.err);
    let ran = events_with_input(
        &["convert", "--to", "chrome", "--name", "step", "-"],
        scopes_of_gpumon().as_bytes(),
    );
    assert_eq!(names_of(&ran.json(), "X"), ["step"; 3], "{ran:?}");
    assert_eq!(names(&folder), [""; 0]);
}

#[test]
fn the_known_fault_is_mended_when_asked_and_counted() {
    let (_kept, folder) = folder();
    let origin = fixture("kineto/invalid_unescaped_metadata.json");
    let ran = convert(&folder, &["--to", "kineto", "-o", "out.json", &origin]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("invalid_unescaped_metadata.json:12:22: "), "{}", ran.err);
    assert!(ran.err.contains("--repair mends it (byte 333)"), "{}", ran.err);
    assert_eq!(names(&folder), [""; 0]);
    let ran = converted(&folder, &["--to", "kineto", "--repair", "-o", "out.json", &origin]);
    assert!(ran.err.contains("2 quotes mended"), "{}", ran.err);
    let out = read(&folder.join("out.json"));
    assert_eq!(out["note"], json!("say \"hi\""));
    assert!(events_of(&out).len() > 400);
}

#[test]
fn a_torn_trace_is_refused_and_converted_as_far_as_it_goes_when_told() {
    let (_kept, folder) = folder();
    let whole = rank_trace(0, 1_000, 50);
    write(&folder, "torn.json", &whole[..whole.len() / 2]);
    let packed = gzip(whole.as_bytes());
    write(&folder, "torn.json.gz", &packed[..packed.len() / 2]);
    for (torn, words) in [
        ("torn.json", "the document ends here, but "),
        ("torn.json.gz", "expected the rest of the gzip stream, found "),
    ] {
        let ran = convert(&folder, &["--to", "kineto", "-o", "out.json", torn]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(&format!("{torn}:")), "{}", ran.err);
        assert!(ran.err.contains(words) && ran.err.contains("(byte "), "{}", ran.err);
        assert!(!folder.join("out.json").exists());
        converted(&folder, &["--to", "kineto", "--lossy", "--force", "-o", "half.json", torn]);
        let kernels = names_of(&read(&folder.join("half.json")), "X").len();
        assert!((1..150).contains(&kernels), "{kernels}");
    }
}

#[test]
fn an_empty_trace_is_a_trace_and_an_empty_file_is_none() {
    let (_kept, folder) = folder();
    for (name, trace) in [("a.json", "{\"traceEvents\":[]}"), ("b.json", "[]")] {
        write(&folder, name, trace);
        for to in ["kineto", "chrome", "perfetto"] {
            converted(&folder, &["--to", to, "--force", "-o", "out", name]);
        }
        converted(&folder, &["--to", "kineto", "--force", "--window", "1us..2us", "-o", "o", name]);
        assert_eq!(read(&folder.join("o"))["traceEvents"], json!([]));
    }
    write(&folder, "nothing.json", "");
    let ran = convert(&folder, &["--to", "kineto", "nothing.json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("cannot tell the format"), "{}", ran.err);
    let ran = convert(&folder, &["--from", "kineto", "--to", "kineto", "nothing.json"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.err.contains("nothing.json:1:1: "), "{}", ran.err);
}

#[test]
fn hostile_names_and_ids_come_through() {
    let (_kept, folder) = folder();
    let long = "x".repeat(100_000);
    let names = ["quote \" and \\ and /", "tab\t nul\u{0} bell\u{7}", "\u{202e}ünï", &long];
    let mut events: Vec<_> = (0..)
        .zip(names)
        .map(|(at, name)| slice(("cpu_op", name), (1, 2), (at * 10, 5), &json!({})))
        .collect();
    events.push(
        r#"{"ph":"X","cat":"Trace","name":"span","pid":"Spans","tid":"a \"b\"","ts":1.000,"dur":-0.001,"args":{}}"#
            .to_owned(),
    );
    write(&folder, "a.json", document("", &events, ",\"baseTimeNanoseconds\":5"));
    for to in ["kineto", "chrome"] {
        converted(&folder, &["--to", to, "--force", "-o", "out.json", "a.json"]);
        converted(&folder, &["--to", "kineto", "--force", "-o", "back.json", "out.json"]);
        let back = read(&folder.join("back.json"));
        assert_eq!(events_of(&back), events_of(&read(&folder.join("a.json"))), "{to}");
        assert_eq!(back["baseTimeNanoseconds"], json!(5));
    }
    // Every filter takes them, too.
    let only = ["--thread", "a \"b\"", "--to", "kineto", "--force", "-o", "out.json", "a.json"];
    converted(&folder, &only);
    assert_eq!(names_of(&read(&folder.join("out.json")), "X"), ["span"]);
}

#[test]
fn nothing_is_replaced_unless_told_and_several_traces_want_a_word() {
    let (_kept, folder) = folder();
    write(&folder, "a.json", rank_trace(0, 1_000, 2));
    let arguments = ["--to", "kineto", "-o", "a.json", "a.json"];
    let ran = convert(&folder, &arguments);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("--force replaces it"), "{}", ran.err);
    converted(&folder, &[&arguments[..], &["--force"]].concat());
    let ran = convert(&folder, &["--to", "kineto", "-o", "b.json", "a.json", "a.json"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("several traces: --merge makes one of them"), "{}", ran.err);
    write(&folder, "c.log", scopes_of_gpumon());
    let ran = convert(&folder, &["--to", "kineto", "--merge", "-o", "b.json", "a.json", "c.log"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("c.log is gpumon"), "{}", ran.err);
    assert_eq!(names(&folder), ["a.json", "c.log"]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
}
