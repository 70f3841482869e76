//! TelemetryEvent v2, drawn as a trace.

use std::cell::Cell;
use std::path::Path;

use indicatif::ProgressBar;
use warpgauge_formats::finding::Finding;
use warpgauge_formats::telemetry::{TelemetryEvent, Timeline, Units};

use super::read::{End, Follow};
use crate::events::format::Format;
use crate::events::log::{LogError, Opened};
use crate::events::telemetry::{self, Reading};

/// How telemetry is read and drawn.
#[derive(Debug, Clone, Default)]
pub(super) struct Telemetry {
    reading: Reading,
    units: Units,
}

impl Telemetry {
    /// As fits a trace of that format.
    pub(super) fn new(reading: Reading, to: Format) -> Self {
        let units = if to == Format::Kineto { Units::InName } else { Units::Apart };
        Self { reading, units }
    }

    /// Reads the files into `sink` as the one trace that they are, until `stop` says so. `name_of`
    /// tells how they are called.
    pub(super) fn read(
        &self,
        opened: Opened,
        name_of: &dyn Fn(&Path) -> String,
        bar: &ProgressBar,
        stop: &Cell<bool>,
        sink: &mut dyn Follow,
    ) -> Result<(), LogError> {
        let name = opened.files.first().map(|path| name_of(path)).unwrap_or_default();
        sink.trace_begins(0, &name);
        let mut drawing = Drawing { timeline: Timeline::new(self.units), name_of, sink };
        self.reading.read(opened, bar, stop, &mut drawing)?;
        let losses = drawing.timeline.losses().iter();
        let losses = losses.map(|(name, count)| (name.to_owned(), count)).collect();
        sink.trace_ends(0, End { losses, ..End::default() });
        Ok(())
    }
}

struct Drawing<'d> {
    timeline: Timeline,
    name_of: &'d dyn Fn(&Path) -> String,
    sink: &'d mut dyn Follow,
}

impl telemetry::Follow for Drawing<'_> {
    fn file_begins(&mut self, name: &str, lines_before: u64) {
        let name = (self.name_of)(Path::new(name));
        self.sink.log_file_begins(&name, lines_before);
    }

    fn event(&mut self, line: u64, event: &TelemetryEvent<'_>) {
        let Self { timeline, sink, .. } = self;
        timeline.event(line, event, *sink);
    }

    fn finding(&mut self, finding: Finding) {
        self.sink.finding(finding);
    }
}
