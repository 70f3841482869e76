//! Line for line the verdicts, the events and the error texts of the format's reference.

use std::path::PathBuf;

use warpgauge_formats::json::Reader;
use warpgauge_formats::telemetry::{Fault, Options, TelemetryEvent};

use crate::canonical::canonical;

fn fixture(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/telemetry");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// What the reference says: the event as JSON text, or its error.
fn expected(line: &str) -> Result<&str, String> {
    let (mut event, mut error) = ("", None);
    let mut reader = Reader::new(line);
    reader.enter_object().unwrap();
    while let Some(key) = reader.next_key().unwrap() {
        let value = reader.skip().unwrap();
        match &*key {
            "event" => event = value,
            "error" if value != "null" => {
                error = Some(Reader::new(value).text().unwrap().into_owned());
            }
            _ => {}
        }
    }
    error.map_or(Ok(event), Err)
}

#[test]
fn every_record_gets_the_verdict_of_the_reference() {
    let (records, verdicts) = (fixture("records.ndjson"), fixture("expected.ndjson"));
    let (mut accepted, mut refused, mut no_json) = (0, 0, 0);
    let records: Vec<_> = records.strip_suffix('\n').unwrap().split('\n').collect();
    let verdicts: Vec<_> = verdicts.lines().collect();
    assert_eq!(records.len(), verdicts.len());
    for (number, (record, verdict)) in records.into_iter().zip(verdicts).enumerate() {
        let place = format!("record {}: {record}\n{verdict}", number + 1);
        match (TelemetryEvent::from_json(record, &Options::default()), expected(verdict)) {
            (Ok(event), Ok(expected)) => {
                let mut text = vec![];
                event.write(&mut text);
                let text = String::from_utf8(text).unwrap();
                assert_eq!(canonical(&text), canonical(expected), "{place}");
                assert_eq!(
                    TelemetryEvent::from_v2_json(&text, &Options::default()).as_ref(),
                    Ok(&event),
                    "what is written is read back: {place}",
                );
                accepted += 1;
            }
            (Err(Fault::Json(_)), Err(expected)) => {
                assert!(expected.contains("(char "), "an error of a JSON parser: {place}");
                no_json += 1;
            }
            (Err(fault), Err(expected)) => {
                assert_eq!(fault.to_string(), expected, "{place}");
                refused += 1;
            }
            (got, _) => panic!("{got:?}\n{place}"),
        }
    }
    assert_eq!((accepted, refused, no_json), (185, 154, 11));
}
