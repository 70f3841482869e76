//! Any record.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use warpgauge_formats::time::{Span, Timestamp};
use warpgauge_formats::trace::{
    CounterEvent, EventType, Flow, FlowPoint, FlowType, Id, KernelParameters, Label, Labelled,
    MemoryCategory, MemoryEvent, MemoryOperation, Metadata, Record, TraceEvent, Track,
    TransferParameters, Value,
};

type Words = std::borrow::Cow<'static, str>;

fn word() -> impl Strategy<Value = Words> {
    "[a-zA-Z äµ/\\\\\"\n\u{1}\u{1f600}]{0,8}".prop_map(Words::from)
}

fn id() -> impl Strategy<Value = Id<'static>> {
    prop_oneof![
        4 => (0..5_i64).prop_map(Id::Number),
        1 => any::<i64>().prop_map(Id::Number),
        1 => word().prop_map(Id::Text),
        1 => Just(Id::None),
    ]
}

pub(crate) fn track() -> impl Strategy<Value = Track<'static>> {
    (id(), id()).prop_map(|(process, row)| Track { process, row })
}

fn time() -> impl Strategy<Value = Timestamp> {
    prop_oneof![0..2_000_000_000_000_000_000_i64, any::<i64>()].prop_map(Timestamp)
}

fn scalar() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        any::<i64>().prop_map(Value::Integer),
        (i64::MAX as u64 + 1..=u64::MAX).prop_map(Value::Unsigned),
        prop::num::f64::NORMAL.prop_map(Value::Float),
        any::<bool>().prop_map(Value::Boolean),
        word().prop_map(Value::Text),
    ]
}

fn value() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        4 => scalar(),
        1 => vec(scalar(), 0..4).prop_map(Value::List),
        1 => Just(Value::Json("[[1,2],{\"a\":null}]".into())),
        1 => Just(Value::Json("null".into())),
    ]
}

/// Names of which none is a field of the model.
fn metadata(prefix: &'static str) -> impl Strategy<Value = Metadata<'static>> {
    let name = move |word: Words| Words::from(format!("{prefix}{word}"));
    vec((word().prop_map(name), value()), 0..4)
}

/// Categories, with the names and types that belong to them, and whether a host's thread runs them.
const KINDS: [(&str, &str, EventType, bool); 8] = [
    ("kernel", "gemm", EventType::KernelComplete, false),
    ("kernel", "ncclKernel", EventType::NcclComplete, false),
    ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", EventType::MemcpyH2D, false),
    ("gpu_memset", "Memset (Device)", EventType::MemsetDevice, false),
    ("cuda_runtime", "cudaLaunchKernel", EventType::KernelLaunch, true),
    ("cuda_sync", "Stream Sync", EventType::StreamSync, false),
    ("cpu_op", "aten::\"add\"\\", EventType::Custom, true),
    ("python_function", "a.py(3): <module>", EventType::Custom, true),
];

fn event() -> impl Strategy<Value = TraceEvent<'static>> {
    let what = (0..KINDS.len(), time(), 0..i64::MAX / 2, 0..4_u8, track());
    let numbers = vec(option::of(any::<i64>()), 7);
    let parameters = (option::of(any::<[i64; 3]>()), option::of(any::<[i64; 3]>()));
    let rest = (option::of(prop::num::f64::NORMAL), vec("[a-z:.]{0,5}", 0..3), metadata("m:"));
    (what, numbers, parameters, rest, metadata("x:")).prop_map(
        |((kind, timestamp, length, shape, track), numbers, (grid, block), rest, extra)| {
            let (category, name, slice_type, on_host) = KINDS[kind];
            let (event_type, duration) = match shape {
                0 => (EventType::Marker, None),
                1 => (EventType::RangeStart, None),
                2 => (EventType::RangeEnd, None),
                _ => (slice_type, Some(Span(length))),
            };
            let (bandwidth, call_stack, metadata) = rest;
            TraceEvent {
                event_type,
                category: Some(category.into()),
                name: name.into(),
                timestamp,
                duration,
                device: numbers[0],
                stream: numbers[1],
                correlation: numbers[2],
                linked: numbers[3],
                thread: track.row.number().filter(|_| on_host),
                resource: track.row.number(),
                track,
                flow: None,
                call_stack: call_stack.into_iter().map(Words::from).collect(),
                kernel: KernelParameters {
                    grid,
                    block,
                    shared_bytes: numbers[4],
                    registers: numbers[5],
                },
                transfer: TransferParameters { bytes: numbers[6], bandwidth },
                metadata,
                extra,
            }
        },
    )
}

