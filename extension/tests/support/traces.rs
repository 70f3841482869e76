//! Traces for tests.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// Nanoseconds as decimal microseconds.
pub(crate) fn micros(nanoseconds: i64) -> String {
    format!("{}.{:03}", nanoseconds / 1_000, nanoseconds % 1_000)
}

/// A slice with arguments.
pub(crate) fn slice(
    (cat, name): (&str, &str),
    (pid, tid): (i64, i64),
    (ts, dur): (i64, i64),
    args: &Value,
) -> String {
    let name = json!(name);
    let (ts, dur) = (micros(ts), micros(dur));
    format!(
        r#"{{"ph":"X","cat":"{cat}","name":{name},"pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"args":{args}}}"#
    )
}

/// One end of an arrow from the host to the device.
pub(crate) fn arrow(phase: &str, id: i64, (pid, tid): (i64, i64), ts: i64) -> String {
    let end = if phase == "f" { r#","bp":"e""# } else { "" };
    let ts = micros(ts);
    format!(
        r#"{{"ph":"{phase}","id":{id},"pid":{pid},"tid":{tid},"ts":{ts},"cat":"ac2g","name":"ac2g"{end}}}"#
    )
}

/// A document of these events, with members before and behind them.
pub(crate) fn document(before: &str, events: &[String], behind: &str) -> String {
    format!("{{{before}\"traceEvents\":[\n{}\n]{behind}}}\n", events.join(",\n"))
}

/// The trace of one rank: `steps` kernels of 4 us on stream 7, each launched 10 us before by thread 5,
/// within an operator; a step takes 100 us. The base time stands at the end.
pub(crate) fn rank_trace(rank: i64, base: i64, steps: i64) -> String {
    let mut events = vec![
        r#"{"ph":"M","name":"process_name","pid":40,"tid":0,"args":{"name":"python"}}"#.to_owned(),
        r#"{"ph":"M","name":"process_sort_index","pid":0,"tid":0,"args":{"sort_index":5000000}}"#
            .to_owned(),
    ];
    for step in 0..steps {
        let (at, id) = (step * 100_000, step + 1);
        events.extend([
            slice(("cpu_op", "aten::mm"), (40, 5), (at, 9_001), &json!({ "External id": id })),
            slice(
                ("cuda_runtime", "cudaLaunchKernel"),
                (40, 5),
                (at + 1_000, 500),
                &json!({ "cbid": 211, "correlation": id }),
            ),
            arrow("s", id, (40, 5), at + 1_000),
            slice(
                ("kernel", &format!("gemm_{}", step % 3)),
                (0, 7),
                (at + 11_000, 4_000),
                &json!({ "External id": id, "device": 0, "stream": 7, "correlation": id }),
            ),
            arrow("f", id, (0, 7), at + 11_000),
        ]);
    }
    let before = format!(
        r#""schemaVersion":1,"distributedInfo":{{"backend":"nccl","rank":{rank}}},"traceName":"r{rank}","#
    );
    document(&before, &events, &format!(r#","baseTimeNanoseconds":{base}"#))
}

/// The document in a file, plain or packed by gzip.
pub(crate) fn read(path: &Path) -> Value {
    let bytes = fs::read(path).unwrap();
    let mut text = String::new();
    match bytes.starts_with(&[0x1f, 0x8b]) {
        true => {
            let mut unpacked = flate2::read::MultiGzDecoder::new(&*bytes);
            std::io::Read::read_to_string(&mut unpacked, &mut text).unwrap();
        }
        false => text = String::from_utf8(bytes).unwrap(),
    }
    serde_json::from_str(&text).unwrap()
}

/// Its records, in the order of their text. Labels, which only name processes, stay out.
pub(crate) fn events_of(document: &Value) -> Vec<String> {
    let events = document["traceEvents"].as_array().unwrap();
    let events = events.iter().filter(|event| event["ph"] != "M");
    let mut events: Vec<_> = events.map(Value::to_string).collect();
    events.sort();
    events
}

/// The names of its events of a phase.
pub(crate) fn names_of(document: &Value, phase: &str) -> Vec<String> {
    let events = document["traceEvents"].as_array().unwrap();
    let events = events.iter().filter(|event| event["ph"] == phase);
    events.map(|event| event["name"].as_str().unwrap().to_owned()).collect()
}
