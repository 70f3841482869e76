//! Files of TelemetryEvent v2, one after the other: JSON in any of its forms, or a Parquet table.

use std::cell::Cell;
use std::path::Path;

use indicatif::ProgressBar;
use warpgauge_formats::finding::Finding;
use warpgauge_formats::tables::{self, Table};
use warpgauge_formats::telemetry::{self, Fault, LoadError, Options, Place, TelemetryEvent};

use super::format::Format;
use super::input::{Input, OpenError, Stoppable};
use super::log::{LogError, Opened};
use super::tables::{Folder, sessions, tables_of};

/// Lines by which the lines of one file are told from those of the next.
const LINES: u32 = 40;

/// How files are read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// What is read, and what stands in for what legacy records do not say.
    pub options: Options,
    /// The key of the list of events, where a document's is not `events`.
    pub events_key: Option<String>,
}

/// Hears what files say. The line numbers of each file begin behind those of the file before.
pub trait Follow {
    /// A file begins, and its lines behind that number.
    fn file_begins(&mut self, name: &str, lines_before: u64);
    /// One event.
    fn event(&mut self, line: u64, event: &TelemetryEvent<'_>);
    /// A record that gives no event, or a file that cannot be read on.
    fn finding(&mut self, finding: Finding);
}

impl Reading {
    /// Reads the files into `sink`, until `stop` says so.
    ///
    /// # Errors
    /// Where a file cannot be opened, or holds something else. What is wrong within a file is the
    /// sink's to hear.
    pub fn read(
        &self,
        opened: Opened,
        bar: &ProgressBar,
        stop: &Cell<bool>,
        sink: &mut dyn Follow,
    ) -> Result<(), LogError> {
        let mut before = 0;
        let mut first = opened.first;
        for path in opened.files {
            if first.is_none() && path.is_dir() {
                read_tables(&path, &mut before, sink)?;
                continue;
            }
            let input = match first.take() {
                Some(input) => input,
                None => Input::open(&path, bar)?,
            };
            let found = Format::of(input.head());
            // Legacy records look like anything: they are telemetry where that was named.
            if !opened.is_named && found != Some(Format::Telemetry) && !input.head().is_empty() {
                let before = Format::Telemetry;
                return Err(match found {
                    Some(found) => LogError::Mixed { path, found, before },
                    None => LogError::Unclear { path },
                });
            }
            sink.file_begins(&input.name, before);
            let mut numbered = Numbered { before, sink };
            let input = Stoppable::new(input, stop);
            let key = self.events_key.as_deref();
            if let Err(error) = telemetry::load(input, key, &self.options, &mut numbered)
                && !stop.get()
            {
                numbered.ended(&error);
            }
            before += 1 << LINES;
        }
        Ok(())
    }
}

/// Reads the tables of a data set.
fn read_tables(path: &Path, before: &mut u64, sink: &mut dyn Follow) -> Result<(), LogError> {
    let open = |error| OpenError::System { path: path.to_owned(), error };
    let folders = sessions(path).map_err(open)?;
    if folders.is_empty() {
        return Err(LogError::NoTables { path: path.to_owned() });
    }
    for path in folders {
        if tables_of(&path) != [Table::Telemetry] {
            let (found, before) = (Format::Parquet, Format::Telemetry);
            return Err(LogError::Mixed { path, found, before });
        }
        sink.file_begins(&path.display().to_string(), *before);
        let mut numbered = Numbered { before: *before, sink };
        tables::read_telemetry(&mut Folder(&path), &mut numbered)
            .map_err(|error| LogError::Tables { path, error })?;
        *before += 1 << LINES;
    }
    Ok(())
}

/// Gives lines the numbers that the sink knows them by.
struct Numbered<'n> {
    before: u64,
    sink: &'n mut dyn Follow,
}

impl Numbered<'_> {
    fn ended(&mut self, error: &LoadError) {
        let line = self.before + error.line().unwrap_or(1);
        let found = format!("what ends the reading: {error}");
        self.sink.finding(Finding::refused(line, "", "a file of telemetry", found));
    }
}

impl telemetry::Sink for Numbered<'_> {
    fn event(&mut self, place: Place, event: &TelemetryEvent<'_>) {
        self.sink.event(self.before + place.line, event);
    }

    fn refused(&mut self, place: Place, fault: Fault) {
        let line = self.before + place.line;
        let found = format!("one that is refused: {fault}");
        self.sink.finding(Finding::refused(line, "", "a telemetry record", found));
    }
}