fn flow() -> impl Strategy<Value = FlowPoint<'static>> {
    let categories = prop::sample::select(vec!["", "ac2g", "fwdbwd", "async", "mine"]);
    let flow = (categories, any::<i64>(), any::<bool>(), any::<bool>());
    (flow, time(), track(), word(), metadata("x:")).prop_map(
        |((category, id, start, enclosing), timestamp, track, name, extra)| FlowPoint {
            flow: Flow { id, flow_type: FlowType::of_category(category), start },
            timestamp,
            track,
            category: category.into(),
            name,
            enclosing,
            extra,
        },
    )
}

fn memory() -> impl Strategy<Value = MemoryEvent<'static>> {
    let numbers = vec(option::of(any::<i64>()), 4);
    let what = (1..i64::MAX as u64, any::<bool>(), prop::sample::select(&MemoryCategory::ALL[..]));
    let rest = (option::of(any::<u64>()), option::of(word()), metadata("m:"));
    (time(), track(), numbers, what, rest).prop_map(
        |(timestamp, track, numbers, (bytes, freed, category), (address, allocator, metadata))| {
            MemoryEvent {
                timestamp,
                thread: track.row.number(),
                track,
                device_type: numbers[0],
                device: numbers[1],
                operation: if freed { MemoryOperation::Free } else { MemoryOperation::Allocation },
                bytes,
                address,
                total_allocated: numbers[2],
                total_reserved: numbers[3],
                allocator,
                category,
                metadata,
            }
        },
    )
}

fn counter() -> impl Strategy<Value = CounterEvent<'static>> {
    (time(), track(), option::of(word()), word(), metadata("")).prop_map(
        |(timestamp, track, category, name, values)| CounterEvent {
            timestamp,
            track,
            device: None,
            category,
            name,
            values,
            unit: None,
        },
    )
}

fn label() -> impl Strategy<Value = Label<'static>> {
    let says = prop_oneof![
        word().prop_map(Labelled::ProcessName),
        word().prop_map(Labelled::ProcessLabels),
        any::<i64>().prop_map(Labelled::ProcessSortIndex),
        word().prop_map(Labelled::ThreadName),
        any::<i64>().prop_map(Labelled::ThreadSortIndex),
        metadata("m:").prop_map(|metadata| Labelled::Other { name: "mine".into(), metadata }),
    ];
    (option::of(time()), track(), says).prop_map(|(timestamp, track, says)| Label {
        timestamp,
        track,
        says,
    })
}

/// Any record that stands among the events.
pub(crate) fn record() -> impl Strategy<Value = Record<'static>> {
    prop_oneof![
        4 => event().prop_map(Record::Event),
        1 => flow().prop_map(Record::Flow),
        1 => memory().prop_map(Record::Memory),
        1 => counter().prop_map(Record::Counter),
        1 => label().prop_map(Record::Label),
    ]
}

/// Any record that stands among the events, with all that only Chrome's form can hold.
pub(crate) fn any_record() -> impl Strategy<Value = Record<'static>> {
    let numbers = (option::of(any::<i64>()), option::of(any::<i64>()));
    let types = (prop::sample::select(&EventType::ALL[..]), any::<bool>());
    let flow_types = vec![FlowType::None, FlowType::ForwardBackward, FlowType::AsyncCpuToGpu];
    let flow = option::of((any::<i64>(), prop::sample::select(flow_types), any::<bool>()));
    let words = (option::of(word()), vec("[a-z;]{0,4}", 0..3));
    (record(), numbers, types, flow, words).prop_map(
        |(mut record, (first, second), (event_type, no_category), flow, (unit, frames))| {
            match &mut record {
                Record::Event(event) => {
                    (event.thread, event.resource, event.event_type) = (first, second, event_type);
                    event.flow = flow.map(|(id, flow_type, start)| Flow { id, flow_type, start });
                    event.call_stack = frames.into_iter().map(Words::from).collect();
                    if no_category {
                        event.category = None;
                    }
                }
                Record::Memory(event) => {
                    event.thread = first;
                    if no_category {
                        event.bytes = 0;
                    }
                }
                Record::Counter(event) => (event.device, event.unit) = (first, unit),
                _ => {}
            }
            record
        },
    )
}
