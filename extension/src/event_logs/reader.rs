//! The reader of one log, whatever its format.

use warpgauge_formats::finding::Sink;
use warpgauge_formats::gpu_flight::Batches;
use warpgauge_formats::{gpu_flight, gpumon};

use crate::config::events::EventFormat;

/// Reads the lines of a log.
#[derive(Debug)]
pub enum Reader {
    /// gpumon's, as its producers write it.
    Gpumon(gpumon::Reader),
    /// GPU Flight's, of both forms.
    GpuFlight(gpu_flight::Reader),
}

impl Reader {
    /// A reader that has read nothing.
    #[must_use]
    pub fn new(format: EventFormat) -> Self {
        match format {
            EventFormat::Gpumon => Self::Gpumon(gpumon::Reader::new(gpumon::Mode::Tolerant)),
            EventFormat::GpuFlight => Self::GpuFlight(gpu_flight::Reader::new()),
        }
    }

    /// Reads one line, without its newline.
    pub fn line(&mut self, number: u64, bytes: &[u8], sink: &mut dyn Sink) {
        match self {
            Self::Gpumon(reader) => reader.line(number, bytes, sink),
            Self::GpuFlight(reader) => reader.line(number, bytes, sink),
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
            Self::Gpumon(_) => None,
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

/// Which files one reader reads: a gpumon file with what rotation made of it, all channels of a GPU
/// Flight session. `family` is a path without what rotation put into it.
#[must_use]
pub fn log_of(format: EventFormat, family: &str) -> String {
    match format {
        EventFormat::Gpumon => family.to_owned(),
        EventFormat::GpuFlight => {
            let prefix = |channel: gpu_flight::Channel| {
                family.strip_suffix(&format!(".{}.log", channel.name()))
            };
            let prefix = gpu_flight::Channel::ALL.into_iter().find_map(prefix);
            prefix.map_or_else(|| family.to_owned(), |prefix| format!("{prefix}.log"))
        }
    }
}
