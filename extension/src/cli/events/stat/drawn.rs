//! An event log, summed up as a log and, for the work on its devices, as the trace that it is drawn as.

use std::ops::ControlFlow;

use warpgauge_formats::event::{Event, What};
use warpgauge_formats::finding::{Finding, Sink};
use warpgauge_formats::timeline::Timeline;

use crate::events::reader::{FileEnd, Follow, LineRead};
use crate::events::statistics::Statistics;

/// Hears a log for both.
pub(super) struct Drawn<'s> {
    pub(super) log: &'s mut Statistics,
    pub(super) timeline: Timeline<'s>,
}

impl Sink for Drawn<'_> {
    fn event(&mut self, line: u64, event: &Event<'_>) {
        self.log.event(line, event);
        if matches!(event.what, What::Kernel(_) | What::Copy(_)) {
            self.timeline.event(line, event);
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.log.finding(finding);
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.log.unknown(line, name);
    }
}

impl Follow for Drawn<'_> {
    fn line_read(&mut self, line: LineRead) -> ControlFlow<()> {
        self.log.line_read(line)
    }

    fn file_begins(&mut self, name: &str, lines_before: u64) {
        self.log.file_begins(name, lines_before);
    }

    fn file_ends(&mut self, end: FileEnd) {
        self.log.file_ends(end);
    }
}
