//! From TelemetryEvent v2 to what is no trace.

use std::cell::Cell;
use std::io::Write;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use warpgauge_formats::finding::Finding;
use warpgauge_formats::gpumon;
use warpgauge_formats::loss::Losses;
use warpgauge_formats::telemetry::{TelemetryEvent, scope_sample};

use super::sheets::Sheets;
use super::{Conversion, ConvertError, Notes, Report};
use crate::events::format::Format;
use crate::events::log::Opened;
use crate::events::tables::DataSet;
use crate::events::telemetry::Follow;

pub(super) fn convert(
    conversion: &Conversion,
    opened: Opened,
    bar: &ProgressBar,
    stdout: &mut dyn Write,
) -> Result<Report, ConvertError> {
    let failed = Cell::new(false);
    let mut writing = Writing {
        target: Target::create(conversion.to, conversion.out.as_deref())?,
        losses: Losses::default(),
        notes: Notes::default(),
        fault: None,
        failed: &failed,
    };
    conversion.telemetry.read(opened, bar, &failed, &mut writing)?;
    let Writing { target, losses, notes, fault, .. } = writing;
    fault.map_or(Ok(()), Err)?;
    let named = |(name, count): (&str, u64)| (name.to_owned(), count);
    let losses = notes.losses().chain(losses.iter().map(named));
    let losses: Vec<_> = losses.chain(target.losses().into_iter().map(named)).collect();
    let mut report = Report { events: notes.events, losses, notes, ..Report::default() };
    if report.losses.is_empty() || conversion.lossy {
        report.written = target.place(conversion.force, stdout)?;
        report.is_placed = true;
    }
    Ok(report)
}

enum Target {
    /// A record a line.
    Records {
        sheets: Sheets,
        line: Vec<u8>,
    },
    Gpumon {
        writer: gpumon::Writer,
        sheets: Sheets,
        line: Vec<u8>,
    },
    Table(DataSet),
}

impl Target {
    fn create(to: Format, out: Option<&Path>) -> Result<Self, ConvertError> {
        Ok(match to {
            Format::Telemetry => Self::Records { sheets: Sheets::one(out)?, line: vec![] },
            Format::Gpumon => {
                let writer = gpumon::Writer::new();
                Self::Gpumon { writer, sheets: Sheets::one(out)?, line: vec![] }
            }
            Format::Parquet => Self::Table(DataSet::new(out.unwrap_or(Path::new("tables")))),
            _ => return Err(ConvertError::NotFromTelemetry(to)),
        })
    }

    fn write(
        &mut self,
        event: &TelemetryEvent<'_>,
        losses: &mut Losses,
    ) -> Result<(), ConvertError> {
        match self {
            Self::Records { sheets, line } => {
                line.clear();
                event.write(line);
                line.push(b'\n');
                sheets.write(line)
            }
            Self::Gpumon { writer, sheets, line } => {
                line.clear();
                if let Some(sample) = scope_sample(event, losses) {
                    writer.write(&sample, line);
                }
                sheets.write(line)
            }
            Self::Table(tables) => Ok(tables.write_telemetry(event, losses)?),
        }
    }

    fn losses(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Gpumon { writer, .. } => writer.losses().iter().collect(),
            Self::Records { .. } | Self::Table(_) => vec![],
        }
    }

    fn place(self, replace: bool, stdout: &mut dyn Write) -> Result<Vec<PathBuf>, ConvertError> {
        match self {
            Self::Records { sheets, .. } | Self::Gpumon { sheets, .. } => {
                sheets.place(replace, stdout)
            }
            Self::Table(tables) => Ok(tables.finish(replace)?),
        }
    }
}

/// The way into the target.
struct Writing<'c> {
    target: Target,
    losses: Losses,
    notes: Notes,
    fault: Option<ConvertError>,
    failed: &'c Cell<bool>,
}

impl Follow for Writing<'_> {
    fn file_begins(&mut self, name: &str, lines_before: u64) {
        self.notes.places.file_begins(name, lines_before);
    }

    fn event(&mut self, _: u64, event: &TelemetryEvent<'_>) {
        self.notes.events += 1;
        if self.fault.is_none() {
            self.fault = self.target.write(event, &mut self.losses).err();
            self.failed.set(self.fault.is_some());
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.notes.finding(&finding);
    }
}
