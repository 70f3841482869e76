//! What Perfetto draws of a trace is what the trace says.

use proptest::prelude::*;
use warpgauge_formats::perfetto::Writer;
use warpgauge_formats::time::{Span, Timestamp};
use warpgauge_formats::trace::{
    CounterEvent, EventType, Flow, FlowPoint, FlowType, Id, Label, Labelled, Record, TraceEvent,
    Track, Value,
};

use crate::collect::{FIXTURES, fixture, kineto};
use crate::model::record;
use crate::packets::{Trace, draw};

fn drawn<'r>(records: impl IntoIterator<Item = &'r Record<'r>>, mut writer: Writer) -> Trace {
    let mut out = vec![];
    for record in records {
        writer.write(record, &mut out);
    }
    writer.finish(&mut out);
    draw(&out)
}

fn track(process: i64, row: i64) -> Track<'static> {
    Track { process: Id::Number(process), row: Id::Number(row) }
}

fn slice(name: &'static str, track: Track<'static>, start: i64, length: i64) -> Record<'static> {
    Record::Event(TraceEvent {
        event_type: EventType::Custom,
        name: name.into(),
        timestamp: Timestamp(start),
        duration: Some(Span(length)),
        thread: track.row.number(),
        resource: track.row.number(),
        track,
        ..TraceEvent::default()
    })
}

fn flow(id: i64, start: bool, track: Track<'static>, time: i64) -> Record<'static> {
    Record::Flow(FlowPoint {
        flow: Flow { id, flow_type: FlowType::AsyncCpuToGpu, start },
        timestamp: Timestamp(time),
        track,
        category: "ac2g".into(),
        name: "ac2g".into(),
        ..FlowPoint::default()
    })
}

/// Begin, end and name of all that has a time and a length, or is an instant.
fn told(records: &[Record<'_>]) -> Vec<(u64, u64, String)> {
    let time = |time: Timestamp| u64::try_from(time.0).unwrap();
    let told = records.iter().filter_map(|record| match record {
        Record::Event(event) => {
            Some((time(event.timestamp), time(event.end()), event.name.to_string()))
        }
        Record::Memory(event) => {
            Some((time(event.timestamp), time(event.timestamp), "[memory]".to_owned()))
        }
        _ => None,
    });
    let mut told: Vec<_> = told.collect();
    told.sort();
    told
}

fn shown(trace: &Trace) -> Vec<(u64, u64, String)> {
    let slices = trace.slices.iter();
    slices.map(|slice| (slice.start, slice.end, slice.name.clone())).collect()
}

#[test]
fn every_slice_of_a_real_trace_is_drawn_at_its_time_and_every_flow_fastened() {
    for name in FIXTURES {
        let records = kineto(&fixture(name)).into_records();
        let flows = records.iter().filter(|record| matches!(record, Record::Flow(_))).count();
        for window in [0, 2000, usize::MAX] {
            let trace = drawn(&records, Writer::with_window(window));
            let mut all = shown(&trace);
            if window == usize::MAX {
                assert_eq!(all, told(&records), "{name}");
            }
            all.retain(|(_, _, name)| name != "ac2g" && name != "fwdbwd");
            assert_eq!(all, told(&records), "{name} with a window of {window}");
            let fastened = trace.slices.iter().map(|it| it.flows.0.len() + it.flows.1.len());
            assert_eq!(fastened.sum::<usize>(), flows, "{name}");
        }
    }
}

#[test]
fn what_overlaps_partly_is_drawn_on_a_lane_of_its_own() {
    let row = || track(10, 11);
    let records = [
        slice("a", row(), 0, 10),
        slice("b", row(), 5, 10),
        slice("c", row(), 6, 2),
        slice("d", row(), 20, 1),
    ];
    let trace = drawn(&records, Writer::new());
    let lanes: Vec<_> =
        trace.slices.iter().map(|slice| (slice.name.as_str(), slice.track.as_str())).collect();
    assert_eq!(lanes, [("a", ""), ("b", "thread 11 (lane 2)"), ("c", ""), ("d", "")]);
    assert_eq!(shown(&trace), told(&records));
    assert_eq!((&*trace.processes, &*trace.threads), (&[(10, None)][..], &[(10, 11, None)][..]));
}

#[test]
fn an_arrow_is_fastened_to_the_innermost_slice_wherever_it_stands_in_the_trace() {
    let (thread, stream) = (track(10, 11), track(0, 7));
    let mut kernel = slice("kernel", stream.clone(), 50, 5);
    if let Record::Event(event) = &mut kernel {
        (event.thread, event.stream) = (None, Some(7));
    }
    let records = [
        flow(1, true, thread.clone(), 12),
        slice("operator", thread.clone(), 0, 100),
        slice("launch", thread, 10, 5),
        kernel,
        flow(1, false, stream, 50),
    ];
    let trace = drawn(&records, Writer::new());
    let of =
        |name: &str| trace.slices.iter().find(|slice| slice.name == name).unwrap().flows.clone();
    assert_eq!(of("operator"), (vec![], vec![]));
    let (starts, none) = of("launch");
    assert_eq!((starts.len(), none.len()), (1, 0));
    assert_eq!(of("kernel"), (vec![], starts));
}

#[test]
fn an_arrow_to_nowhere_becomes_an_instant() {
    let trace = drawn(&[flow(1, true, track(10, 11), 12)], Writer::new());
    assert_eq!(shown(&trace), [(12, 12, "ac2g".to_owned())]);
    assert_eq!(trace.slices[0].flows.0.len(), 1);
}

#[test]
fn counters_have_their_units_and_values() {
    let counter = |time, unit: &'static str, value| {
        Record::Counter(CounterEvent {
            timestamp: Timestamp(time),
            track: Track { process: Id::Number(0), row: Id::None },
            name: unit.into(),
            values: vec![("total".into(), Value::Integer(value))],
            unit: Some(unit.into()),
            ..CounterEvent::default()
        })
    };
    let records = [counter(1, "By", 5), counter(2, "By", -6), counter(3, "W", 7)];
    let trace = drawn(&records, Writer::new());
    assert_eq!(trace.counters["By total"], (Some("#3".to_owned()), vec![(1, 5), (2, -6)]));
    assert_eq!(trace.counters["W total"], (Some("W".to_owned()), vec![(3, 7)]));
}

#[test]
fn a_range_whose_end_is_an_event_of_its_own_ends_there() {
    let event = |event_type, time, name: &'static str| {
        Record::Event(TraceEvent {
            event_type,
            name: name.into(),
            timestamp: Timestamp(time),
            track: track(10, 11),
            thread: Some(11),
            ..TraceEvent::default()
        })
    };
    let records = [event(EventType::RangeStart, 5, "r"), event(EventType::RangeEnd, 9, "r")];
    let trace = drawn(&records, Writer::new());
    assert_eq!(shown(&trace), [(5, 9, "r".to_owned())]);
    assert_eq!(trace.slices[0].track, "thread 11 (ranges)");
}

