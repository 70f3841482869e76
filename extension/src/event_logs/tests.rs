use std::path::Path;

use super::*;

const DICTIONARY: &str =
    r#"{"type":"dictionary_update","session_id":"s","kernel_dict":{"1":"gemm","2":"relu"}}"#;
const START: &str = r#"{"type":"job_start","session_id":"s","pid":7,"app":"train","ts_ns":1}"#;

fn batch(number: u64, kernel: u64) -> String {
    format!(
        r#"{{"type":"kernel_event_batch","session_id":"s","batch_id":{number},"base_time_ns":1000,"columns":["dt_ns","kernel_id","duration_ns"],"rows":[[0,{kernel},10],[5,{kernel},20]]}}"#
    )
}

fn read(logs: &mut EventLogs, format: EventFormat, lines: &[&str]) {
    read_as(false, logs, format, lines);
}

fn read_as(is_past: bool, logs: &mut EventLogs, format: EventFormat, lines: &[&str]) {
    for (number, line) in (1..).zip(lines) {
        let place = Place {
            format,
            group: Some("g"),
            path: Path::new("/logs/x.device.log.1"),
            family: "/logs/x.device.log",
            is_past,
        };
        let bytes = line.as_bytes();
        let line = Line { number, offset: 0, bytes, ended: true, too_long: false };
        logs.line(place, line);
    }
}

/// Ends a pass and begins the next one.
fn next(logs: EventLogs) -> (EventLogs, EventMetrics, Skips) {
    let (memory, metrics, skipped) = logs.into_memory(1);
    let text = memory.to_json().unwrap();
    (EventLogs::new(serde_json::from_slice(&text).unwrap()), metrics, skipped)
}

fn kernels(metrics: &EventMetrics) -> Vec<(Option<i64>, String, u64)> {
    let of = |(source, tally): (
        &crate::event_metrics::EventSource,
        &crate::event_metrics::EventTally,
    )| {
        let top = tally.kernels.top(10);
        let rows = top
            .into_iter()
            .map(|(name, durations)| (source.pid, name.unwrap().to_owned(), durations.count()));
        rows.collect::<Vec<_>>()
    };
    metrics.sources.iter().flat_map(of).collect()
}

#[test]
fn a_batch_finds_the_dictionary_and_the_process_that_an_earlier_pass_has_read() {
    let mut logs = EventLogs::default();
    read(&mut logs, EventFormat::GpuFlight, &[START, DICTIONARY]);
    let (mut logs, metrics, skipped) = next(logs);
    assert_eq!((kernels(&metrics), skipped.total()), (vec![], 0));
    // The next pass reads nothing of this log, the one after that the batch.
    read(&mut logs, EventFormat::GpuFlight, &[]);
    let (mut logs, _, _) = next(logs);
    read(&mut logs, EventFormat::GpuFlight, &[&batch(1, 2)]);
    let (_, metrics, skipped) = next(logs);
    assert_eq!(kernels(&metrics), [(Some(7), "relu".to_owned(), 2)]);
    assert_eq!(skipped.total(), 0, "{skipped:?}");
}

#[test]
fn a_batch_waits_for_its_dictionary_from_pass_to_pass_and_counts_once() {
    let mut logs = EventLogs::default();
    read(&mut logs, EventFormat::GpuFlight, &[START, &batch(1, 1)]);
    let (mut logs, metrics, _) = next(logs);
    assert_eq!(kernels(&metrics), []);
    read(&mut logs, EventFormat::GpuFlight, &[&batch(2, 3)]);
    let (mut logs, metrics, _) = next(logs);
    assert_eq!(kernels(&metrics), []);
    read(&mut logs, EventFormat::GpuFlight, &[DICTIONARY]);
    let (mut logs, metrics, skipped) = next(logs);
    assert_eq!(kernels(&metrics), [(Some(7), "gemm".to_owned(), 2)]);
    assert_eq!(skipped.total(), 0, "{skipped:?}");
    read(&mut logs, EventFormat::GpuFlight, &[&batch(4, 1)]);
    let (_, metrics, _) = next(logs);
    assert_eq!(kernels(&metrics), [(Some(7), "gemm".to_owned(), 2)]);
}

