//! What must hold of every form and in every direction: times to the nanosecond, and odd traces.

use proptest::prelude::*;
use warpgauge_formats::time::{Span, Timestamp};
use warpgauge_formats::trace::{
    CounterEvent, EventType, Flow, FlowPoint, FlowType, Id, MemoryEvent, Record, TraceEvent, Track,
    Value,
};
use warpgauge_formats::{chrome, kineto, perfetto};

use crate::collect::{kineto as read, try_kineto};
use crate::packets::{Trace, draw};

fn as_kineto(records: &[Record<'_>]) -> Vec<u8> {
    let (mut writer, mut out) = (kineto::Writer::new(), vec![]);
    records.iter().for_each(|record| writer.write(record, &mut out));
    writer.finish(&mut out);
    out
}

fn as_chrome(records: &[Record<'_>]) -> Vec<u8> {
    let (mut writer, mut out) = (chrome::Writer::new(), vec![]);
    records.iter().for_each(|record| writer.write(record, &mut out));
    writer.finish(&mut out);
    out
}

fn as_perfetto(records: &[Record<'_>]) -> Trace {
    let (mut writer, mut out) = (perfetto::Writer::new(), vec![]);
    records.iter().for_each(|record| writer.write(record, &mut out));
    writer.finish(&mut out);
    draw(&out)
}

/// The records after a journey through both JSON forms, which must not change them.
fn there_and_back(records: &[Record<'_>]) -> Vec<Record<'static>> {
    let of_kineto = read(&as_kineto(records)).into_records();
    let of_chrome = read(&as_chrome(records)).into_records();
    assert_eq!(read(&as_chrome(&of_kineto)).into_records(), of_kineto, "Kineto to Chrome");
    assert_eq!(read(&as_kineto(&of_chrome)).into_records(), of_kineto, "Chrome to Kineto");
    of_kineto
}

fn track(process: Id<'static>, row: Id<'static>) -> Track<'static> {
    Track { process, row }
}

fn slice(name: impl Into<String>, start: i64, length: i64) -> TraceEvent<'static> {
    TraceEvent {
        event_type: EventType::Custom,
        category: Some("cpu_op".into()),
        name: name.into().into(),
        timestamp: Timestamp(start),
        duration: Some(Span(length)),
        track: track(Id::Number(1), Id::Number(2)),
        thread: Some(2),
        resource: Some(2),
        ..TraceEvent::default()
    }
}

/// A record of each kind that has a time.
fn timed(time: i64, length: i64) -> [Record<'static>; 5] {
    let flow = Flow { id: 1, flow_type: FlowType::AsyncCpuToGpu, start: true };
    let marker =
        TraceEvent { event_type: EventType::Marker, duration: None, ..slice("i", time, 0) };
    [
        Record::Event(slice("s", time, length)),
        Record::Event(marker),
        Record::Flow(FlowPoint {
            flow,
            timestamp: Timestamp(time),
            track: track(Id::Number(1), Id::Number(2)),
            category: "ac2g".into(),
            ..FlowPoint::default()
        }),
        Record::Memory(MemoryEvent {
            timestamp: Timestamp(time),
            bytes: 1,
            ..MemoryEvent::default()
        }),
        Record::Counter(CounterEvent {
            timestamp: Timestamp(time),
            name: "c".into(),
            values: vec![("v".into(), Value::Integer(1))],
            ..CounterEvent::default()
        }),
    ]
}

proptest! {
    #[test]
    fn every_time_and_duration_survives_to_the_nanosecond(
        time in prop_oneof![0..10_000_i64, 0..i64::MAX / 2],
        length in prop_oneof![0..10_000_i64, 0..i64::MAX / 2],
    ) {
        let records = timed(time, length);
        prop_assert_eq!(there_and_back(&records), records.clone());
        let drawn = as_perfetto(&records);
        let (start, end) = (time.cast_unsigned(), (time + length).cast_unsigned());
        let mut shown: Vec<_> =
            drawn.slices.iter().map(|it| (it.name.as_str(), it.start, it.end)).collect();
        shown.sort_unstable();
        prop_assert_eq!(shown, [("[memory]", start, start), ("i", start, start), ("s", start, end)]);
        prop_assert_eq!(&drawn.counters["c v"].1, &[(start, 1)]);
        let arrows = drawn.slices.iter().map(|slice| slice.flows.0.len());
        prop_assert_eq!(arrows.sum::<usize>(), 1);
    }

    #[test]
    fn times_before_the_base_time_survive_in_json(time in i64::MIN / 2..0, length in i64::MIN / 2..0) {
        let records = timed(time, length);
        let back = read(&as_kineto(&records)).into_records();
        prop_assert_eq!(&back, &records);
        prop_assert_eq!(read(&as_chrome(&records)).into_records(), records);
    }

    #[test]
    fn any_name_survives(name in any::<String>()) {
        let records = [Record::Event(slice(name.clone(), 1, 2))];
        prop_assert_eq!(there_and_back(&records), records.clone());
        prop_assert_eq!(&as_perfetto(&records).slices[0].name, &name);
    }
}

#[test]
fn a_name_of_100_kb_survives() {
    let name = "void cutlass::Kernel<\"\\\u{1}>".repeat(4_000);
    let records = [Record::Event(slice(name.clone(), 1, 2))];
    assert_eq!(there_and_back(&records), records);
    assert_eq!(as_perfetto(&records).slices[0].name, name);
}

#[test]
fn ids_that_are_texts_stay_texts_and_numbers_numbers() {
    let tracks = [
        track(Id::Text("Spans".into()), Id::Text("7".into())),
        track(Id::Number(7), Id::Text("a \"row\"".into())),
        track(Id::Text("".into()), Id::None),
        track(Id::Number(-1), Id::Number(i64::MIN)),
    ];
    let of = |track: &Track<'static>| {
        let resource = track.row.number();
        let thread = resource;
        Record::Event(TraceEvent { track: track.clone(), thread, resource, ..slice("s", 1, 2) })
    };
    let records: Vec<_> = tracks.iter().map(of).collect();
    assert_eq!(there_and_back(&records), records);
    assert_eq!(as_perfetto(&records).slices.len(), 4);
}

#[test]
fn arrows_without_their_other_end_stay() {
    let arrow = |id, start| {
        let [_, _, Record::Flow(point), ..] = timed(5, 0) else { panic!("a flow") };
        let flow = Flow { id, start, ..point.flow };
        Record::Flow(FlowPoint { flow, ..point })
    };
    let records = [arrow(1, true), arrow(2, false)];
    assert_eq!(there_and_back(&records), records);
    let drawn = as_perfetto(&records).slices;
    let ends: Vec<_> = drawn.iter().map(|it| (it.flows.0.len(), it.flows.1.len())).collect();
    assert_eq!(ends, [(0, 1), (1, 0)]);
}

#[test]
fn a_base_time_behind_the_events_is_the_trace_s() {
    let document = br#"{"traceEvents":[{"ph":"X","name":"s","pid":1,"tid":2,"ts":1.001,"dur":0}],
                        "baseTimeNanoseconds":1727743122000000001}"#;
    let records = read(document).into_records();
    assert_eq!(records[1], Record::BaseTime(1_727_743_122_000_000_001));
    assert_eq!(there_and_back(&records), records);
    let drawn = as_perfetto(&records);
    assert_eq!((drawn.slices[0].start, drawn.slices[0].end), (1001, 1001));
}

#[test]
fn an_empty_trace_is_a_trace_and_an_empty_file_is_none() {
    for trace in ["[]", "{}", "{\"traceEvents\":[]}", " {\"traceEvents\": [ ] } \n"] {
        let records = read(trace.as_bytes()).into_records();
        assert_eq!(records, [], "{trace}");
        assert_eq!(there_and_back(&records), []);
        assert_eq!(as_perfetto(&records).slices, []);
    }
    let (_, result) = try_kineto(&b""[..]);
    let said = result.unwrap_err().to_string();
    assert!(said.starts_with("line 1, column 1 (byte 0): the document ends here"), "{said}");
}

#[test]
fn a_name_that_is_no_utf_8_is_named_by_its_place() {
    let trace = b"[\n{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1},\n{\"name\":\"\xff\"}]";
    let (read, result) = try_kineto(&trace[..]);
    assert_eq!(read.records.len(), 1, "what stands before it has been read");
    let said = result.unwrap_err().to_string();
    assert_eq!(said, "line 3, column 10 (byte 65): the text is not UTF-8");
}

#[test]
fn a_trace_that_ends_anywhere_gives_what_was_whole_and_says_where_it_ends() {
    let whole = as_chrome(&timed(1, 2));
    let records = read(&whole).into_records();
    let last = whole.trim_ascii_end().len();
    for length in 0..last {
        let (read, result) = try_kineto(&whole[..length]);
        let said = result.expect_err("the end is missing").to_string();
        assert!(said.contains(&format!("(byte {length}): the document ends here")), "{said}");
        let read = read.into_records();
        assert_eq!(read, records[..read.len()], "cut at {length}");
    }
}
