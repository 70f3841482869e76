//! Filters on the way of a trace: what is kept, what goes with it, and what is said.

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

use std::path::Path;

use event_logs::{Ran, events_in, fixture, folder, write};
use proptest::prelude::*;
use serde_json::{Value, json};
use traces::{arrow, document, micros, names_of, rank_trace, read, slice};

/// Converts `a.json` with these filters.
fn filtered(folder: &Path, filters: &[&str]) -> (Value, Ran) {
    let head = ["convert", "--to", "kineto", "--force", "-o", "out.json", "a.json"];
    let ran = events_in(folder, &[&head, filters].concat());
    assert_eq!(ran.code, Some(0), "{filters:?}: {ran:?}");
    (read(&folder.join("out.json")), ran)
}

/// How many slices, starts and ends of arrows are left.
fn counts(trace: &Value) -> [usize; 3] {
    ["X", "s", "f"].map(|phase| names_of(trace, phase).len())
}

#[test]
fn each_filter_keeps_what_it_names() {
    let (_kept, folder) = folder();
    write(&folder, "a.json", rank_trace(0, 1_700_000_000_000_000_000, 6));
    for (filters, expected) in [
        (&["--category", "kernel"][..], [6, 0, 0]),
        (&["--category", "kernel", "--category", "cuda_runtime"], [12, 6, 6]),
        (&["--name", "^gemm_[01]$"], [4, 0, 0]),
        (&["--name", "gemm_2", "--name", "mm$"], [8, 0, 0]),
        (&["--min-duration", "9.001us"], [6, 0, 0]),
        (&["--min-duration", "9002ns"], [0, 0, 0]),
        (&["--device", "0"], [6, 0, 0]),
        (&["--device", "1"], [0, 0, 0]),
        (&["--stream", "7"], [6, 0, 0]),
        (&["--thread", "5"], [12, 0, 0]),
        (&["--thread", "5", "--stream", "7"], [18, 6, 6]),
        (&["--thread", "5", "--device", "0", "--name", "gemm|Launch"], [12, 6, 6]),
        (&["--window", "0ns..100us"], [3, 1, 1]),
        (&["--window", "..100.001us"], [4, 1, 1]),
        (&["--window", "515us.."], [0, 0, 0]),
        (&["--window", "514.999us.."], [1, 0, 0]),
        (&["--window", "0us..1us", "--window", "200us..300us"], [4, 1, 1]),
        (&["--window", "@1700000000000100000..@1700000000000200000"], [3, 1, 1]),
        (&["--window", "2023-11-14T22:13:20.0004Z..2023-11-14T22:13:20.0005Z"], [3, 1, 1]),
        (&["--window", "0us..300us", "--category", "kernel", "--name", "gemm_1"], [1, 0, 0]),
    ] {
        let (trace, ran) = filtered(&folder, filters);
        assert_eq!(counts(&trace), expected, "{filters:?}: {ran:?}");
        // What is said of the whole stays.
        assert_eq!(trace["baseTimeNanoseconds"], json!(1_700_000_000_000_000_000_i64));
        assert_eq!(trace["distributedInfo"]["rank"], json!(0));
        assert_eq!(names_of(&trace, "M").len(), 2);
    }
}

#[test]
fn an_arrow_goes_with_either_of_its_slices_and_is_counted_once() {
    let (_kept, folder) = folder();
    write(&folder, "a.json", rank_trace(0, 0, 3));
    let (trace, ran) = filtered(&folder, &["--category", "kernel"]);
    assert_eq!(counts(&trace), [3, 0, 0]);
    assert!(
        ran.err.contains(
            "the filters left out 3 x end of an arrow, 6 x event, \
             3 x end of an arrow whose other end was left out"
        ),
        "{}",
        ran.err
    );
    let (trace, ran) = filtered(&folder, &["--category", "kernel", "--json"]);
    assert_eq!(ran.json()["left_out"][1], json!({ "what": "event", "times": 6 }));
    assert_eq!(ran.json()["events"], json!(3));
    assert_eq!(counts(&trace), [3, 0, 0]);
}

#[test]
fn an_arrow_that_had_one_end_only_stays_with_its_slice() {
    let (_kept, folder) = folder();
    let events = [
        slice(("kernel", "k"), (0, 7), (10, 5), &json!({ "stream": 7 })),
        arrow("f", 1, (0, 7), 12),
        slice(("cpu_op", "o"), (1, 2), (0, 5), &json!({})),
        arrow("s", 2, (1, 2), 0),
        // It belongs to no slice.
        arrow("s", 3, (9, 9), 0),
    ];
    write(&folder, "a.json", document("", &events, ""));
    assert_eq!(counts(&filtered(&folder, &["--category", "kernel"]).0), [1, 0, 1]);
    assert_eq!(counts(&filtered(&folder, &["--name", "o|k"]).0), [2, 1, 1]);
    assert_eq!(counts(&filtered(&folder, &["--window", "0ns..1us"]).0), [2, 2, 1]);
}

#[test]
fn an_arrow_belongs_to_the_innermost_slice_around_it() {
    let (_kept, folder) = folder();
    let events = [
        slice(("cpu_op", "outer"), (1, 2), (0, 100), &json!({})),
        slice(("cuda_runtime", "inner"), (1, 2), (10, 20), &json!({})),
        arrow("s", 1, (1, 2), 15),
        arrow("s", 2, (1, 2), 50),
    ];
    write(&folder, "a.json", document("", &events, ""));
    for (name, id) in [("inner", 1), ("outer", 2)] {
        let (trace, _) = filtered(&folder, &["--name", name]);
        let starts: Vec<_> = trace["traceEvents"].as_array().unwrap().iter().collect();
        let starts: Vec<_> = starts.iter().filter(|event| event["ph"] == "s").collect();
        assert_eq!((starts.len(), &starts[0]["id"]), (1, &json!(id)));
    }
}