#[test]
fn what_is_not_taken_is_counted_with_its_place() {
    let mut logs = EventLogs::default();
    let kernel = r#"{"type":"kernel","pid":1,"app":"a","kernel":"k","ts_start_ns":1,"ts_end_ns":3,"duration_ns":2,"grid":[1,1,1],"block":[1,1,1],"shared_mem_bytes":0,"cuda_error":"cudaSuccess","colour":1}"#;
    let lines = ["{", kernel, r#"{"type":"kernel","pid":1}"#, r#"{"type":"party","pid":1}"#];
    read(&mut logs, EventFormat::Gpumon, &lines);
    let place = Place {
        format: EventFormat::Gpumon,
        group: None,
        path: Path::new("/logs/x.log"),
        family: "/logs/x.log",
        is_past: false,
    };
    let torn = Line { number: 5, offset: 0, bytes: b"{\"type", ended: false, too_long: false };
    logs.line(place, torn);
    let long = Line { number: 6, offset: 0, bytes: b"{", ended: true, too_long: true };
    logs.line(place, long);
    assert_eq!(logs.lines, 6);
    let (_, metrics, skipped) = next(logs);
    assert_eq!(kernels(&metrics), [(Some(1), "k".to_owned(), 1)]);
    let count = |reason| skipped.count(reason);
    assert_eq!((count(TORN), count(TOO_LONG), count(UNKNOWN_TYPE)), (1, 1, 1), "{skipped:?}");
    assert_eq!(count(UNKNOWN_FIELD), 1);
    assert!(count(REFUSED) >= 2);
    let (_, example) = skipped.iter().find(|(reason, _)| *reason == REFUSED).unwrap();
    assert!(example.example.starts_with("/logs/x.device.log.1:1: "), "{example:?}");
}

#[test]
fn a_batch_that_is_sent_again_in_a_later_pass_counts_once() {
    let mut logs = EventLogs::default();
    read(&mut logs, EventFormat::GpuFlight, &[START, DICTIONARY, &batch(1, 1), &batch(2, 3)]);
    let (mut logs, metrics, _) = next(logs);
    assert_eq!(kernels(&metrics), [(Some(7), "gemm".to_owned(), 2)]);
    // The second still waits: it has been read, and has not counted.
    let explained =
        r#"{"type":"dictionary_update","session_id":"s","kernel_dict":{"3":"softmax"}}"#;
    read(&mut logs, EventFormat::GpuFlight, &[&batch(1, 1), &batch(2, 3), explained]);
    let (mut logs, metrics, skipped) = next(logs);
    assert_eq!(kernels(&metrics), [(Some(7), "softmax".to_owned(), 2)]);
    assert_eq!((skipped.count(REFUSED), skipped.total()), (2, 2), "{skipped:?}");
    read(&mut logs, EventFormat::GpuFlight, &[&batch(2, 3), &batch(3, 1)]);
    let (_, metrics, skipped) = next(logs);
    assert_eq!(kernels(&metrics), [(Some(7), "gemm".to_owned(), 2)]);
    assert_eq!((skipped.count(REFUSED), skipped.total()), (1, 1), "{skipped:?}");
}

#[test]
fn numbers_that_leap_are_remembered_up_to_a_bound() {
    let mut logs = EventLogs::default();
    read(&mut logs, EventFormat::GpuFlight, &[START, DICTIONARY]);
    for number in 0..300 {
        read(&mut logs, EventFormat::GpuFlight, &[&batch(2 * number, 1)]);
    }
    let (mut logs, _, _) = next(logs);
    read(&mut logs, EventFormat::GpuFlight, &[&batch(598, 1), &batch(88, 1), &batch(86, 1)]);
    let (_, metrics, skipped) = next(logs);
    assert_eq!(kernels(&metrics), [(Some(7), "gemm".to_owned(), 2)]);
    assert_eq!(skipped.count(REFUSED), 2, "{skipped:?}");
}

#[test]
fn lines_of_the_past_count_nowhere_and_explain_later_ones() {
    let mut logs = EventLogs::default();
    let past = [START, DICTIONARY, &batch(1, 1), "{"];
    read_as(true, &mut logs, EventFormat::GpuFlight, &past);
    assert_eq!(logs.lines, 0);
    read(&mut logs, EventFormat::GpuFlight, &[&batch(2, 2)]);
    let (logs, metrics, skipped) = next(logs);
    assert_eq!((kernels(&metrics), skipped.total()), (vec![(Some(7), "relu".to_owned(), 2)], 0));
    let (mut logs, _, _) = next(logs);
    read(&mut logs, EventFormat::GpuFlight, &[&batch(3, 1)]);
    assert_eq!(kernels(&next(logs).1), [(Some(7), "gemm".to_owned(), 2)]);
}

#[test]
fn what_is_odd_is_taken_and_counted() {
    let mut logs = EventLogs::default();
    let odd = r#"{"type":"kernel","pid":1,"app":"a","kernel":"k","ts_start_ns":1,"ts_end_ns":3,"duration_ns":7,"grid":[1,1,1],"block":[1,1,1],"shared_mem_bytes":0,"cuda_error":"cudaSuccess"}"#;
    read(&mut logs, EventFormat::Gpumon, &[odd]);
    let (_, example) = logs.suspect.iter().next().unwrap();
    assert_eq!(example.count, 1);
    assert!(example.example.starts_with("/logs/x.device.log.1:1: duration_ns: "), "{example:?}");
    let (_, metrics, skipped) = next(logs);
    assert_eq!((kernels(&metrics).len(), skipped.total()), (1, 0));
}
