//! What is said about a log beside its events.

use warpgauge_formats::event::Event;
use warpgauge_formats::finding::{Finding, Severity};
use warpgauge_formats::time::Span;

use crate::events::clock::Clock;
use crate::events::reader::{FileEnd, Places, message};
use crate::events::unknown::Unknown;

/// Most findings that are kept; all are counted.
const MOST_KEPT: usize = 10;

/// What is said about logs, gathered.
#[derive(Debug, Default)]
pub struct Notes {
    /// Events that were read.
    pub events: u64,
    /// Which file and line a number means.
    pub places: Places,
    /// What the reader does not know.
    pub unknown: Unknown,
    /// The first findings.
    pub findings: Vec<Place>,
    /// Lines, rows and fields that were not taken.
    pub refused: u64,
    /// Those that were taken, but cannot be right.
    pub suspect: u64,
    /// For each file whose times are no wall clock's: its place among the files, and what would make
    /// them one, where the file's own time tells.
    pub monotonic: Vec<(String, Option<Span>)>,
    clock: Clock,
}

/// A finding and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line in it.
    pub line: u64,
    /// What is wrong there.
    pub finding: Finding,
}

impl Place {
    /// What is wrong, without where.
    #[must_use]
    pub fn message(&self) -> String {
        message(&self.finding)
    }
}

impl Notes {
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        self.clock.note(event);
    }

    pub(crate) fn finding(&mut self, finding: &Finding) {
        match finding.severity {
            Severity::Refused => self.refused += 1,
            Severity::Suspect => self.suspect += 1,
        }
        if self.findings.len() < MOST_KEPT && finding.severity == Severity::Refused {
            let (file, line) = self.places.of(finding.line);
            self.findings.push(Place { file: file.to_owned(), line, finding: finding.clone() });
        }
    }

    pub(crate) fn file_ends(&mut self, end: FileEnd) {
        let clock = std::mem::take(&mut self.clock);
        if clock.is_monotonic() {
            self.monotonic.push((self.places.last().to_owned(), clock.offset(end.modified)));
        }
    }

    /// What of the log is in no event.
    pub(crate) fn losses(&self) -> impl Iterator<Item = (String, u64)> {
        let refused =
            (self.refused > 0).then(|| ("what could not be read".to_owned(), self.refused));
        let unknown =
            self.unknown.iter().map(|(name, seen)| (format!("{name} (unknown)"), seen.count));
        let unknown: Vec<_> = unknown.collect();
        refused.into_iter().chain(unknown)
    }
}
