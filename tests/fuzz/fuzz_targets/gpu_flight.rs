//! Whatever a GPU Flight log holds: no panic; and what is written of its events is read without a
//! finding, and with bytes changed in it still without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpgauge_formats::event::Event;
use warpgauge_formats::finding::{Finding, Sink};
use warpgauge_formats::gpu_flight::{Channel, Channels, Columnar, Details, Fat, Reader};

#[derive(Default)]
struct Collected {
    events: Vec<Event<'static>>,
    findings: Vec<Finding>,
}

impl Sink for Collected {
    fn event(&mut self, _: u64, event: &Event<'_>) {
        self.events.push(event.clone().into_owned());
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn unknown(&mut self, _: u64, _: &str) {}
}

#[derive(Default)]
struct Logs([Vec<u8>; 3]);

impl Channels for Logs {
    fn write(&mut self, channel: Channel, lines: &[u8]) {
        self.0[channel as usize].extend_from_slice(lines);
    }
}

fn read(log: &[u8]) -> Collected {
    let (mut reader, mut collected) = (Reader::new(), Collected::default());
    for (number, line) in (1..).zip(log.split(|byte| *byte == b'\n')) {
        reader.line(number, line, &mut collected);
    }
    reader.end(&mut collected);
    collected
}

fuzz_target!(|input: (&[u8], Vec<(u16, u8)>)| {
    let (log, changes) = input;
    let events = read(log).events;
    let (mut columnar, mut batches) = (Columnar::new(Details::All), Logs::default());
    let (mut fat, mut wide) = (Fat::new(), Logs::default());
    for (place, event) in events.iter().enumerate() {
        columnar.write(event, &mut batches);
        fat.write(event, &mut wide);
        if changes.len() > place && changes[place].1 == 0 {
            columnar.rotated(Channel::ALL[place % 3]);
        }
    }
    columnar.flush(&mut batches);
    for log in batches.0.into_iter().chain(wide.0) {
        let again = read(&log);
        assert!(again.findings.is_empty(), "{:?}", again.findings);
        let mut damaged = log;
        for (at, byte) in &changes {
            let length = damaged.len();
            if length > 0 {
                damaged[usize::from(*at) % length] = *byte;
            }
        }
        read(&damaged);
    }
});