#[test]
fn names_that_come_late_are_said_again() {
    let label = |says| Record::Label(Label { timestamp: None, track: track(10, 11), says });
    let process = label(Labelled::ProcessName("python".into()));
    let thread = label(Labelled::ThreadName("main".into()));
    let instant = Record::Event(TraceEvent {
        event_type: EventType::Marker,
        track: track(10, 11),
        thread: Some(11),
        ..TraceEvent::default()
    });
    let early = drawn([&process, &thread, &instant], Writer::new());
    assert_eq!(early.processes, [(10, Some("python".to_owned()))]);
    assert_eq!(early.threads, [(10, 11, Some("main".to_owned()))]);
    let late = drawn([&instant, &process, &thread], Writer::new());
    assert_eq!(late.processes, [(10, None), (10, Some("python".to_owned()))]);
    assert_eq!(late.threads, [(10, 11, None), (10, 11, Some("main".to_owned()))]);
}

#[test]
fn what_perfetto_cannot_hold_is_counted() {
    let mut writer = Writer::new();
    for record in [slice("early", track(1, 1), -5, 1), slice("backwards", track(1, 1), 5, -1)] {
        writer.write(&record, &mut vec![]);
    }
    let losses: Vec<_> = writer.losses().iter().map(|(name, _)| name).collect();
    assert_eq!(losses, ["event before the base time", "event.negative_duration"]);
}

#[test]
fn what_is_said_of_the_trace_and_what_has_no_place_stands_among_its_words() {
    let says = Labelled::Other {
        name: "device".into(),
        metadata: vec![("bus".into(), Value::Text("0000:4b".into()))],
    };
    let trace = drawn(
        [
            &Record::Document { key: "schemaVersion".into(), json: "1".into() },
            &Record::Other(r#"{"ph":"?"}"#.into()),
            &Record::Label(Label { timestamp: None, track: track(10, 11), says }),
        ],
        Writer::new(),
    );
    let words = [
        ("schemaVersion", "1"),
        ("record", r#"{"ph":"?"}"#),
        ("device", r#"{"pid":10,"tid":11,"args":{"bus":"0000:4b"}}"#),
    ];
    assert_eq!(trace.words, words.map(|(name, json)| (name.to_owned(), json.to_owned())));
}

proptest! {
    #[test]
    fn slices_in_any_order_are_all_drawn_at_their_times(
        slices in prop::collection::vec((1..3_i64, 1..3_i64, 0..60_i64, 0..20_i64), 0..60),
        window in prop_oneof![Just(0_usize), 200..3000_usize, Just(usize::MAX)],
    ) {
        let records: Vec<_> = slices.into_iter().map(|(process, row, start, length)| {
            slice("s", track(process, row), start, length)
        }).collect();
        let trace = drawn(&records, Writer::with_window(window));
        prop_assert_eq!(shown(&trace), told(&records));
    }

    #[test]
    fn any_records_make_packets_that_can_be_read(
        records in prop::collection::vec(record(), 0..12), window in 0..2000_usize,
    ) {
        let (mut writer, mut out) = (Writer::with_window(window), vec![]);
        for record in &records {
            writer.write(record, &mut out);
        }
        writer.finish(&mut out);
        for (_, packet) in crate::packets::fields(&out) {
            prop_assert!(matches!(packet, crate::packets::Field::Bytes(_)));
        }
    }
}
