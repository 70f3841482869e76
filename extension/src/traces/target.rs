//! The forms in which traces can be written.

use warpgauge_formats::loss::Losses;
use warpgauge_formats::trace::Record;
use warpgauge_formats::{chrome, kineto, perfetto};

use crate::events::format::Format;

/// A trace that is being written.
#[derive(Debug)]
pub(super) enum Target {
    Kineto(Box<kineto::Writer>),
    Chrome(Box<chrome::Writer>),
    Perfetto(Box<perfetto::Writer>),
}

impl Target {
    /// A trace of that format, one of several that are written at once and share their memory.
    pub(super) fn new(format: Format, at_once: usize) -> Self {
        match format {
            Format::Perfetto => {
                let window = perfetto::DEFAULT_WINDOW / at_once.max(1);
                Self::Perfetto(Box::new(perfetto::Writer::with_window(window)))
            }
            Format::Chrome => {
                let window = chrome::DEFAULT_WINDOW / at_once.max(1);
                Self::Chrome(Box::new(chrome::Writer::with_window(window)))
            }
            _ => Self::Kineto(Box::default()),
        }
    }

    /// Appends to `out` what can be written by now.
    pub(super) fn write(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Kineto(writer) => writer.write(record, out),
            Self::Chrome(writer) => writer.write(record, out),
            Self::Perfetto(writer) => writer.write(record, out),
        }
    }

    /// Appends what is left.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Kineto(writer) => writer.finish(out),
            Self::Chrome(writer) => writer.finish(out),
            Self::Perfetto(writer) => writer.finish(out),
        }
    }

    /// What the form cannot hold.
    pub(super) fn losses(&self) -> &Losses {
        match self {
            Self::Kineto(writer) => writer.losses(),
            Self::Chrome(writer) => writer.losses(),
            Self::Perfetto(writer) => writer.losses(),
        }
    }
}
