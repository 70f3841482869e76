//! Traces that are broken, cut off or odd: each says what and where, and the rest is still read.

use proptest::prelude::*;
use warpgauge_formats::json::stream::Error;
use warpgauge_formats::time::Timestamp;
use warpgauge_formats::trace::Record;

use crate::collect::{fixture, kineto, try_kineto, written};

#[test]
fn unescaped_metadata_is_named_by_line_and_column() {
    let (read, result) = try_kineto(&*fixture("invalid_unescaped_metadata.json"));
    let said = result.unwrap_err().to_string();
    assert_eq!(said, "line 12, column 22 (byte 333): ',' or '}' was expected");
    assert_eq!(read.records.len(), 10, "what stands before it has been read");
}

#[test]
fn a_trace_that_is_cut_off_gives_all_that_it_holds() {
    let trace = fixture("torch_cpu_plain.json");
    let whole = kineto(&trace).into_records().len();
    let (read, result) = try_kineto(&trace[..trace.len() * 2 / 3]);
    assert!(matches!(result, Err(Error::CutOff { .. })), "{result:?}");
    assert!(read.records.len() > whole / 2 && read.records.len() < whole);
}

#[test]
fn a_record_that_is_not_understood_is_named_and_kept_as_it_stands() {
    let trace = br#"[
{"ph":"X","name":"a","pid":1,"tid":1,"ts":1},
{"ph":"X","name":"a","pid":1.5,"tid":1,"ts":1,"dur":1},
{"ph":"X","name":"a","ts":"1","dur":1},
{"ph":"X","name":"a","ts":1e40,"dur":1},
{"ph":"X","name":"a","name":"b","ts":1,"dur":1},
{"ph":"s","name":"a","ts":1},
{"name":"a"},
7
]"#;
    let read = kineto(trace);
    assert_eq!(
        read.said(),
        [
            "line 2: dur: expected the microseconds that it took, found nothing",
            "line 3: pid: expected a whole number of 64 bits or a string, found something else",
            "line 4: ts: expected a number, found a string",
            "line 5: ts: expected microseconds whose nanoseconds fit 64 bits, found another number",
            "line 6: name: expected one member of that name, found a second",
            "line 7: id: expected a whole number, found nothing",
            "line 8: ph: expected a string, found nothing",
            "line 9: traceEvents: expected an object, found 7",
        ]
    );
    let records = read.into_records();
    let again = written(&records);
    let lines: Vec<_> = std::str::from_utf8(&again).unwrap().lines().collect();
    let given: Vec<_> = std::str::from_utf8(trace).unwrap().lines().collect();
    assert_eq!(lines[1..9], given[1..9]);
}

#[test]
fn a_kind_that_the_model_does_not_know_is_kept_and_named_without_blame() {
    let read = kineto(
        br#"[{"ph":"b","id":1,"name":"a","ts":1},
             {"ph":"X","cat":"quantum_op","name":"q","pid":1,"tid":2,"ts":1,"dur":2}]"#,
    );
    assert_eq!(read.said(), [""; 0]);
    assert_eq!(read.unknown, [(1, "ph b".to_owned()), (2, "quantum_op".to_owned())]);
    assert!(matches!(&read.records[0].1, Record::Other(json) if json.starts_with("{\"ph\":\"b\"")));
    let Record::Event(event) = &read.records[1].1 else { panic!("an event") };
    assert_eq!(event.category.as_deref(), Some("quantum_op"));
}

#[test]
fn what_is_odd_about_a_time_is_said_and_the_event_is_read() {
    let read = kineto(
        br#"[{"ph":"X","name":"a","ts":1.0005,"dur":-2},
             {"ph":"X","name":"a","ts":-1.00049999,"dur":1e-3}]"#,
    );
    assert_eq!(
        read.said(),
        [
            "line 1: dur: expected 0 or more, found a negative number",
            "line 1: ts: expected at most three decimals, found more",
            "line 2: ts: expected at most three decimals, found more",
        ]
    );
    let times: Vec<_> = read
        .into_records()
        .into_iter()
        .map(|record| match record {
            Record::Event(event) => (event.timestamp, event.duration.unwrap().0),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(times, [(Timestamp(1001), -2000), (Timestamp(-1000), 1)]);
}

proptest! {
    #[test]
    fn a_trace_with_any_byte_changed_ends_in_a_result(place in 0..35_230_usize, byte: u8) {
        let mut trace = fixture("torch_cpu_plain.json");
        let place = place % trace.len();
        trace[place] = byte;
        let (read, result) = try_kineto(&*trace);
        prop_assert!(result.is_err() || read.records.len() > 100);
    }
}
