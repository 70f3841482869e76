//! The rules beyond the reference's samples: on any record the crate agrees with the rules written
//! down a second time, and each rule that stands out is shown by itself.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use warpgauge_formats::telemetry::{Metadata, Options, TelemetryEvent};

use crate::canonical::canonical;
use crate::model;
use crate::records::{legacy, odd, version_2};

fn agrees(record: &Map<String, Value>) -> Result<(), TestCaseError> {
    let text = Value::Object(record.clone()).to_string();
    match (TelemetryEvent::from_json(&text, &Options::default()), model::from_record(record)) {
        (Ok(mut event), Ok((expected, metadata))) => {
            let mut out = vec![];
            event.metadata.write(&mut out);
            prop_assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), metadata);
            out.clear();
            event.metadata = Metadata::default();
            event.write(&mut out);
            let written = canonical(std::str::from_utf8(&out).unwrap());
            prop_assert_eq!(written, canonical(&expected), "{}", text);
        }
        (Err(fault), Err(expected)) => prop_assert_eq!(fault.to_string(), expected, "{}", text),
        (got, expected) => prop_assert!(false, "{got:?}\n{expected:?}\n{text}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 1500 } else { 100_000 }))]

    #[test]
    fn a_record_of_version_2_is_judged_by_the_rules_in_their_order(
        mut record in version_2(),
        without in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        odd in prop::collection::vec((any::<prop::sample::Index>(), odd()), 0..6),
        foreign in prop::collection::vec("[a-zA-Z_é\u{10000}\u{ffff}]{0,3}", 0..2),
    ) {
        let keys: Vec<_> = record.keys().cloned().collect();
        for (index, value) in odd {
            record.insert(keys[index.index(keys.len())].clone(), value);
        }
        if without.len() == 2 {
            for index in without {
                record.remove(&keys[index.index(keys.len())]);
            }
            record.extend(foreign.into_iter().map(|key| (key, Value::Null)));
        }
        agrees(&record)?;
    }

    #[test]
    fn a_legacy_record_is_converted_by_the_rules_in_their_order(record in legacy()) {
        agrees(&record)?;
    }

    #[test]
    fn seconds_become_nanoseconds_as_a_double_does_it(seconds in -1e10..1e11_f64, whole in any::<i64>()) {
        for seconds in [json!(seconds), json!(whole)] {
            let record = json!({"timestamp": seconds});
            agrees(record.as_object().unwrap())?;
        }
    }
}

fn read(text: &str) -> Result<String, String> {
    read_with(text, &Options::default())
}

fn read_with(text: &str, options: &Options) -> Result<String, String> {
    let event = TelemetryEvent::from_json(text, options).map_err(|fault| fault.to_string())?;
    let mut out = vec![];
    event.write(&mut out);
    Ok(String::from_utf8(out).unwrap())
}

fn field(text: &str, key: &str) -> Result<Value, String> {
    let event: Value = serde_json::from_str(&read(text)?).unwrap();
    Ok(event[key].clone())
}

#[test]
fn a_time_between_two_doubles_becomes_the_nearer_one_cut_off_toward_zero() {
    let time = |seconds: &str| field(&format!("{{\"timestamp\":{seconds}}}"), "timestamp_ns");
    assert_eq!(time("1700000000.25"), Ok(json!(1_700_000_000_249_999_872_i64)));
    assert_eq!(time("-1e-10"), Ok(json!(0)));
    assert_eq!(time("-1"), Err("timestamp_ns must be >= 0".to_owned()));
    assert_eq!(time("1.9999999999"), Ok(json!(1_999_999_999)));
    for no_time in ["\"1\"", "null", "true", "[1]", "\"2024-01-01T00:00:00Z\""] {
        assert_eq!(time(no_time), Err("Legacy record is missing a valid timestamp".to_owned()));
    }
}

