//! The sums against what counting step by step gives.

use proptest::prelude::*;
use warpgauge_formats::time::{Span, Timestamp};
use warpgauge_formats::trace::{Flow, FlowType, Id, TraceEvent, Track};

use super::*;

/// Nanoseconds of the steps in which the pieces are made up.
const STEP: i64 = 1_000;

/// A piece of work that a test makes up. Times count in steps.
#[derive(Debug, Clone, Copy)]
struct Made {
    category: &'static str,
    name: &'static str,
    device: i64,
    stream: i64,
    start: i64,
    length: i64,
    /// When the host's call began, before or after; none where the trace has no call.
    called: Option<i64>,
}

const COMPUTE: (&str, &str) = ("kernel", "gemm");
const COMMUNICATION: (&str, &str) = ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
const COPY: (&str, &str) = ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)");
const WAIT: (&str, &str) = ("cuda_sync", "Stream Sync");
const ANNOTATED: (&str, &str) = ("gpu_user_annotation", "nccl:all_reduce");

impl Made {
    fn is(&self, kind: (&str, &str)) -> bool {
        (self.category, self.name) == kind
    }

    fn is_busy(&self) -> bool {
        !self.is(WAIT) && !self.is(ANNOTATED)
    }

    fn runs(&self, now: i64) -> bool {
        self.start <= now && now < self.start + self.length
    }

    fn end(&self) -> i64 {
        self.start + self.length
    }

    fn event(&self, correlation: i64) -> TraceEvent<'static> {
        TraceEvent {
            category: Some(self.category.into()),
            name: self.name.into(),
            timestamp: Timestamp(self.start * STEP),
            duration: Some(Span(self.length * STEP)),
            track: Track { process: Id::Number(self.device), row: Id::Number(self.stream) },
            device: Some(self.device),
            stream: Some(self.stream),
            correlation: Some(correlation),
            ..TraceEvent::default()
        }
    }

    fn call(&self, correlation: i64) -> Option<TraceEvent<'static>> {
        Some(TraceEvent {
            category: Some("cuda_runtime".into()),
            name: "cudaLaunchKernel".into(),
            timestamp: Timestamp(self.called? * STEP),
            duration: Some(Span(3 * STEP)),
            track: Track { process: Id::Number(4_000), row: Id::Number(1) },
            correlation: Some(correlation),
            ..TraceEvent::default()
        })
    }
}

fn made() -> impl Strategy<Value = Made> {
    let kinds = prop::sample::select(vec![COMPUTE, COMMUNICATION, COPY, WAIT, ANNOTATED]);
    let called = prop::option::of(-20..150_i64);
    (kinds, 0..2_i64, 0..3_i64, 0..150_i64, 0..20_i64, called).prop_map(
        |((category, name), device, stream, start, length, called)| Made {
            category,
            name,
            device,
            stream,
            start,
            length,
            called,
        },
    )
}

/// Sums up the pieces, each call somewhere before or behind its piece.
fn sum(pieces: &[Made], calls_first: bool, limits: Limits) -> Statistics {
    let events = (1..).zip(pieces).flat_map(|(id, piece)| {
        let mut both = vec![Some(piece.event(id)), piece.call(id)];
        if calls_first {
            both.reverse();
        }
        both
    });
    let mut statistics = Statistics::with_limits(limits);
    statistics.trace_begins("made");
    events.flatten().for_each(|event| statistics.record(1, &Record::Event(event)));
    statistics.trace_ends();
    statistics
}

/// Nanoseconds of the steps in which that is so.
fn count(is_so: impl Fn(i64) -> bool) -> i128 {
    (-50..300).filter(|now| is_so(*now)).count() as i128 * i128::from(STEP)
}

/// What a stream's gaps are, piece by piece in the order of time.
fn idle(pieces: &[&Made]) -> Idle {
    let mut pieces = pieces.to_vec();
    pieces.sort_by_key(|piece| (piece.start, piece.called.unwrap_or(i64::MAX)));
    let (mut idle, mut behind) = (Idle::default(), None);
    for piece in pieces {
        if let Some(behind) = behind.filter(|behind| *behind < piece.start) {
            let gap = piece.start - behind;
            let sum = match piece.called {
                Some(called) if called > behind => &mut idle.host_wait,
                _ if gap < 30 => &mut idle.kernel_wait,
                _ => &mut idle.other,
            };
            *sum += i128::from(gap * STEP);
        }
        behind = behind.max(Some(piece.end()));
    }
    idle
}

