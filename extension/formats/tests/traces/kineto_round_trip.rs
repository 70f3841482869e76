//! Any record comes back from Kineto's form as it was.

use proptest::prelude::*;
use serde_json::{Value, json};
use warpgauge_formats::kineto;
use warpgauge_formats::time::{Span, Timestamp};
use warpgauge_formats::trace::{
    CounterEvent, EventType, Flow, FlowType, Id, Record, TraceEvent, Track,
};

use crate::collect::{kineto, written};
use crate::model::record;

proptest! {
    #[test]
    fn every_record_comes_back_equal(records in prop::collection::vec(record(), 0..12)) {
        let document = written(&records);
        serde_json::from_slice::<Value>(&document).expect("JSON by another's reading");
        let read = kineto(&document);
        prop_assert_eq!(read.said(), [""; 0]);
        prop_assert_eq!(read.into_records(), records);
    }
}

#[test]
fn what_a_record_would_not_say_stands_in_its_arguments() {
    let event = TraceEvent {
        event_type: EventType::NcclStart,
        category: Some("cpu_op".into()),
        duration: Some(Span(1)),
        track: Track { process: Id::Number(1), row: Id::Number(2) },
        thread: Some(3),
        resource: None,
        call_stack: vec!["a;b".into(), "c".into()],
        ..TraceEvent::default()
    };
    let records = [Record::Event(event)];
    let out = written(&records);
    let document: Value = serde_json::from_slice(&out).unwrap();
    let expected = json!({
        "thread_id": 3, "resource_id": null, "event_type": "NCCLStart", "call_stack": ["a;b", "c"],
    });
    assert_eq!(document["traceEvents"][0]["args"], expected);
    assert_eq!(kineto(&out).into_records(), records);
}

#[test]
fn what_is_said_of_the_trace_comes_back_before_and_behind_the_events() {
    let document = |key: &'static str, json: &'static str| Record::Document {
        key: key.into(),
        json: json.into(),
    };
    let records = [
        document("schemaVersion", "1"),
        document("a \"key\"", "{\"x\":[1,2]}"),
        Record::Event(TraceEvent { duration: Some(Span(-1)), ..TraceEvent::default() }),
        Record::Other("{\"ph\":\"N\"}".into()),
        Record::BaseTime(-5),
        document("traceName", "\"t\""),
    ];
    let out = written(&records);
    let parsed: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(parsed["baseTimeNanoseconds"], json!(-5));
    assert_eq!(kineto(&out).into_records(), records);
}

#[test]
fn a_trace_without_events_is_a_trace() {
    assert_eq!(kineto(&written(&[])).records, []);
    let only = [Record::BaseTime(7)];
    assert_eq!(kineto(&written(&only)).into_records(), only);
}

#[test]
fn a_flow_of_an_event_stands_behind_it_as_a_record() {
    let flow = Flow { id: 9, flow_type: FlowType::AsyncCpuToGpu, start: false };
    let event = TraceEvent {
        event_type: EventType::KernelComplete,
        name: "k".into(),
        timestamp: Timestamp(1_500),
        duration: Some(Span(10)),
        track: Track { process: Id::Number(0), row: Id::Number(7) },
        resource: Some(7),
        flow: Some(flow),
        ..TraceEvent::default()
    };
    let document: Value = serde_json::from_slice(&written(&[Record::Event(event)])).unwrap();
    let expected = json!([
        {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.5,"dur":0.01,"args":{}},
        {"ph":"f","id":9,"pid":0,"tid":7,"ts":1.5,"cat":"ac2g","name":"ac2g","bp":"e"},
    ]);
    assert_eq!(document["traceEvents"], expected);
}

#[test]
fn what_kineto_cannot_hold_is_counted() {
    let mut writer = kineto::Writer::new();
    let counter =
        CounterEvent { unit: Some("W".into()), device: Some(0), ..CounterEvent::default() };
    writer.write(&Record::Counter(counter), &mut vec![]);
    let losses: Vec<_> = writer.losses().iter().collect();
    assert_eq!(losses, [("counter.device", 1), ("counter.unit", 1)]);
}
