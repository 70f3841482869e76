//! A sink that keeps what it is given, and the logs that it is given it from.

use std::path::PathBuf;

use warpgauge_formats::event::{Event, Kernel, Scope, What};
use warpgauge_formats::finding::{Finding, Severity, Sink};
use warpgauge_formats::gpu_flight::{self, Channel, Channels};
use warpgauge_formats::gpumon::{self, Mode};
use warpgauge_formats::lines::Lines;

/// All that a reader said.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) events: Vec<(u64, Event<'static>)>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) unknown: Vec<(u64, String)>,
}

impl Sink for Collected {
    fn event(&mut self, line: u64, event: &Event<'_>) {
        self.events.push((line, event.clone().into_owned()));
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.unknown.push((line, name.to_owned()));
    }
}

impl Collected {
    /// The findings as a person reads them.
    pub(crate) fn said(&self) -> Vec<String> {
        self.findings.iter().map(ToString::to_string).collect()
    }

    /// The lines, and the fields in them, for which there was no event.
    pub(crate) fn refused(&self) -> Vec<(u64, &str)> {
        let refused = self.findings.iter().filter(|finding| finding.severity == Severity::Refused);
        refused.map(|finding| (finding.line, finding.field.as_str())).collect()
    }

    /// The unknown names, without their lines.
    pub(crate) fn unknown_names(&self) -> Vec<&str> {
        self.unknown.iter().map(|(_, name)| name.as_str()).collect()
    }

    pub(crate) fn kernels(&self) -> Vec<Kernel<'static>> {
        let kernel = |(_, event): &(u64, Event<'static>)| match &event.what {
            What::Kernel(kernel) => Some(kernel.clone()),
            _ => None,
        };
        self.events.iter().filter_map(kernel).collect()
    }

    pub(crate) fn scopes(&self) -> Vec<Scope<'static>> {
        let scope = |(_, event): &(u64, Event<'static>)| match &event.what {
            What::Scope(scope) => Some(scope.clone()),
            _ => None,
        };
        self.events.iter().filter_map(scope).collect()
    }

    /// The events alone.
    pub(crate) fn into_events(self) -> Vec<Event<'static>> {
        self.events.into_iter().map(|(_, event)| event).collect()
    }
}

/// A file of `tests/fixtures`.
pub(crate) fn fixture(path: &str) -> Vec<u8> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(path);
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// What a gpumon log tells.
pub(crate) fn gpumon(mode: Mode, log: &[u8]) -> Collected {
    let (mut collected, mut reader, mut lines) =
        (Collected::default(), gpumon::Reader::new(mode), Lines::new(log));
    while let Some(line) = lines.next().unwrap() {
        reader.line(line.number, line.bytes, &mut collected);
    }
    collected
}

/// What the channels of a GPU Flight log tell, read one after the other.
pub(crate) fn gpu_flight<'l>(logs: impl IntoIterator<Item = &'l [u8]>) -> Collected {
    let mut collected = Collected::default();
    read_gpu_flight(logs, &mut collected);
    collected
}

/// Reads the channels of a GPU Flight log one after the other.
pub(crate) fn read_gpu_flight<'l>(logs: impl IntoIterator<Item = &'l [u8]>, sink: &mut dyn Sink) {
    let mut reader = gpu_flight::Reader::new();
    for log in logs {
        let mut lines = Lines::new(log);
        while let Some(line) = lines.next().unwrap() {
            reader.line(line.number, line.bytes, sink);
        }
    }
    reader.end(sink);
}

/// The three channels of a session, in memory.
#[derive(Debug, Default, Clone)]
pub(crate) struct Logs(pub(crate) [Vec<u8>; 3]);

impl Channels for Logs {
    fn write(&mut self, channel: Channel, lines: &[u8]) {
        self.0[channel as usize].extend_from_slice(lines);
    }
}

impl Logs {
    pub(crate) fn channels(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }
}