fn check(pieces: &[Made], statistics: &Statistics) {
    for device in &statistics.traces[0].devices {
        let ordinal = device.process.number().unwrap();
        let of: Vec<_> = pieces.iter().filter(|piece| piece.device == ordinal).collect();
        let runs = |kind, now| of.iter().any(|piece| piece.is(kind) && piece.runs(now));
        let busy = |now| of.iter().any(|piece| piece.is_busy() && piece.runs(now));
        let length = {
            let seen = || of.iter().filter(|piece| !piece.is(ANNOTATED));
            let (first, last) =
                (seen().map(|piece| piece.start).min(), seen().map(|piece| piece.end()).max());
            first.zip(last).map_or(0, |(first, last)| i128::from((last - first) * STEP))
        };
        assert_eq!(device.length(), length);
        assert_eq!(device.busy(), count(busy));
        assert_eq!(device.compute(), count(|now| runs(COMPUTE, now)));
        assert_eq!(device.memory(), count(|now| runs(COPY, now)));
        assert_eq!(device.waiting(), count(|now| runs(WAIT, now) && !busy(now)));
        let nothing = length - count(|now| busy(now) || runs(WAIT, now));
        assert_eq!(device.idle(), nothing);
        assert_eq!(device.non_compute(), length - nothing - device.compute());
        let time = |kind| count(|now| runs(kind, now));
        let from_annotations = time(COMMUNICATION) == 0;
        let kind = if from_annotations { ANNOTATED } else { COMMUNICATION };
        let hidden = count(|now| runs(kind, now) && runs(COMPUTE, now));
        let told = Communication { time: time(kind), hidden, from_annotations };
        assert_eq!(device.communication(), (time(kind) > 0).then_some(told));
        for stream in &device.streams {
            let row = stream.row.number().unwrap();
            let of: Vec<_> =
                of.iter().copied().filter(|piece| piece.stream == row && piece.is_busy()).collect();
            assert_eq!(stream.pieces, of.len() as u64);
            assert_eq!(stream.busy, count(|now| of.iter().any(|piece| piece.runs(now))));
            assert_eq!(stream.idle, idle(&of));
        }
        let work = of.iter().filter(|piece| piece.is_busy());
        let called: Vec<_> = work.clone().filter(|piece| piece.called.is_some()).collect();
        assert_eq!(device.delays.from_call.count(), called.len() as u64);
        assert_eq!(device.delays.without_call, (work.count() - called.len()) as u64);
        let delays = called.iter().map(|piece| STEP * (piece.start - piece.called.unwrap()).max(0));
        let ends = delays.clone().min().zip(delays.max());
        assert_eq!(device.delays.from_call.ends(), ends);
        assert_eq!(device.late, (0, 0));
    }
}

proptest! {
    #[test]
    fn the_sums_are_those_of_counting_each_step_of_time(
        pieces in prop::collection::vec(made(), 0..60),
        calls_first: bool,
    ) {
        check(&pieces, &sum(&pieces, calls_first, Limits::default()));
    }

    #[test]
    fn in_little_memory_the_sums_are_the_same_if_work_comes_in_the_order_of_time(
        mut pieces in prop::collection::vec(made(), 0..60),
    ) {
        pieces.sort_by_key(|piece| piece.start);
        let limits = Limits { intervals: 8, ..Limits::default() };
        check(&pieces, &sum(&pieces, true, limits));
    }

    #[test]
    fn what_comes_too_late_is_counted_and_nothing_is_invented(
        pieces in prop::collection::vec(made(), 0..60),
        calls_first: bool,
    ) {
        let limits = Limits { intervals: 8, launches: 4, ..Limits::default() };
        let little = sum(&pieces, calls_first, limits);
        let all = sum(&pieces, calls_first, Limits::default());
        let devices = little.traces[0].devices.iter().zip(&all.traces[0].devices);
        for (device, exact) in devices {
            let lacking = exact.busy() - device.busy();
            prop_assert!((0..=device.late.1).contains(&lacking));
            prop_assert_eq!(device.length(), exact.length());
            for (stream, exact) in device.streams.iter().zip(&exact.streams) {
                prop_assert_eq!(stream.pieces, exact.pieces);
                prop_assert!(stream.busy <= exact.busy);
            }
            let delays = [device, exact].map(|device| {
                device.delays.from_call.count() + device.delays.without_call
            });
            prop_assert_eq!(delays[0], delays[1]);
        }
    }
}

