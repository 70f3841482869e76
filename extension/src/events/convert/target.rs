//! The formats that can be written.

use std::io::Write;
use std::path::{Path, PathBuf};

use warpgauge_formats::event::Event;
use warpgauge_formats::gpu_flight::{Columnar, Details, Fat};
use warpgauge_formats::gpumon;

use super::ConvertError;
use super::sheets::Sheets;
use crate::events::format::Format;
use crate::events::tables::DataSet;

/// A log that is being written.
pub(super) enum Target {
    Gpumon { writer: gpumon::Writer, sheets: Sheets, line: Vec<u8> },
    Columnar { writer: Columnar, sheets: Sheets },
    Fat { writer: Fat, sheets: Sheets },
    Tables(DataSet),
}

impl Target {
    /// A log of that format at `out`, or on standard output. Tables without a folder go nowhere:
    /// the command line asks for one.
    pub(super) fn create(
        to: Format,
        details: Details,
        out: Option<&Path>,
    ) -> Result<Self, ConvertError> {
        Ok(match to {
            Format::Gpumon => {
                let writer = gpumon::Writer::new();
                Self::Gpumon { writer, sheets: Sheets::one(out)?, line: vec![] }
            }
            Format::GpuFlight => {
                Self::Columnar { writer: Columnar::new(details), sheets: Sheets::of_channels(out)? }
            }
            Format::GpuFlightFat => {
                Self::Fat { writer: Fat::new(), sheets: Sheets::of_channels(out)? }
            }
            Format::Parquet => Self::Tables(DataSet::new(out.unwrap_or(Path::new("tables")))),
            Format::Kineto | Format::Chrome | Format::Perfetto => {
                return Err(ConvertError::NoLog(to));
            }
        })
    }

    pub(super) fn write(&mut self, event: &Event<'_>) -> Result<(), ConvertError> {
        match self {
            Self::Gpumon { writer, sheets, line } => {
                line.clear();
                writer.write(event, line);
                sheets.write(line)
            }
            Self::Columnar { writer, sheets } => {
                writer.write(event, sheets);
                sheets.fault()
            }
            Self::Fat { writer, sheets } => {
                writer.write(event, sheets);
                sheets.fault()
            }
            Self::Tables(tables) => Ok(tables.write(event)?),
        }
    }

    /// Writes what waits, and tells what could not be written.
    pub(super) fn losses(&mut self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Gpumon { writer, .. } => writer.losses().iter().collect(),
            Self::Columnar { writer, sheets } => {
                writer.flush(sheets);
                writer.losses().iter().collect()
            }
            Self::Fat { writer, .. } => writer.losses().iter().collect(),
            // Tables have a column for all that an event can tell.
            Self::Tables(_) => vec![],
        }
    }

    /// Gives the log its name.
    pub(super) fn place(
        self,
        replace: bool,
        stdout: &mut dyn Write,
    ) -> Result<Vec<PathBuf>, ConvertError> {
        match self {
            Self::Gpumon { sheets, .. } | Self::Fat { sheets, .. } => sheets.place(replace, stdout),
            Self::Columnar { mut sheets, .. } => {
                sheets.fault()?;
                sheets.place(replace, stdout)
            }
            Self::Tables(tables) => Ok(tables.finish(replace)?),
        }
    }
}
