//! Records as producers write them, and what may stand where something else should.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub(crate) const REQUIRED: [&str; 18] = [
    "schema_version",
    "timestamp_ns",
    "event_type",
    "collector",
    "sampling_interval_ms",
    "pid",
    "host",
    "device_id",
    "allocator_allocated_bytes",
    "allocator_reserved_bytes",
    "allocator_active_bytes",
    "allocator_inactive_bytes",
    "allocator_change_bytes",
    "device_used_bytes",
    "device_free_bytes",
    "device_total_bytes",
    "context",
    "metadata",
];

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other}"),
    }
}

/// Bytes that are there or not known.
fn optional() -> impl Strategy<Value = Value> {
    prop_oneof![Just(Value::Null), (0..9_i64).prop_map(Value::from)]
}

/// A record of version 2 in which each value is right by itself.
pub(crate) fn version_2() -> impl Strategy<Value = Map<String, Value>> {
    let integers = prop::collection::vec(0..9_i64, 7);
    let optionals = prop::collection::vec(optional(), 4);
    (integers, optionals, any::<i64>(), prop::option::of("[a-z ]{0,3}")).prop_map(
        |(integers, optionals, change, context)| {
            object(json!({
                "schema_version": 2, "timestamp_ns": integers[0], "event_type": "sample",
                "collector": "gpumemprof.cuda_tracker", "sampling_interval_ms": integers[1],
                "pid": integers[2] - 1, "host": "host-a", "device_id": integers[3],
                "allocator_allocated_bytes": integers[4], "allocator_reserved_bytes": integers[5],
                "allocator_active_bytes": optionals[0], "allocator_inactive_bytes": optionals[1],
                "allocator_change_bytes": change, "device_used_bytes": integers[6],
                "device_free_bytes": optionals[2], "device_total_bytes": optionals[3],
                "context": context, "metadata": {"backend": "cuda", "n": [1.5, null]},
            }))
        },
    )
}

/// A value of any type, at all edges that the rules have.
pub(crate) fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        Just(json!(0)),
        Just(json!(2)),
        Just(json!(2.0)),
        Just(json!(-1.5)),
        Just(json!(1_700_000_000.25)),
        Just(json!(-1e-10)),
        Just(json!(u64::MAX)),
        Just(json!([])),
        Just(json!({})),
        Just(json!({"pid": 7, "host": "inner", "backend": "rocm", "total_memory": 5})),
        Just(json!({"pid": null, "host": " ", "total_bytes": null, "device_total": "x"})),
        (-3..9_i64).prop_map(Value::from),
        prop::sample::select(&TEXTS).prop_map(Value::from),
        "\\PC{0,3}".prop_map(Value::from),
    ]
}

const TEXTS: [&str; 20] = [
    "",
    " ",
    "\u{1c}\u{1f}",
    "\u{85}\u{a0}",
    "\u{200b}",
    "\u{feff}",
    "sample",
    "cuda",
    " ROCm\t",
    "mps",
    "cpu",
    "cuda:1",
    "cuda:01",
    "cuda:٣",
    "cuda:²",
    "cuda:",
    "x:y:2",
    "/GPU",
    "/gpu:x",
    "aCPUz:3",
];

const KEYS: [&str; 40] = [
    "schema_version",
    "timestamp_ns",
    "event_type",
    "collector",
    "sampling_interval_ms",
    "pid",
    "host",
    "device_id",
    "allocator_allocated_bytes",
    "allocator_reserved_bytes",
    "allocator_active_bytes",
    "allocator_inactive_bytes",
    "allocator_change_bytes",
    "device_used_bytes",
    "device_free_bytes",
    "device_total_bytes",
    "context",
    "metadata",
    "rank",
    "timestamp",
    "type",
    "device",
    "message",
    "backend",
    "memory_allocated",
    "memory_reserved",
    "memory_change",
    "memory_mb",
    "total_memory",
    "device_total",
    "total_bytes",
    "metadata_",
    "metadata_pid",
    "metadata_host",
    "metadata_backend",
    "metadata_total_memory",
    "metadata_device_total",
    "metadata_metadata_x",
    "world_size",
    "else",
];

/// A value that fits the key more often than not.
fn fitting(key: &'static str) -> BoxedStrategy<Value> {
    let text = |choices: &'static [&'static str]| {
        prop::sample::select(choices).prop_map(Value::from).boxed()
    };
    let usual = match key {
        "timestamp" | "memory_mb" => (0..4_000_000_000_i64)
            .prop_flat_map(|whole| {
                prop_oneof![Just(Value::from(whole)), Just(Value::from(whole as f64 / 7.0))]
            })
            .boxed(),
        "event_type" | "type" | "context" | "message" | "host" | "metadata_host" => {
            text(&["sample", "error", "host-a"])
        }
        "collector" => text(&["mine", " ", "gpumemprof.cuda_tracker"]),
        "device" => text(&TEXTS),
        "backend" | "metadata_backend" => text(&["cuda", " MPS", "rocm\u{a0}", "cpu", "gpu"]),
        "metadata" => prop::collection::btree_map(
            prop::sample::select(&[
                "pid",
                "host",
                "backend",
                "total_memory",
                "device_total",
                "total_bytes",
                "x",
            ]),
            odd(),
            0..3,
        )
        .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)))
        .prop_map(|members| Value::Object(members.collect()))
        .boxed(),
        _ => (0..9_i64).prop_map(Value::from).boxed(),
    };
    prop_oneof![12 => usual, 1 => odd()].boxed()
}

/// A record from before version 2, with any of the keys that mean something.
pub(crate) fn legacy() -> impl Strategy<Value = Map<String, Value>> {
    let usual = KEYS.iter().skip(1).copied().collect::<Vec<_>>();
    let keys = prop::sample::subsequence(usual, 0..14);
    let members = keys.prop_flat_map(|keys| {
        keys.into_iter()
            .map(|key| fitting(key).prop_map(move |value| (key.to_owned(), value)))
            .collect::<Vec<_>>()
    });
    (members, fitting("timestamp"), prop::bool::weighted(0.02)).prop_map(
        |(members, timestamp, version)| {
            let mut record: Map<_, _> = members.into_iter().collect();
            record.entry("timestamp").or_insert(timestamp);
            if version {
                record.insert("schema_version".to_owned(), Value::from(2));
            }
            record
        },
    )
}