#[test]
fn integers_are_exact_up_to_128_bits_and_named_beyond() {
    let time = |digits: &str| read(&format!("{{\"timestamp_ns\":{digits}}}"));
    let largest = i128::MAX.to_string();
    assert!(time(&largest).unwrap().contains(&format!("\"timestamp_ns\":{largest},")));
    let beyond = "170141183460469231731687303715884105728";
    assert_eq!(time(beyond), Err("timestamp_ns must be within 128 bits".to_owned()));
    assert_eq!(time("1.0"), Err("timestamp_ns must be an integer".to_owned()));
    assert_eq!(time("1e3"), Err("timestamp_ns must be an integer".to_owned()));
    assert_eq!(field("{\"timestamp_ns\":-0}", "timestamp_ns"), Ok(json!(0)));
    for (record, fault) in [
        ("{\"timestamp\":1e400}", "timestamp must be within 128 bits"),
        ("{\"timestamp\":1e300}", "timestamp must be within 128 bits"),
        ("{\"timestamp\":1,\"memory_mb\":1e39}", "memory_mb must be within 128 bits"),
        (
            &format!("{{\"schema_version\":{beyond}}}"),
            &format!("Unsupported schema_version: {beyond}"),
        ),
        (
            &format!("{{\"timestamp\":1,\"device\":\"cuda:{beyond}\"}}"),
            "device must be within 128 bits",
        ),
    ] {
        assert_eq!(read(record), Err(fault.to_owned()), "{record}");
    }
}

#[test]
fn of_a_key_that_comes_twice_the_last_value_counts() {
    let text = r#"{"timestamp":1,"metadata":{"a":1},"metadata_a":2,"metadata":{"a":3,"a":4,"b":5},
        "timestamp":2,"metadata_c":6,"metadata_c":7}"#;
    assert_eq!(field(text, "timestamp_ns"), Ok(json!(2_000_000_000)));
    assert_eq!(field(text, "metadata"), Ok(json!({"a": 2, "b": 5, "c": 7})));
    let text = r#"{"timestamp":1,"metadata":{"a":1},"metadata":null}"#;
    assert_eq!(field(text, "metadata"), Ok(json!({})));
}

#[test]
fn metadata_folds_once_and_overrides() {
    let text = r#"{"metadata_":0,"metadata_metadata_x":1,"metadata_pid":9,"timestamp":1,
        "metadata":{"pid":8,"host":"h","é":[1, 2.50, {"k" : null}]}}"#;
    assert_eq!(field(text, "pid"), Ok(json!(9)));
    assert_eq!(field(text, "host"), Ok(json!("h")));
    let written = read(text).unwrap();
    let metadata = r#""metadata":{"pid":9,"host":"h","é":[1,2.50,{"k":null}],"":0,"metadata_x":1}"#;
    assert!(written.ends_with(&format!("{metadata}}}")), "{written}");
}

#[test]
fn legacy_records_are_converted_only_where_that_is_allowed() {
    let strict = Options { permissive_legacy: false, ..Options::default() };
    let disabled = Err("Legacy record conversion is disabled".to_owned());
    assert_eq!(read_with("{\"timestamp\":1}", &strict), disabled);
    let event = read("{\"timestamp\":1}").unwrap();
    assert_eq!(read_with(&event, &strict), Ok(event.clone()));
    let no_version = event.replace("\"schema_version\":2,", "");
    assert_eq!(read_with(&no_version, &strict), disabled);
    let fault = TelemetryEvent::from_v2_json(&no_version, &Options::default()).unwrap_err();
    assert_eq!(fault.to_string(), "Missing required telemetry fields: schema_version");
    let version_3 = event.replace("\"schema_version\":2,", "\"schema_version\":3,");
    let fault = TelemetryEvent::from_v2_json(&version_3, &Options::default()).unwrap_err();
    assert_eq!(fault.to_string(), "schema_version must be 2");
}

