//! What real profilers wrote, judged by a reader of JSON that is not ours.

use std::io::Read;

use serde_json::{Value, json};
use warpgauge_formats::kineto::Repaired;
use warpgauge_formats::time::{Span, Timestamp};
use warpgauge_formats::trace::{EventType, Record};

use crate::collect::{FIXTURES, fixture, kineto, written};

/// A document in the form in which two that say the same are equal: times are numbers however they
/// are spelt, and no arguments are as good as an empty list of them.
fn comparable(document: &[u8]) -> Value {
    let mut document: Value = serde_json::from_slice(document).unwrap();
    for event in document["traceEvents"].as_array_mut().unwrap() {
        for time in ["ts", "dur"] {
            if let Some(value) = event.get_mut(time) {
                *value = json!(value.as_f64().unwrap());
            }
        }
        if ["X", "i", "B", "E"].contains(&event["ph"].as_str().unwrap()) {
            event.as_object_mut().unwrap().entry("args").or_insert_with(|| json!({}));
        }
    }
    document
}

#[test]
fn every_trace_comes_back_with_every_event_in_its_place() {
    for name in FIXTURES {
        let trace = fixture(name);
        let read = kineto(&trace);
        assert_eq!(read.said(), [""; 0], "{name}");
        assert_eq!(read.unknown, [], "{name}");
        let records = read.into_records();
        assert!(!records.iter().any(|record| matches!(record, Record::Other(_))), "{name}");
        let again = written(&records);
        assert_eq!(comparable(&again), comparable(&trace), "{name}");
        assert_eq!(kineto(&again).into_records().len(), records.len());
    }
}

#[test]
fn a_mended_trace_comes_back_like_the_others() {
    let broken = fixture("invalid_unescaped_metadata.json");
    let mut mended = vec![];
    let mut repaired = Repaired::new(&*broken);
    repaired.read_to_end(&mut mended).unwrap();
    assert_eq!(repaired.mended(), 2);
    let read = kineto(&mended);
    assert_eq!((read.said(), &*read.unknown), (vec![], &[][..]));
    let records = read.into_records();
    assert_eq!(comparable(&written(&records)), comparable(&mended));
    assert_eq!(comparable(&mended)["note"], "say \"hi\"");
    let memory = records.iter().filter(|record| matches!(record, Record::Memory(_))).count();
    assert_eq!(memory, 42);
}

#[test]
fn a_kernel_tells_how_it_was_launched_and_what_launched_it() {
    let records = kineto(&fixture("triton_example.json.gz")).into_records();
    let events = || {
        records.iter().filter_map(|record| match record {
            Record::Event(event) => Some(event),
            _ => None,
        })
    };
    let kernel = events().find(|event| event.event_type == EventType::KernelComplete).unwrap();
    assert_eq!(kernel.name, "triton_poi_fused_add_cos_sin_0");
    assert_eq!(kernel.timestamp, Timestamp(2_413_669_097_444_592));
    assert_eq!(kernel.duration, Some(Span(1_760)));
    assert_eq!((kernel.device, kernel.stream, kernel.thread), (Some(0), Some(7), None));
    assert_eq!(kernel.kernel.grid, Some([1, 1, 1]));
    assert_eq!(kernel.kernel.block, Some([128, 1, 1]));
    assert_eq!((kernel.kernel.registers, kernel.kernel.shared_bytes), (Some(16), Some(0)));
    let launch = events().find(|event| event.event_type == EventType::KernelLaunch).unwrap();
    assert_eq!((launch.correlation, launch.correlation), (kernel.correlation, Some(35)));
    assert_eq!((launch.linked, launch.linked), (kernel.linked, Some(3)));
    assert_eq!(launch.thread, Some(1_670_242));
    let base = records.iter().find_map(|record| match record {
        Record::BaseTime(base) => Some(*base),
        _ => None,
    });
    assert_eq!(base, Some(1_727_743_122_000_000_000));
}
