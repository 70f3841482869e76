//! From one form of traces to another, and nothing lost without a word.

use std::cell::Cell;
use std::io::Write;
use std::path::PathBuf;

use indicatif::ProgressBar;
use warpgauge_formats::finding::Finding;
use warpgauge_formats::trace::{Record, Sink};

use super::read;
use super::target::Target;
use crate::events::convert::{ConvertError, Notes, Report, Sheets};
use crate::events::format::Format;
use crate::events::log::{LogError, Opened};

/// Bytes that are gathered before they are written.
const CHUNK: usize = 256 << 10;

/// What to convert and into what.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The trace; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// Its format; without one the content tells.
    pub from: Option<Format>,
    /// The format to write.
    pub to: Format,
    /// Where to; `None` is standard output.
    pub out: Option<PathBuf>,
    /// Whether what the format cannot hold may be left out.
    pub lossy: bool,
    /// Whether what stands at `out` may be replaced.
    pub force: bool,
    /// Whether quotes that were written as `/"` are mended.
    pub repair: bool,
}

impl Conversion {
    /// Converts; what goes to standard output goes to `stdout`, as a whole at the end.
    ///
    /// # Errors
    /// Where an input cannot be opened or an output not be written. What is wrong within a trace stands
    /// in the report.
    pub fn run(&self, bar: &ProgressBar, stdout: &mut dyn Write) -> Result<Report, ConvertError> {
        let target = Target::new(self.to).ok_or(ConvertError::NoTrace(self.to))?;
        let opened = Opened::open(&self.files, self.from, bar).map_err(LogError::from)?;
        let Some(input) = opened.first else { return Err(ConvertError::NoTrace(Format::Parquet)) };
        let failed = Cell::new(false);
        let mut notes = Notes::default();
        notes.places.file_begins(&input.name, 0);
        let name = input.name.clone();
        let sheets = Sheets::one(self.out.as_deref())?;
        let mut writing =
            Writing { target, sheets, notes, fault: None, failed: &failed, events: 0, out: vec![] };
        let end = read::read(input, self.repair, &failed, &mut writing);
        let (mut report, sheets) = writing.finish()?;
        if let Some(fault) = end.fault {
            report.remarks.push(format!("{name}:{fault}"));
            report.losses.push(("the rest of a trace that cannot be read on".to_owned(), 1));
        }
        if end.mended > 0 {
            report.remarks.push(format!("{name}: {} quotes were mended", end.mended));
        }
        if report.losses.is_empty() || self.lossy {
            report.written = sheets.place(self.force, stdout)?;
            report.is_placed = true;
        }
        Ok(report)
    }
}

/// The way into a file.
struct Writing<'c> {
    target: Target,
    sheets: Sheets,
    notes: Notes,
    fault: Option<ConvertError>,
    failed: &'c Cell<bool>,
    events: u64,
    out: Vec<u8>,
}

impl Writing<'_> {
    fn flush(&mut self) {
        if self.fault.is_none() {
            self.fault = self.sheets.write(&self.out).err();
            self.failed.set(self.fault.is_some());
        }
        self.out.clear();
    }

    fn finish(mut self) -> Result<(Report, Sheets), ConvertError> {
        self.target.finish(&mut self.out);
        self.flush();
        self.fault.map_or(Ok(()), Err)?;
        let losses = self.target.losses().iter().map(|(name, count)| (name.to_owned(), count));
        let losses = losses.collect();
        let report = Report { events: self.events, losses, notes: self.notes, ..Report::default() };
        Ok((report, self.sheets))
    }
}

impl Sink for Writing<'_> {
    fn record(&mut self, _: u64, record: &Record<'_>) {
        self.events += 1;
        self.target.write(record, &mut self.out);
        if self.out.len() >= CHUNK {
            self.flush();
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.notes.finding(&finding);
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.notes.unknown.note(line, name);
    }
}
