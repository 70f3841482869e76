//! Whatever a gpumon log holds: no panic, strict mode takes no line that plainly breaks the schema,
//! and what is written of its events is valid and tells the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpgauge_formats::event::{Event, What};
use warpgauge_formats::finding::{Finding, Severity, Sink};
use warpgauge_formats::gpumon::{Mode, Reader, Writer};

#[derive(Default)]
struct Collected {
    events: Vec<Event<'static>>,
    refused: u64,
}

impl Sink for Collected {
    fn event(&mut self, _: u64, event: &Event<'_>) {
        self.events.push(event.clone().into_owned());
    }

    fn finding(&mut self, finding: Finding) {
        self.refused += u64::from(finding.severity == Severity::Refused);
    }

    fn unknown(&mut self, _: u64, _: &str) {}
}

fn read(mode: Mode, log: &[u8]) -> Collected {
    let (mut reader, mut collected) = (Reader::new(mode), Collected::default());
    for (number, line) in (1..).zip(log.split(|byte| *byte == b'\n')) {
        reader.line(number, line, &mut collected);
    }
    collected
}

fuzz_target!(|log: &[u8]| {
    read(Mode::Tolerant, log);
    let strict = read(Mode::Strict, log);
    for event in &strict.events {
        assert!(event.source.pid.is_some_and(|pid| pid >= 0));
        assert!(event.source.app.as_ref().is_some_and(|app| !app.is_empty()));
        match &event.what {
            What::Kernel(kernel) => {
                assert!(!kernel.name.is_empty() && kernel.error.is_some());
                assert!(kernel.grid.into_iter().chain(kernel.block).flatten().all(|extent| extent >= 0));
            }
            What::Scope(scope) => assert!(!scope.name.is_empty() && scope.time.0 >= 0),
            What::Start(_) | What::End(_) => {}
            other => panic!("the schema has no {other:?}"),
        }
    }
    let (mut writer, mut written) = (Writer::new(), Vec::new());
    strict.events.iter().for_each(|event| writer.write(event, &mut written));
    let again = read(Mode::Strict, &written);
    assert_eq!(again.refused, 0);
    if writer.losses().is_empty() {
        assert_eq!(again.events, strict.events);
    }
});
