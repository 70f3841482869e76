//! The reader of one log, whatever its format.

use std::sync::LazyLock;

use warpgauge_formats::finding::{Finding, Sink};
use warpgauge_formats::gpu_flight::Batches;
use warpgauge_formats::loss::Losses;
use warpgauge_formats::telemetry::{Fault, Options, TelemetryEvent, scope_sample};
use warpgauge_formats::{gpu_flight, gpumon};

use crate::config::events::EventFormat;

/// Reads the lines of a log.
#[derive(Debug)]
pub enum Reader {
    /// gpumon's, as its producers write it.
    Gpumon(gpumon::Reader),
    /// GPU Flight's, of both forms.
    GpuFlight(gpu_flight::Reader),
    /// Telemetry, a record a line. It hands on what an event has a place for, the device's memory.
    Telemetry,
}

impl Reader {
    /// A reader that has read nothing.
    #[must_use]
    pub fn new(format: EventFormat) -> Self {
        match format {
            EventFormat::Gpumon => Self::Gpumon(gpumon::Reader::new(gpumon::Mode::Tolerant)),
            EventFormat::GpuFlight => Self::GpuFlight(gpu_flight::Reader::new()),
            EventFormat::TelemetryV2 => Self::Telemetry,
        }
    }

    /// Reads one line, without its newline.
    pub fn line(&mut self, number: u64, bytes: &[u8], sink: &mut dyn Sink) {
        match self {
            Self::Gpumon(reader) => reader.line(number, bytes, sink),
            Self::GpuFlight(reader) => reader.line(number, bytes, sink),
            Self::Telemetry if bytes.trim_ascii().is_empty() => {}
            Self::Telemetry => match telemetry_record(bytes) {
                Ok(record) => {
                    // All that it cannot hold is in the record.
                    let sample = scope_sample(&record, &mut Losses::default());
                    sample.iter().for_each(|event| sink.event(number, event));
                }
                Err(fault) => {
                    let found = format!("one that is refused: {fault}");
                    sink.finding(Finding::refused(number, "", "a telemetry record", found));
                }
            },
        }
    }

    /// Whether that line, the last one read, waits for others: what it tells comes later.
    #[must_use]
    pub fn waits(&self, line: u64) -> bool {
        matches!(self, Self::GpuFlight(reader) if reader.waits(line))
    }

    /// The batches that were read, in formats that have them.
    pub fn batches(&self) -> impl Iterator<Item = Batches<'_>> {
        let reader = match self {
            Self::Gpumon(_) | Self::Telemetry => None,
            Self::GpuFlight(reader) => Some(reader),
        };
        reader.into_iter().flat_map(gpu_flight::Reader::batches)
    }

    /// Takes batches for read.
    pub fn skip_batches(&mut self, batches: &Batches<'_>) {
        if let Self::GpuFlight(reader) = self {
            reader.skip_batches(batches);
        }
    }
}

/// How the records of files that grow are read: legacy ones, and those of later producers, too.
static TELEMETRY: LazyLock<Options> =
    LazyLock::new(|| Options { accept_distributed: true, ..Options::default() });

/// The telemetry record that a line is.
pub(super) fn telemetry_record(line: &[u8]) -> Result<TelemetryEvent<'_>, Fault> {
    let text = std::str::from_utf8(line)
        .map_err(|fault| Fault::NotUtf8 { valid_up_to: fault.valid_up_to() })?;
    TelemetryEvent::from_json(text, &TELEMETRY)
}

/// Which files one reader reads: a gpumon file with what rotation made of it, all channels of a GPU
/// Flight session. `family` is a path without what rotation put into it.
#[must_use]
pub fn log_of(format: EventFormat, family: &str) -> String {
    match format {
        EventFormat::Gpumon | EventFormat::TelemetryV2 => family.to_owned(),
        EventFormat::GpuFlight => {
            let prefix = |channel: gpu_flight::Channel| {
                family.strip_suffix(&format!(".{}.log", channel.name()))
            };
            let prefix = gpu_flight::Channel::ALL.into_iter().find_map(prefix);
            prefix.map_or_else(|| family.to_owned(), |prefix| format!("{prefix}.log"))
        }
    }
}
