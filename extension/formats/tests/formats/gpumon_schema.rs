//! Strict mode refuses exactly what the published schema refuses, as another validator reads it.

use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use warpgauge_formats::gpumon::Mode;

use crate::collect::{fixture, gpumon};

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let schema = include_str!("../../../../res/schemas/gpumon.schema.json");
    jsonschema::draft7::new(&serde_json::from_str(schema).unwrap()).unwrap()
});

/// Whether the schema accepts the line; `None` where the other library cannot tell, because a double
/// does not hold what stands there.
fn is_valid(line: &str) -> Option<bool> {
    let is_inexact = |number: &str| {
        let exponent = number.split_once(['e', 'E']).map_or(0, |(_, exponent)| exponent.len());
        number.contains(['.', 'e', 'E']) && (number.len() > 15 || exponent > 3)
    };
    if line.split(|letter: char| !"0123456789.eE+-".contains(letter)).any(is_inexact) {
        return None;
    }
    match serde_json::from_str(line) {
        Ok(value) => Some(SCHEMA.is_valid(&value)),
        Err(error) if error.to_string().starts_with("number out of range") => None,
        Err(_) => Some(false),
    }
}

fn is_accepted(line: &str) -> bool {
    gpumon(Mode::Strict, line.as_bytes()).refused().is_empty()
}

fn agrees(line: &str) -> Result<(), TestCaseError> {
    if let Some(valid) = is_valid(line) {
        prop_assert_eq!(is_accepted(line), valid, "the schema says {}: {}", valid, line);
    }
    Ok(())
}

const TYPES: [&str; 6] = ["init", "scope_begin", "scope_sample", "scope_end", "kernel", "shutdown"];

/// Whole numbers as writers spell them.
fn whole() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => (0..1_000_000_i64).prop_map(Value::from),
        2 => any::<u64>().prop_map(Value::from),
        1 => (0..1000_i32).prop_map(|number| Value::from(f64::from(number))),
    ]
}

/// What may stand where something else should: all types, all edges.
fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        Just(json!("")),
        Just(json!("(1,1,1)")),
        Just(json!(-1)),
        Just(json!(-0.0)),
        Just(json!(0.5)),
        Just(json!(1e300)),
        Just(json!([])),
        Just(json!([1, 2])),
        Just(json!([1, 2, 3])),
        Just(json!([1, 2.0, 3, 4])),
        Just(json!([{}])),
        Just(json!([{"device": 0, "used_mib": 1, "free_mib": 1.0, "total_mib": 2}])),
        Just(json!([{"device": 0, "used_mib": 1, "free_mib": 1, "total_mib": 2, "x": null}])),
        Just(json!([null])),
        Just(json!({})),
        Just(json!("scope_end")),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,3}".prop_map(Value::from),
    ]
}

fn memory() -> impl Strategy<Value = Value> {
    let entry = [whole(), whole(), whole(), whole()].prop_map(
        |[a, b, c, d]| json!({"device": a, "used_mib": b, "free_mib": c, "total_mib": d}),
    );
    prop::collection::vec(entry, 0..3).prop_map(Value::from)
}

/// Every key that any type has, with a value that is right for it.
fn full() -> impl Strategy<Value = Map<String, Value>> {
    let wholes = prop::collection::vec(whole(), 13);
    let texts = prop::collection::vec("[a-zé\"\\\\]{1,4}", 6);
    (prop::sample::select(&TYPES), wholes, texts, memory()).prop_map(|(kind, wholes, texts, memory)| {
        let value = json!({
            "type": kind, "pid": wholes[0], "app": texts[0], "name": texts[1], "tag": texts[2],
            "ts_ns": wholes[1], "ts_start_ns": wholes[2], "ts_end_ns": wholes[3], "duration_ns": wholes[4],
            "logPath": texts[3], "memory": memory, "kernel": texts[4], "cuda_error": texts[5],
            "grid": wholes[5..8], "block": wholes[8..11], "shared_mem_bytes": wholes[11],
            "further": wholes[12],
        });
        value.as_object().unwrap().clone()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 3000 } else { 30_000 }))]

    #[test]
    fn a_full_line_is_valid_for_both(line in full()) {
        let line = Value::Object(line).to_string();
        prop_assert_eq!(is_valid(&line), Some(true));
        agrees(&line)?;
    }

    #[test]
    fn a_line_that_lacks_a_key_or_two_is_judged_alike(
        mut line in full(), without in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        for index in without {
            let key = line.keys().nth(index.index(line.len())).unwrap().clone();
            line.remove(&key);
        }
        agrees(&Value::Object(line).to_string())?;
    }

    #[test]
    fn a_line_with_odd_values_is_judged_alike(
        mut line in full(), odd in prop::collection::vec((any::<prop::sample::Index>(), odd()), 1..4),
    ) {
        for (index, value) in odd {
            let key = line.keys().nth(index.index(line.len())).unwrap().clone();
            line.insert(key, value);
        }
        agrees(&Value::Object(line).to_string())?;
    }

    #[test]
    fn a_line_with_a_wrong_letter_is_judged_alike(
        line in full(), at in any::<prop::sample::Index>(), with in "[\\[\\]{},:\"\\\\0-9eE.+ntfua -]{0,2}",
    ) {
        let mut letters: Vec<_> = Value::Object(line).to_string().chars().collect();
        let at = at.index(letters.len());
        letters.splice(at..=at, with.chars());
        agrees(&letters.into_iter().collect::<String>())?;
    }

    #[test]
    fn of_a_key_that_comes_twice_the_last_counts_for_both(
        line in full(), again in any::<prop::sample::Index>(), value in odd(), first in any::<bool>(),
    ) {
        let key = line.keys().nth(again.index(line.len())).unwrap().clone();
        let text = Value::Object(line).to_string();
        let member = format!("{}:{value}", Value::from(key));
        let text = match first {
            true => format!("{{{member},{}", &text[1..]),
            false => format!("{},{member}}}", &text[..text.len() - 1]),
        };
        agrees(&text)?;
    }
}

#[test]
fn numbers_in_all_spellings_are_judged_alike() {
    for number in [
        "1.0",
        "1e2",
        "100e-2",
        "1.5",
        "15e-1",
        "-0",
        "-0.0",
        "0.0e5",
        "-1",
        "1e-1",
        "9223372036854775808",
        "18446744073709551616",
        "1e300",
        "123456789012345678901234567890",
        "01",
        "1.",
        ".5",
        "+1",
        "NaN",
        "\"1\"",
    ] {
        let line = format!(r#"{{"type":"init","pid":{number},"app":"a","ts_ns":1}}"#);
        assert_eq!(is_accepted(&line), is_valid(&line).unwrap(), "{line}");
    }
}

#[test]
fn the_logs_of_real_producers_are_judged_alike() {
    for name in [
        "examples.ndjson",
        "invalid.ndjson",
        "stress.scope.log",
        "gpufl_basic.kernel.0.log",
        "gpufl_basic.scope.0.log",
        "gpufl_basic.system.0.log",
    ] {
        let log = fixture(&format!("gpumon/{name}"));
        for line in std::str::from_utf8(&log).unwrap().lines() {
            assert_eq!(is_accepted(line), is_valid(line).unwrap(), "{name}: {line}");
        }
    }
}
