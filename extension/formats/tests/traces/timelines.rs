//! Event logs drawn as traces.

use std::path::PathBuf;

use warpgauge_formats::event::{
    Copy, CopyKind, Event, Kernel, KernelDetails, Phase, Profile, Scope, Source, What,
};
use warpgauge_formats::finding::Sink as _;
use warpgauge_formats::gpu_flight;
use warpgauge_formats::gpumon::{self, Mode};
use warpgauge_formats::lines::Lines;
use warpgauge_formats::loss::Losses;
use warpgauge_formats::time::{Span, Timestamp};
use warpgauge_formats::timeline::Timeline;
use warpgauge_formats::trace::{CounterEvent, EventType, Id, Labelled, Record, TraceEvent, Value};

use crate::collect::{Collected, kineto, written};

/// 2024-10-01T01:05:22Z.
const WALL: i64 = 1_727_744_722_000_000_000;

fn drawn(events: &[Event<'_>]) -> (Vec<Record<'static>>, Losses) {
    let mut collected = Collected::default();
    let mut timeline = Timeline::new(&mut collected);
    for event in events {
        timeline.event(1, event);
    }
    let losses = timeline.end();
    (collected.into_records(), losses)
}

fn source(session: &'static str) -> Source<'static> {
    Source { session: Some(session.into()), pid: Some(42), app: Some("train".into()) }
}

fn event(what: What<'static>) -> Event<'static> {
    Event { source: source("s1"), what }
}

fn events<'r>(records: &'r [Record<'static>]) -> Vec<&'r TraceEvent<'static>> {
    let event = |record: &'r Record<'static>| match record {
        Record::Event(event) => Some(event),
        _ => None,
    };
    records.iter().filter_map(event).collect()
}

fn counters<'r>(records: &'r [Record<'static>]) -> Vec<&'r CounterEvent<'static>> {
    let counter = |record: &'r Record<'static>| match record {
        Record::Counter(counter) => Some(counter),
        _ => None,
    };
    records.iter().filter_map(counter).collect()
}

fn scope(phase: Phase, name: &'static str, instance: i64, depth: i64, time: i64) -> Event<'static> {
    event(What::Scope(Scope {
        phase,
        name: name.into(),
        instance: Some(instance),
        depth: Some(depth),
        time: Timestamp(time),
        ..Scope::default()
    }))
}

fn kernel() -> Kernel<'static> {
    Kernel {
        start: Timestamp(WALL + 100),
        duration: Span(10),
        name: "gemm".into(),
        device: Some(0),
        stream: Some(7),
        correlation: Some(35),
        ..Kernel::default()
    }
}

#[test]
fn times_of_the_wall_clock_count_from_a_midnight_before_them() {
    let (records, _) = drawn(&[event(What::Kernel(kernel()))]);
    let midnight = 1_727_740_800_000_000_000;
    assert_eq!(records[0], Record::BaseTime(midnight), "before all else");
    assert_eq!(events(&records)[0].timestamp, Timestamp(WALL + 100 - midnight));
}

#[test]
fn times_of_a_clock_that_starts_with_the_machine_stay_what_they_are() {
    let kernel = Kernel { start: Timestamp(5), ..kernel() };
    let (records, _) = drawn(&[event(What::Kernel(kernel))]);
    assert!(!records.iter().any(|record| matches!(record, Record::BaseTime(_))));
    assert_eq!(events(&records)[0].timestamp, Timestamp(5));
}

#[test]
fn a_scope_is_a_slice_that_names_the_scope_around_it() {
    let (records, losses) = drawn(&[
        scope(Phase::Begin, "epoch", 1, 0, 10),
        scope(Phase::Begin, "step", 2, 1, 20),
        scope(Phase::End, "step", 2, 1, 30),
        scope(Phase::End, "epoch", 1, 0, 50),
    ]);
    let told: Vec<_> = events(&records)
        .iter()
        .map(|event| (event.name.to_string(), event.timestamp.0, event.duration.unwrap().0))
        .collect();
    assert_eq!(told, [("step".to_owned(), 20, 10), ("epoch".to_owned(), 10, 40)]);
    let parent = events(&records)[0].metadata.iter().find(|(name, _)| name == "parent");
    assert_eq!(parent.map(|(_, value)| value.clone()), Some(Value::Integer(1)));
    assert!(losses.is_empty());
}

#[test]
fn a_scope_that_never_ends_begins_and_an_end_without_a_begin_is_an_instant() {
    let (records, _) =
        drawn(&[scope(Phase::End, "a", 1, 0, 10), scope(Phase::Begin, "b", 2, 0, 20)]);
    let told: Vec<_> =
        events(&records).iter().map(|event| (event.event_type, &*event.name)).collect();
    assert_eq!(told, [(EventType::Marker, "a"), (EventType::RangeStart, "b")]);
}

#[test]
fn a_kernel_lies_on_its_stream_and_an_arrow_leads_to_it_from_its_call() {
    let kernel = Kernel {
        call_start: Some(Timestamp(WALL + 10)),
        call_end: Some(Timestamp(WALL + 30)),
        dynamic_shared_bytes: Some(100),
        details: Some(KernelDetails {
            static_shared_bytes: Some(28),
            grid: Some([2, 1, 1]),
            stack: Some("main|step".into()),
            ..KernelDetails::default()
        }),
        ..kernel()
    };
    // Two nodes of one graph launch share the call.
    let twice = [event(What::Kernel(kernel.clone())), event(What::Kernel(kernel))];
    let (records, losses) = drawn(&twice);
    let told = events(&records);
    let [call, first, second] = &*told else { panic!("{told:#?}") };
    assert_eq!((call.event_type, call.duration), (EventType::KernelLaunch, Some(Span(20))));
    assert_eq!((&call.track.process, &first.track.process), (&Id::Number(42), &Id::Number(0)));
    assert_eq!((call.correlation, first.correlation), (Some(35), Some(35)));
    let (from, to) = (call.flow.unwrap(), first.flow.unwrap());
    assert_eq!((from.id, from.start, to.start), (to.id, true, false));
    assert_eq!((first.stream, first.resource, first.thread), (Some(7), Some(7), None));
    assert_eq!(first.kernel.shared_bytes, Some(128));
    assert_eq!(first.kernel.grid, Some([2, 1, 1]));
    assert_eq!(first.call_stack, ["main", "step"]);
    assert_eq!(first, second);
    assert!(losses.is_empty());
}

#[test]
fn a_copy_says_what_it_moved_and_how_fast() {
    let copy = Copy {
        duration: Span(500),
        bytes: 1000,
        kind: CopyKind(1),
        source: Some("Pinned".into()),
        destination: Some("Device".into()),
        ..Copy::default()
    };
    let (records, _) = drawn(&[event(What::Copy(copy))]);
    let told = events(&records)[0];
    assert_eq!(told.name, "Memcpy HtoD (Pinned -> Device)");
    assert_eq!(told.event_type, EventType::MemcpyH2D);
    assert_eq!((told.transfer.bytes, told.transfer.bandwidth), (Some(1000), Some(2.0)));
}

#[test]
fn sessions_of_one_pid_stay_apart_with_their_devices_and_arrows() {
    let kernel =
        Kernel { call_start: Some(Timestamp(1)), call_end: Some(Timestamp(2)), ..kernel() };
    let of = |session| Event { source: source(session), what: What::Kernel(kernel.clone()) };
    let (records, _) = drawn(&[of("s1"), of("s2")]);
    let told = events(&records);
    let processes: std::collections::BTreeSet<_> =
        told.iter().map(|event| event.track.process.number().unwrap()).collect();
    assert_eq!(processes.len(), 4);
    assert_ne!(told[0].flow.unwrap().id, told[2].flow.unwrap().id);
    let labels: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Label(label) => match &label.says {
                Labelled::ProcessLabels(words) => Some(words.to_string()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(labels, ["session s1", "GPU 0", "session s2, pid 42", "GPU 0"]);
}

#[test]
fn a_pid_that_is_a_devices_number_is_another_process() {
    let kernel = Event {
        source: Source { pid: Some(1), ..source("s1") },
        what: What::Kernel(Kernel {
            device: Some(1),
            call_start: Some(Timestamp(1)),
            call_end: Some(Timestamp(2)),
            ..kernel()
        }),
    };
    let (records, _) = drawn(&[kernel]);
    let told = events(&records);
    assert_ne!(told[0].track.process, told[1].track.process);
    assert_eq!(told[1].device, Some(1));
}

#[test]
fn what_a_trace_cannot_hold_is_counted() {
    let lone = Kernel { call_start: Some(Timestamp(1)), ..kernel() };
    let (_, losses) =
        drawn(&[event(What::KernelDetails(KernelDetails::default())), event(What::Kernel(lone))]);
    let losses: Vec<_> = losses.iter().collect();
    assert_eq!(losses, [("call.start_without_end", 1), ("kernel_details", 1)]);
}

#[test]
fn a_sample_is_an_instant_that_keeps_all_it_says() {
    let sample = Profile {
        time: Timestamp(7),
        stall_name: Some("long_scoreboard".into()),
        value: Some(3),
        source_line: Some(12),
        ..Profile::default()
    };
    let (records, _) = drawn(&[event(What::Profile(sample))]);
    let told = events(&records)[0];
    assert_eq!((&*told.name, told.duration), ("long_scoreboard", None));
    let keys: Vec<_> = told.metadata.iter().map(|(name, _)| &**name).collect();
    assert_eq!(keys, ["value", "stall name", "source line"]);
}

fn file(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn each_line(log: &[u8], mut take: impl FnMut(u64, &[u8])) {
    let mut lines = Lines::new(log);
    while let Some(line) = lines.next().unwrap() {
        take(line.number, line.bytes);
    }
}

#[test]
fn a_gpumon_log_becomes_scopes_and_counters_with_units() {
    let mut collected = Collected::default();
    let mut timeline = Timeline::new(&mut collected);
    let mut reader = gpumon::Reader::new(Mode::Tolerant);
    let log = file("gpumon/gpufl_basic.scope.0.log");
    each_line(&log, |number, bytes| reader.line(number, bytes, &mut timeline));
    assert!(timeline.end().is_empty());
    let records = collected.into_records();
    let slices: Vec<_> =
        events(&records).into_iter().filter(|event| event.duration.is_some()).collect();
    let told: Vec<_> = slices.iter().map(|event| &*event.name).collect();
    assert_eq!(told, ["Initialization", "DataLoading"]);
    assert_eq!(slices[0].timestamp, Timestamp(444_252_771_368_100));
    assert_eq!(slices[0].duration, Some(Span(516_867_200)));
    let power: Vec<_> =
        counters(&records).into_iter().filter(|counter| counter.name == "power").collect();
    assert_eq!(power.len(), 4);
    assert_eq!(power[0].unit.as_deref(), Some("mW"));
    assert_eq!(power[0].values, [("gpu".into(), Value::Integer(12_257))]);
    assert_eq!(power[0].device, Some(0));
}

#[test]
fn a_gpu_flight_log_becomes_a_trace_that_kineto_s_form_holds() {
    let mut collected = Collected::default();
    let mut timeline = Timeline::new(&mut collected);
    let mut reader = gpu_flight::Reader::new();
    let log = file("gpuflight/examples.ndjson");
    each_line(&log, |number, bytes| reader.line(number, bytes, &mut timeline));
    reader.end(&mut timeline);
    let _ = timeline.end();
    let mut records = collected.into_records();
    assert!(events(&records).iter().any(|event| event.event_type == EventType::KernelComplete));
    for record in &mut records {
        match record {
            Record::Event(event) => event.flow = None,
            Record::Counter(counter) => (counter.unit, counter.device) = (None, None),
            _ => {}
        }
    }
    assert_eq!(kineto(&written(&records)).into_records(), records);
}

#[test]
fn sessions_and_devices_without_end_are_drawn_together_beyond_a_limit() {
    let of = |pid, device| Event {
        source: Source { pid: Some(pid), ..Source::default() },
        what: What::Kernel(Kernel { device: Some(device), ..kernel() }),
    };
    let many: Vec<_> = (1_000_000..1_005_000).map(|pid| of(pid, 0)).collect();
    let (records, _) = drawn(&many);
    let processes = |records: &[Record<'static>]| {
        let tracks = events(records).into_iter().map(|event| event.track.process.clone());
        tracks.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((events(&records).len(), processes(&records)), (5_000, 4_097));
    let many: Vec<_> = (0..1_000).map(|device| of(1_000_000, device)).collect();
    let (records, _) = drawn(&many);
    assert_eq!((events(&records).len(), processes(&records)), (1_000, 257));
}

#[test]
fn of_too_many_open_scopes_the_oldest_is_drawn_as_one_that_has_not_ended() {
    let mut many: Vec<_> =
        (0..65_537).map(|number| scope(Phase::Begin, "s", number, 0, number)).collect();
    many.push(scope(Phase::End, "s", 65_536, 0, 70_000));
    let (records, _) = drawn(&many);
    let told = events(&records);
    assert_eq!(told.len(), 65_537);
    let first = (told[0].event_type, told[0].timestamp);
    assert_eq!(first, (EventType::RangeStart, Timestamp(0)));
    assert_eq!(told[1].duration, Some(Span(70_000 - 65_536)));
}