#[test]
fn the_end_of_a_range_goes_where_its_beginning_goes() {
    let (_kept, folder) = folder();
    let range = |phase: &str, name: &str, ts: i64| {
        let ts = micros(ts);
        format!(r#"{{"ph":"{phase}","name":"{name}","pid":1,"tid":1,"ts":{ts},"args":{{}}}}"#)
    };
    let events =
        [range("B", "a", 0), range("B", "b", 10), range("E", "", 20), range("E", "", 3_000)];
    write(&folder, "a.json", document("", &events, ""));
    for filters in [&["--name", "^a$"][..], &["--window", "0ns..5ns"]] {
        let (trace, _) = filtered(&folder, filters);
        let kept: Vec<_> = trace["traceEvents"].as_array().unwrap().iter().collect();
        let kept: Vec<_> = kept.iter().map(|event| event["ts"].as_f64().unwrap()).collect();
        assert_eq!(kept, [0.0, 3.0], "{filters:?}");
    }
}

#[test]
fn memory_and_counters_are_filtered_by_time_device_category_and_name() {
    let (_kept, folder) = folder();
    let memory = |device: i64, ts: i64| {
        let ts = micros(ts);
        format!(
            r#"{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":2,"ts":{ts},"args":{{"Bytes":8,"Device Id":{device},"Device Type":1}}}}"#
        )
    };
    let counter =
        r#"{"ph":"C","cat":"mtia_counters","name":"power","pid":1,"ts":0.500,"args":{"W":1}}"#;
    let events = [memory(0, 100), memory(1, 200), counter.to_owned()];
    write(&folder, "a.json", document("", &events, ""));
    for (filters, expected) in [
        (&["--device", "1"][..], [1, 0]),
        (&["--category", "cpu_instant_event"], [2, 0]),
        (&["--name", "power"], [0, 1]),
        (&["--window", "100ns.."], [1, 1]),
        (&["--thread", "2"], [2, 0]),
        (&["--min-duration", "1s"], [2, 1]),
    ] {
        let (trace, _) = filtered(&folder, filters);
        assert_eq!(["i", "C"].map(|phase| names_of(&trace, phase).len()), expected, "{filters:?}");
    }
}

#[test]
fn filters_work_on_event_logs_that_become_traces() {
    let (_kept, folder) = folder();
    write(&folder, "a.json", event_logs::fat_session(9));
    let (trace, _) = filtered(&folder, &["--name", "^kernel_1$", "--lossy"]);
    assert_eq!(names_of(&trace, "X"), ["kernel_1"; 3]);
}

#[test]
fn what_cannot_be_meant_is_refused_with_an_example() {
    let (_kept, folder) = folder();
    write(&folder, "a.json", rank_trace(0, 0, 1));
    for (filter, words) in [
        (["--window", "5"], "expected START..END"),
        (["--window", "5..6"], "expected 1.5ms behind the trace's first event"),
        (["--window", "2us..1us"], "ends before it begins"),
        (["--min-duration", "10"], "expected a number with ns, us, ms or s behind it"),
        (["--name", "("], "unclosed group"),
        (["--device", "x"], "invalid digit"),
    ] {
        let arguments = ["convert", "--to", "kineto", filter[0], filter[1], "a.json"];
        let ran = events_in(&folder, &arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{filter:?}");
        assert!(ran.err.contains(words), "{filter:?}: {}", ran.err);
    }
}

#[test]
fn a_real_trace_keeps_its_kernels_and_no_loose_arrow() {
    let (_kept, folder) = folder();
    let origin = fixture("kineto/mi250_minitoy_train_ROCm6_2_kineto.json.gz");
    let out = ["--category", "kernel", "--category", "cuda_runtime", "-o", "out.json"];
    let ran = events_in(&folder, &[&["convert", "--to", "kineto"], &out[..], &[&origin]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let trace = read(&folder.join("out.json"));
    let [slices, starts, ends] = counts(&trace);
    assert_eq!((slices, names_of(&trace, "M").len()), (14 + 21, 60));
    assert!(starts > 0 && ends > 0 && starts + ends < 41, "{starts} {ends}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_window_keeps_exactly_the_slices_that_touch_it(
        slices in prop::collection::vec((0..2_000_i64, 0..300_i64), 1..30),
        from in 0..2_000_i64,
        length in 1..500_i64,
    ) {
        let (_kept, folder) = folder();
        let events: Vec<_> = slices.iter().enumerate().map(|(place, span)| {
            slice(("cpu_op", &place.to_string()), (1, place as i64), *span, &json!({}))
        }).collect();
        write(&folder, "a.json", document("", &events, ""));
        let first = slices.iter().map(|(start, _)| *start).min().unwrap();
        let (from, to) = (first + from, first + from + length);
        let window = format!("{}ns..{}ns", from - first, to - first);
        let (trace, _) = filtered(&folder, &["--window", &window]);
        let touches = |(start, duration): &(i64, i64)| {
            *start < to && (start + duration > from || *start >= from)
        };
        let expected: Vec<_> = slices.iter().enumerate()
            .filter(|(_, span)| touches(span)).map(|(place, _)| place.to_string()).collect();
        prop_assert_eq!(names_of(&trace, "X"), expected);
    }
}
