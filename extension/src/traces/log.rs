//! An event log, drawn as a trace.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::path::Path;

use indicatif::ProgressBar;
use warpgauge_formats::event::Event;
use warpgauge_formats::finding::{self, Finding};
use warpgauge_formats::join::KernelDetailsJoin;
use warpgauge_formats::timeline::Timeline;
use warpgauge_formats::trace::{self, Record};

use super::read::{End, Follow};
use crate::events::bounds::Bounds;
use crate::events::log::{LogError, Opened};
use crate::events::reader::{self, LineRead};

/// Reads a log into `sink` as the one trace that it is, until `stop` says so. `name_of` tells how its
/// files are called.
pub(super) fn read(
    opened: Opened,
    name_of: &dyn Fn(&Path) -> String,
    bar: &ProgressBar,
    stop: &Cell<bool>,
    sink: &mut dyn Follow,
) -> Result<(), LogError> {
    let name = opened.files.first().map(|path| name_of(path)).unwrap_or_default();
    sink.trace_begins(0, &name);
    let sink = RefCell::new(sink);
    let mut drawn = Drawn(&sink);
    let mut timeline = Timeline::new(&mut drawn);
    let mut bounds = Bounds::new(&mut timeline);
    let mut joined = KernelDetailsJoin::new(&mut bounds);
    opened.read(bar, &mut Log { first: &mut joined, sink: &sink, name_of, stop })?;
    joined.end();
    bounds.end();
    let losses = timeline.end();
    let losses = losses.iter().map(|(name, count)| (name.to_owned(), count)).collect();
    sink.into_inner().trace_ends(0, End { losses, ..End::default() });
    Ok(())
}

/// The records' way out, which what is said about the log takes, too.
struct Drawn<'r, 's>(&'r RefCell<&'s mut dyn Follow>);

impl trace::Sink for Drawn<'_, '_> {
    fn record(&mut self, line: u64, record: &Record<'_>) {
        self.0.borrow_mut().record(line, record);
    }

    fn finding(&mut self, finding: Finding) {
        self.0.borrow_mut().finding(finding);
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.0.borrow_mut().unknown(line, name);
    }
}

/// The events' way in.
struct Log<'l, 's> {
    first: &'l mut dyn finding::Sink,
    sink: &'l RefCell<&'s mut dyn Follow>,
    name_of: &'l dyn Fn(&Path) -> String,
    stop: &'l Cell<bool>,
}

impl finding::Sink for Log<'_, '_> {
    fn event(&mut self, line: u64, event: &Event<'_>) {
        self.first.event(line, event);
    }

    fn finding(&mut self, finding: Finding) {
        self.sink.borrow_mut().finding(finding);
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.sink.borrow_mut().unknown(line, name);
    }
}

impl reader::Follow for Log<'_, '_> {
    fn line_read(&mut self, _: LineRead) -> ControlFlow<()> {
        if self.stop.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn file_begins(&mut self, name: &str, lines_before: u64) {
        let name = (self.name_of)(Path::new(name));
        self.sink.borrow_mut().log_file_begins(&name, lines_before);
    }
}
