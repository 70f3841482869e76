//! What a log can make its reader remember has an end, which is said.

use warpgauge_formats::event::Event;
use warpgauge_formats::finding::{Finding, Sink};
use warpgauge_formats::gpu_flight::Reader;

/// Counts, and keeps the last finding.
#[derive(Default)]
struct Count {
    events: u64,
    findings: u64,
    last: String,
}

impl Sink for Count {
    fn event(&mut self, _: u64, _: &Event<'_>) {
        self.events += 1;
    }

    fn finding(&mut self, finding: Finding) {
        self.findings += 1;
        self.last = finding.to_string();
    }

    fn unknown(&mut self, _: u64, _: &str) {}
}

fn dictionary(session: usize, id: usize, text: &str) -> String {
    format!(
        r#"{{"type":"dictionary_update","session_id":"{session}","kernel_dict":{{"{id}":"{text}"}}}}"#
    )
}

#[test]
fn the_dictionaries_of_one_session_have_a_limit() {
    let (mut reader, mut count) = (Reader::new(), Count::default());
    for id in 1..=10 {
        let text = format!("{id:04}") + &"x".repeat(1 << 20);
        reader.line(id as u64, dictionary(0, id, &text).as_bytes(), &mut count);
    }
    assert_eq!(count.findings, 3, "7 texts of more than a mebibyte fit into 8");
    assert!(
        count
            .last
            .ends_with("found the dictionary is full: it holds 8388608 bytes of distinct texts")
    );
}

#[test]
fn all_sessions_together_have_a_limit() {
    let (mut reader, mut count) = (Reader::new(), Count::default());
    let filler = "x".repeat(1 << 20);
    for session in 0..70 {
        let line = dictionary(session, 1, &format!("{session}{filler}"));
        reader.line(session as u64 + 1, line.as_bytes(), &mut count);
    }
    assert_eq!(count.findings, 7, "63 texts of more than a mebibyte fit into 64");
    assert!(
        count.last.contains("more: 67108864 bytes of all sessions are remembered already"),
        "{}",
        count.last
    );
}

#[test]
fn ids_that_all_name_one_text_have_a_limit_too() {
    let (mut reader, mut count) = (Reader::new(), Count::default());
    let entries =
        |from: usize| (from..from + 50_000).map(|id| format!(r#""{}":"k""#, id * 1000 + 1));
    for line in 0..20 {
        let table = entries(line * 50_000).collect::<Vec<_>>().join(",");
        let text =
            format!(r#"{{"type":"dictionary_update","session_id":"s","kernel_dict":{{{table}}}}}"#);
        reader.line(line as u64 + 1, text.as_bytes(), &mut count);
    }
    assert!(
        (300_000..400_000).contains(&count.findings),
        "64 MiB hold 690,000 entries of 97 bytes"
    );
}

#[test]
fn there_is_an_end_to_sessions() {
    let (mut reader, mut count) = (Reader::new(), Count::default());
    for session in 0..1100 {
        reader.line(1, dictionary(session, 1, "k").as_bytes(), &mut count);
    }
    assert_eq!(count.findings, 1100 - 1024);
    assert_eq!(
        count.last,
        "line 1: session_id: expected at most 1024 sessions in a log, found 1099"
    );
}

#[test]
fn batches_that_wait_for_ever_are_crowded_out_and_named() {
    let (mut reader, mut count) = (Reader::new(), Count::default());
    let row = ",[0,1,7]".repeat(50_000);
    for number in 1..=100 {
        let line = format!(
            r#"{{"type":"kernel_event_batch","session_id":"s","batch_id":{number},"base_time_ns":0,"columns":["dt_ns","kernel_id","duration_ns"],"rows":[[0,2,7]{row}]}}"#
        );
        reader.line(number, line.as_bytes(), &mut count);
    }
    // Each is 0.4 MB, so that 20 wait in 8 MiB; each that went named two ids.
    assert_eq!(count.findings, 2 * 80);
    reader.line(101, dictionary_of_s().as_bytes(), &mut count);
    assert_eq!((count.findings, count.events), (2 * 80, 20 * 50_001));
}

fn dictionary_of_s() -> String {
    r#"{"type":"dictionary_update","session_id":"s","kernel_dict":{"1":"k","2":"l"}}"#.to_owned()
}
