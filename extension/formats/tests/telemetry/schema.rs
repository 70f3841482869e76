//! The published schema and the type say the same, but for the rules that a schema cannot say.

use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use warpgauge_formats::telemetry::{Broken, Fault, Options, TelemetryEvent};

use crate::records::{odd, version_2};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let schema = include_str!("../../../../res/schemas/telemetry-event-v2.schema.json");
    serde_json::from_str(schema).unwrap()
});
static VALIDATOR: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::draft202012::new(&SCHEMA).unwrap());

fn read(record: &Value) -> Result<(), Fault> {
    let text = record.to_string();
    TelemetryEvent::from_v2_json(&text, &Options::default()).map(drop)
}

#[test]
fn an_event_is_written_with_the_schemas_keys_in_the_schemas_order() {
    let text = version_2_example().to_string();
    let event = TelemetryEvent::from_json(&text, &Options::default()).unwrap();
    let mut out = vec![];
    event.write(&mut out);
    let required: Vec<_> =
        SCHEMA["required"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    let mut reader = warpgauge_formats::json::Reader::new(std::str::from_utf8(&out).unwrap());
    let mut keys = vec![];
    reader.enter_object().unwrap();
    while let Some(key) = reader.next_key().unwrap() {
        keys.push(key.into_owned());
        reader.skip().unwrap();
    }
    assert_eq!(keys, required);
    assert_eq!(SCHEMA["properties"].as_object().unwrap().len(), required.len());
    assert!(VALIDATOR.is_valid(&serde_json::from_slice(&out).unwrap()));
}

fn version_2_example() -> Value {
    json!({
        "schema_version": 2, "timestamp_ns": 1_700_000_000_000_000_000_i64, "event_type": "sample",
        "collector": "gpumemprof.cuda_tracker", "sampling_interval_ms": 100, "pid": 1234,
        "host": "a", "device_id": 0, "allocator_allocated_bytes": 1, "allocator_reserved_bytes": 2,
        "allocator_active_bytes": null, "allocator_inactive_bytes": null,
        "allocator_change_bytes": -1, "device_used_bytes": 3, "device_free_bytes": null,
        "device_total_bytes": 4, "context": null, "metadata": {},
    })
}

#[test]
fn each_property_of_the_schema_is_judged_alike() {
    let properties = SCHEMA["properties"].as_object().unwrap();
    for key in properties.keys() {
        for value in [
            json!(null),
            json!(true),
            json!(2),
            json!(-1),
            json!(-2),
            json!(1.5),
            json!("x"),
            json!(""),
            json!([]),
            json!({}),
        ] {
            let mut record = version_2_example();
            record[key] = value;
            let verdict = read(&record);
            let only_here = matches!(verdict, Err(Fault::Broken(Broken::MoreThanTotal(_))));
            let schema_accepts = VALIDATOR.is_valid(&record);
            assert_eq!(verdict.is_ok(), schema_accepts && !only_here, "{record}: {verdict:?}");
        }
    }
}

/// Whether the schema accepts a record only because it cannot say the rule, or counts `2.0` as an
/// integer.
fn is_beyond_the_schema(record: &Map<String, Value>, fault: &Fault) -> bool {
    match fault {
        Fault::Broken(Broken::MoreThanTotal(_)) => true,
        Fault::Broken(Broken::Blank(key)) => {
            record[*key].as_str().is_some_and(|text| !text.is_empty())
        }
        Fault::Broken(Broken::NotAnInteger(key)) => record[*key].is_f64(),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_is_accepted_the_schema_accepts_and_what_is_refused_it_refuses_or_cannot_say(
        mut record in version_2(),
        without in prop::collection::vec(any::<prop::sample::Index>(), 0..2),
        odd in prop::collection::vec((any::<prop::sample::Index>(), odd()), 0..3),
        foreign in prop::option::of("[a-z_]{1,12}"),
    ) {
        for (index, value) in odd {
            let key = record.keys().nth(index.index(record.len())).unwrap().clone();
            record.insert(key, value);
        }
        for index in without {
            let key = record.keys().nth(index.index(record.len())).unwrap().clone();
            record.remove(&key);
        }
        if let Some(key) = foreign {
            record.insert(key, Value::from(1));
        }
        let tree = Value::Object(record.clone());
        let schema_accepts = VALIDATOR.is_valid(&tree);
        match read(&tree) {
            Ok(()) => prop_assert!(schema_accepts, "{tree}"),
            Err(fault) => prop_assert!(
                !schema_accepts || is_beyond_the_schema(&record, &fault),
                "{fault}: {tree}"
            ),
        }
    }
}
