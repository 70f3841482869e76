//! `warpgauge events validate --format kineto`: findings by line, column and byte.

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

use event_logs::{Ran, events_in, events_with_input, fixture, folder, gzip, write};
use serde_json::json;
use traces::rank_trace;

fn validate(folder: &Path, arguments: &[&str]) -> Ran {
    events_in(folder, &[&["validate", "--format", "kineto"], arguments].concat())
}

#[test]
fn sound_traces_have_no_findings() {
    let (_kept, folder) = folder();
    for name in ["torch_cpu_plain.json", "triton_example.json.gz", "backward_thread.json"] {
        let ran = validate(&folder, &[&fixture(&format!("kineto/{name}"))]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        assert!(ran.out.starts_with("RECORDS"), "{}", ran.out);
    }
}

/// Three records of which two have faults, the second in the middle of a line.
const FAULTY: &str = r#"{"traceEvents":[
{"ph":"X","name":"a","pid":1,"tid":1,"dur":1.000},
  {"ph":"M","name":"x","pid":1,"args":{}}, {"ph":"X","name":"b","pid":1,"tid":1,"ts":1.0001,"dur":2},
{"ph":"?","name":"c"}
]}"#;

#[test]
fn findings_name_line_column_field_and_what_was_expected() {
    let (_kept, folder) = folder();
    write(&folder, "a.json", FAULTY);
    let ran = validate(&folder, &["a.json"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    let expected = "\
a.json:2:1: ts: expected microseconds, found nothing
a.json:3:44: ts: expected at most three decimals, found more
a.json:4: ph ? is unknown, 1 time
RECORDS  REFUSED  SUSPECT  MENDED  FILE
      4        1        1       0  a.json
";
    assert_eq!(ran.out, expected);
}

#[test]
fn machines_get_a_line_for_each_finding_and_one_for_the_file() {
    let (_kept, folder) = folder();
    write(&folder, "a.json", FAULTY);
    let ran = validate(&folder, &["--json", "a.json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let offset = FAULTY.find("{\"ph\":\"X\",\"name\":\"b\"").unwrap();
    let lines = ran.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(
        lines[1],
        json!({
            "file": "a.json", "line": 3, "column": 44, "offset": offset, "severity": "suspect",
            "field": "ts", "expected": "at most three decimals", "found": "more",
        })
    );
    assert_eq!(
        lines[2],
        json!({
            "file": "a.json", "ok": false, "records": 4, "refused": 1, "suspect": 1, "mended": 0,
            "unknown": [{ "name": "ph ?", "times": 1, "first_line": 4 }], "error": null,
        })
    );
}

#[test]
fn a_trace_that_is_cut_off_says_where() {
    let (_kept, folder) = folder();
    let whole = rank_trace(0, 5, 30);
    let cut = &whole[..whole.len() - 40];
    write(&folder, "a.json", cut);
    let packed = gzip(whole.as_bytes());
    write(&folder, "b.json.gz", &packed[..packed.len() / 2]);
    let ran = validate(&folder, &["--json", "a.json", "b.json.gz"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let [first, second] = <[_; 2]>::try_from(ran.lines()).unwrap();
    let line = cut.matches('\n').count() + 1;
    assert_eq!(
        (&first["error"]["line"], &first["error"]["offset"]),
        (&json!(line), &json!(cut.len()))
    );
    assert!(second["error"]["message"].as_str().unwrap().contains("the rest of the gzip stream"));
    assert!(second["records"].as_u64().unwrap() > 0);
}

#[test]
fn repair_says_what_would_be_mended_and_reads_on() {
    let (_kept, folder) = folder();
    let broken = fixture("kineto/invalid_unescaped_metadata.json");
    let ran = validate(&folder, &[&broken]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains(":12:22: ',' or '}' was expected"), "{}", ran.out);
    let ran = validate(&folder, &["--repair", &broken]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("--repair mended 2 quotes within texts"), "{}", ran.out);
    assert!(!ran.out.contains(":12:22:"), "{}", ran.out);
    let ran = events_in(&folder, &["validate", "--format", "gpumon", "--repair", &broken]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn standard_input_is_checked_and_what_is_no_trace_is_said() {
    let (_kept, folder) = folder();
    let ran =
        events_with_input(&["validate", "--format", "kineto", "-"], rank_trace(0, 5, 1).as_bytes());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    write(&folder, "empty.json", "");
    write(&folder, "latin.json", b"{\"traceEvents\":[],\"name\":\"\xe9\"}");
    write(&folder, "none.json", "{\"traceEvents\":[]}");
    let ran = validate(&folder, &["empty.json", "latin.json", "none.json", "missing.json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.out.contains("empty.json:1:1: the document ends here"), "{}", ran.out);
    assert!(ran.out.contains("latin.json:1:27: the text is not UTF-8 (byte 26)"), "{}", ran.out);
    assert!(ran.out.contains("none.json: the trace is empty"), "{}", ran.out);
    assert!(ran.err.contains("missing.json"), "{}", ran.err);
}
