//! A sink that keeps what it is given, and the traces that it is given it from.

use std::io::Read;
use std::path::PathBuf;

use warpgauge_formats::finding::Finding;
use warpgauge_formats::json::stream::Error;
use warpgauge_formats::kineto;
use warpgauge_formats::trace::{Record, Sink};

/// All that a reader said.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) records: Vec<(u64, Record<'static>)>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) unknown: Vec<(u64, String)>,
}

impl Sink for Collected {
    fn record(&mut self, line: u64, record: &Record<'_>) {
        self.records.push((line, record.clone().into_owned()));
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

    /// The records alone.
    pub(crate) fn into_records(self) -> Vec<Record<'static>> {
        self.records.into_iter().map(|(_, record)| record).collect()
    }
}

/// What a trace tells.
pub(crate) fn kineto(trace: &[u8]) -> Collected {
    let (collected, result) = try_kineto(trace);
    result.unwrap_or_else(|error| panic!("{error}"));
    collected
}

/// What a trace tells, and how reading it ended.
pub(crate) fn try_kineto(trace: impl Read) -> (Collected, Result<(), Error>) {
    let mut collected = Collected::default();
    let result = kineto::read(trace, &mut collected);
    (collected, result)
}

/// Writes records as Kineto's document.
pub(crate) fn written(records: &[Record<'_>]) -> Vec<u8> {
    let (mut writer, mut out) = (kineto::Writer::new(), vec![]);
    for record in records {
        writer.write(record, &mut out);
    }
    writer.finish(&mut out);
    assert!(writer.losses().is_empty(), "{:?}", writer.losses());
    out
}

/// The traces of `tests/fixtures/kineto` that are JSON.
pub(crate) const FIXTURES: [&str; 6] = [
    "backward_thread.json",
    "benchmark_simple_add_trace.json.gz",
    "event_sync_trace.json.gz",
    "mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "torch_cpu_plain.json",
    "triton_example.json.gz",
];

/// A file of `tests/fixtures/kineto`, unpacked.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/kineto");
    let file = folder.join(name);
    let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    if !name.ends_with(".gz") {
        return bytes;
    }
    let mut unpacked = vec![];
    flate2::read::GzDecoder::new(&*bytes).read_to_end(&mut unpacked).unwrap();
    unpacked
}