fn at(kind: (&'static str, &'static str), stream: i64, start: i64, length: i64) -> Made {
    let (category, name) = kind;
    Made { category, name, device: 0, stream, start, length, called: None }
}

#[test]
fn communication_behind_computation_is_hidden() {
    let pieces = [at(COMPUTE, 7, 0, 100), at(COMMUNICATION, 20, 60, 100)];
    let statistics = sum(&pieces, true, Limits::default());
    let told = Communication { time: 100_000, hidden: 40_000, from_annotations: false };
    assert_eq!(statistics.traces[0].devices[0].communication(), Some(told));
}

#[test]
fn a_launch_of_a_graph_asks_for_many_pieces() {
    let mut statistics = Statistics::default();
    statistics.trace_begins("graph");
    let pieces = [at(COMPUTE, 7, 100, 5), at(COMPUTE, 7, 200, 5), at(COMPUTE, 7, 300, 5)];
    let call = Made { called: Some(90), ..pieces[0] };
    let [first, second, third] = pieces.map(|piece| piece.event(1));
    for event in [first, call.call(1).unwrap(), second, third] {
        statistics.record(1, &Record::Event(event));
    }
    statistics.trace_ends();
    let delays = &statistics.traces[0].devices[0].delays;
    assert_eq!((delays.from_call.count(), delays.without_call), (3, 0));
    assert_eq!(delays.from_call.ends(), Some((10_000, 210_000)));
    assert_eq!(delays.from_return.ends(), Some((7_000, 207_000)));
}

#[test]
fn streams_beyond_the_limit_are_counted() {
    let pieces = [at(COMPUTE, 1, 0, 5), at(COMPUTE, 2, 0, 5), at(COMPUTE, 1, 10, 5)];
    let limits = Limits { streams: 1, ..Limits::default() };
    let statistics = sum(&pieces, true, limits);
    assert_eq!(statistics.traces[0].left_out, 1);
    assert_eq!(statistics.traces[0].devices[0].busy(), 10_000);
    assert_eq!(statistics.kernels.all.count, 3);
}

#[test]
fn an_arrow_joins_where_correlation_ids_are_those_of_several_processes() {
    let mut statistics = Statistics::default();
    statistics.trace_begins("two sessions");
    for (session, called) in [(10, 90), (20, 40)] {
        let piece = Made { called: Some(called), ..at(COMPUTE, session, 100, 5) };
        let fasten = |event: TraceEvent<'static>, start| TraceEvent {
            flow: Some(Flow { id: session, flow_type: FlowType::AsyncCpuToGpu, start }),
            ..event
        };
        let both = [fasten(piece.call(1).unwrap(), true), fasten(piece.event(1), false)];
        both.into_iter().for_each(|event| statistics.record(1, &Record::Event(event)));
    }
    statistics.trace_ends();
    let delays = &statistics.traces[0].devices[0].delays;
    assert_eq!(delays.from_call.ends(), Some((10_000, 60_000)));
}

#[test]
fn devices_of_a_merged_trace_belong_to_their_ranks() {
    let mut statistics = Statistics::default();
    statistics.trace_begins("merged");
    let pieces = [at(COMPUTE, 7, 0, 5), Made { device: 1, ..at(COMPUTE, 7, 0, 9) }];
    for piece in pieces {
        statistics.record(1, &Record::Event(piece.event(1)));
    }
    let ranks = r#"[{"rank":3,"processes":[0],"document":{}},
        {"rank":5,"processes":[1],"document":{"deviceProperties":[{"id":1,"name":"own"}]}}]"#;
    for (key, json) in [
        ("warpgauge_ranks", ranks),
        ("deviceProperties", r#"[{"id":0,"name":"all"},{"id":1,"name":"all"}]"#),
    ] {
        statistics.record(1, &Record::Document { key: key.into(), json: json.into() });
    }
    statistics.trace_ends();
    let devices = statistics.traces[0].devices.iter();
    let told: Vec<_> = devices.map(|device| (device.rank, device.name.as_deref())).collect();
    assert_eq!(told, [(Some(3), Some("all")), (Some(5), Some("own"))]);
}