#[test]
fn defaults_are_those_that_the_caller_gives() {
    let options = Options {
        default_collector: "mine".to_owned(),
        default_sampling_interval_ms: 250,
        ..Options::default()
    };
    let written = read_with("{\"timestamp\":1}", &options).unwrap();
    assert!(written.contains(r#""collector":"mine","sampling_interval_ms":250"#), "{written}");
    let blank = Options { default_collector: " ".to_owned(), ..Options::default() };
    let fault = Err("collector must be a non-empty string".to_owned());
    assert_eq!(read_with("{\"timestamp\":1}", &blank), fault);
}

#[test]
fn the_process_of_a_distributed_run_is_read_where_it_is_accepted() {
    let accepting = Options { accept_distributed: true, ..Options::default() };
    let version_2 = |process: &str| {
        let event = read("{\"timestamp\":1,\"pid\":5}").unwrap();
        event.replace("\"device_id\"", &format!("{process}\"device_id\""))
    };
    let whole = version_2(r#""job_id":"j","rank":3,"local_rank":1,"world_size":4,"#);
    assert_eq!(read_with(&whole, &accepting), Ok(whole.clone()));
    let unknown = "Unknown telemetry fields: job_id, local_rank, rank, world_size";
    assert_eq!(read(&whole), Err(unknown.to_owned()));
    let none = version_2("");
    assert_eq!(read_with(&none, &accepting), Ok(none.clone()), "what is not said is not written");
    let part = read_with(&version_2(r#""rank":3,"world_size":4,"#), &accepting).unwrap();
    assert!(part.contains(r#""job_id":null,"rank":3,"local_rank":3,"world_size":4,"#), "{part}");
    for (process, fault) in [
        (r#""rank":1,"#, "rank must be < world_size"),
        (r#""rank":0,"local_rank":2,"world_size":2,"#, "local_rank must be < world_size"),
        (r#""world_size":0,"#, "world_size must be >= 1"),
        (r#""rank":-1,"#, "rank must be >= 0"),
        (r#""rank":null,"#, "rank must be an integer"),
        (r#""job_id":" ","#, "job_id must be a non-empty string"),
        (r#""job_id":1,"#, "job_id must be a string"),
    ] {
        assert_eq!(read_with(&version_2(process), &accepting), Err(fault.to_owned()), "{process}");
    }
    let legacy = r#"{"timestamp":1,"rank":null,"metadata":{"rank":2,"world_size":3,"kept":1}}"#;
    let written = read_with(legacy, &accepting).unwrap();
    assert!(written.contains(r#""job_id":null,"rank":2,"local_rank":2,"world_size":3,"#));
    assert!(written.ends_with(r#""metadata":{"kept":1}}"#), "{written}");
}

#[test]
fn an_event_put_together_by_hand_is_checked_by_the_same_rules() {
    let mut event = TelemetryEvent::from_json("{\"timestamp\":1}", &Options::default()).unwrap();
    assert_eq!(event.check(), Ok(()));
    event.device_total_bytes = Some(1);
    event.device_used_bytes = 2;
    let fault = event.check().unwrap_err();
    assert_eq!(fault.to_string(), "device_used_bytes cannot exceed device_total_bytes");
    event.host = "\u{1c}".into();
    assert_eq!(event.check().unwrap_err().to_string(), "host must be a non-empty string");
}

#[test]
fn a_text_that_is_no_json_is_refused_with_its_byte() {
    let deep = format!("{{\"timestamp\":1,\"metadata\":{{\"a\":{}", "[".repeat(200));
    for (text, fault) in [
        ("", "a value was expected at byte 0"),
        ("  ", "a value was expected at byte 2"),
        ("\u{feff}{}", "a value was expected at byte 0"),
        ("{\"timestamp\":1", "',' or '}' was expected at byte 14"),
        ("{\"timestamp\":NaN}", "a value was expected at byte 13"),
        ("{\"metadata\":{\"a\":Infinity}}", "a value was expected at byte 17"),
        ("{\"host\":\"\\ud800\"}", "half of a surrogate pair is no character at byte 9"),
        ("{\"timestamp\":1} {}", "something stands behind the value at byte 16"),
        (deep.as_str(), "nested more than 128 deep at byte 157"),
        ("[{\"timestamp\":1}]", "record must be a mapping"),
        ("1.5", "record must be a mapping"),
    ] {
        assert_eq!(read(text), Err(fault.to_owned()), "{text}");
    }
    assert!(read("{\"timestamp\":1}\r\n\t ").is_ok());
}
