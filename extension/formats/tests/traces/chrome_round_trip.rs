//! Any record comes back from Chrome's form as it was, and is drawn where viewers draw it.

use proptest::prelude::*;
use serde_json::{Value, json};
use warpgauge_formats::chrome::Writer;
use warpgauge_formats::time::{Span, Timestamp};
use warpgauge_formats::trace::{
    CounterEvent, EventType, Flow, FlowPoint, FlowType, Id, MemoryEvent, Record, TraceEvent, Track,
};

use crate::collect::{FIXTURES, fixture, kineto};
use crate::model::any_record;

fn written(records: &[Record<'_>], mut writer: Writer) -> Vec<u8> {
    let mut out = vec![];
    for record in records {
        writer.write(record, &mut out);
    }
    writer.finish(&mut out);
    assert!(writer.losses().is_empty());
    out
}

fn document(records: &[Record<'_>]) -> Vec<Value> {
    let mut document: Value = serde_json::from_slice(&written(records, Writer::new())).unwrap();
    let Value::Array(events) = document["traceEvents"].take() else { panic!("an array") };
    events
}

fn track() -> Track<'static> {
    Track { process: Id::Number(10), row: Id::Number(11) }
}

fn slice(name: &'static str, start: i64, length: i64) -> TraceEvent<'static> {
    TraceEvent {
        name: name.into(),
        timestamp: Timestamp(start),
        duration: Some(Span(length)),
        thread: Some(11),
        resource: Some(11),
        track: track(),
        ..TraceEvent::default()
    }
}

proptest! {
    #[test]
    fn every_record_comes_back_equal(
        records in prop::collection::vec(any_record(), 0..12), window in 0..3000_usize,
    ) {
        let document = written(&records, Writer::with_window(window));
        serde_json::from_slice::<Value>(&document).expect("JSON by another's reading");
        let read = kineto(&document);
        prop_assert_eq!(read.said(), [""; 0]);
        prop_assert_eq!(read.into_records(), records);
    }

    #[test]
    fn on_a_row_slices_lie_within_one_another_or_apart(
        slices in prop::collection::vec((0..60_i64, 0..20_i64), 0..60), window in 0..6000_usize,
    ) {
        let records: Vec<_> = slices.into_iter()
            .map(|(start, length)| Record::Event(slice("s", start, length))).collect();
        let document = written(&records, Writer::with_window(window));
        let document: Value = serde_json::from_slice(&document).unwrap();
        let mut rows = std::collections::HashMap::<String, Vec<(u64, u64)>>::new();
        for event in document["traceEvents"].as_array().unwrap() {
            let time = |name| (event[name].as_f64().unwrap() * 1000.0).round() as u64;
            let (start, end) = (time("ts"), time("ts") + time("dur"));
            for (from, to) in rows.entry(event["tid"].to_string()).or_default() {
                let partly = *from < start && start < *to && *to < end
                    || start < *from && *from < end && end < *to;
                prop_assert!(!partly, "{from} to {to} and {start} to {end}");
            }
            rows.get_mut(&event["tid"].to_string()).unwrap().push((start, end));
        }
    }
}

#[test]
fn a_real_trace_comes_back_equal() {
    for name in FIXTURES {
        let records = kineto(&fixture(name)).into_records();
        for window in [0, 10_000, usize::MAX] {
            let again = kineto(&written(&records, Writer::with_window(window)));
            assert_eq!(again.into_records(), records, "{name} with a window of {window}");
        }
    }
}

#[test]
fn a_counter_shows_its_unit_and_device() {
    let counter = CounterEvent {
        name: "power".into(),
        values: vec![("gpu".into(), warpgauge_formats::trace::Value::Float(71.5))],
        unit: Some("W".into()),
        device: Some(1),
        track: Track { process: Id::Number(1), row: Id::None },
        ..CounterEvent::default()
    };
    let expected = json!({
        "ph":"C", "name":"power [W]", "unit":"W", "id":"device 1", "device":1, "pid":1, "ts":0.0,
        "args":{"gpu":71.5},
    });
    assert_eq!(document(&[Record::Counter(counter)]), [expected]);
}

#[test]
fn memory_is_a_counter_besides() {
    let memory = MemoryEvent {
        bytes: 512,
        total_allocated: Some(1024),
        device: Some(0),
        ..MemoryEvent::default()
    };
    let records = [Record::Memory(memory)];
    let drawn = document(&records);
    assert_eq!(drawn.len(), 2);
    assert_eq!(drawn[1]["name"], "memory allocated (device 0)");
    assert_eq!(drawn[1]["args"], json!({"bytes": 1024}));
    assert_eq!(kineto(&written(&records, Writer::new())).into_records(), records, "but told once");
}

#[test]
fn an_arrow_of_a_slice_is_drawn_by_the_slice() {
    let flow = Flow { id: 9, flow_type: FlowType::AsyncCpuToGpu, start: true };
    let launch = TraceEvent { flow: Some(flow), ..slice("launch", 0, 1) };
    let kernel = TraceEvent { flow: Some(Flow { start: false, ..flow }), ..slice("kernel", 5, 1) };
    let drawn = document(&[Record::Event(launch), Record::Event(kernel)]);
    assert_eq!(drawn[0]["bind_id"], drawn[1]["bind_id"]);
    assert_eq!((&drawn[0]["flow_out"], &drawn[1]["flow_in"]), (&json!(true), &json!(true)));
    let args = json!({"flow_id": 9, "flow_type": "ac2g", "flow_start": true});
    assert_eq!(drawn[0]["args"], args);
}

#[test]
fn what_overlaps_partly_gets_a_lane_and_its_arrow_goes_with_it() {
    let arrow = FlowPoint {
        flow: Flow { id: 1, flow_type: FlowType::AsyncCpuToGpu, start: true },
        timestamp: Timestamp(7),
        track: track(),
        category: "ac2g".into(),
        ..FlowPoint::default()
    };
    let records = [
        Record::Flow(arrow),
        Record::Event(slice("a", 0, 6)),
        Record::Event(slice("b", 5, 6)),
        Record::Event(slice("c", 2, 2)),
    ];
    let rows: Vec<_> = document(&records).iter().map(|event| event["tid"].clone()).collect();
    assert_eq!(rows, [json!("11 (lane 2)"), json!(11), json!("11 (lane 2)"), json!(11)]);
    assert_eq!(kineto(&written(&records, Writer::new())).into_records(), records);
}

#[test]
fn ranges_whose_ends_are_events_of_their_own_have_a_row_of_their_own() {
    let begin =
        TraceEvent { event_type: EventType::RangeStart, duration: None, ..slice("r", 0, 0) };
    let records = [Record::Event(begin)];
    assert_eq!(document(&records)[0]["tid"], "11 (ranges)");
    assert_eq!(kineto(&written(&records, Writer::new())).into_records(), records);
}
