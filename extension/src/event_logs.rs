//! From the lines of event logs to what a pass sees of them.
//!
//! ```text
//! line ── reader of its log ── event ── event_metrics
//!              |                            |
//!          memory::Sessions            open scopes          <state>/events.json, with the cursors
//! ```
//!
//! A batch may use what an earlier pass has read: its dictionary, the name of its process. A pass
//! remembers that for the next one (`memory`).

pub mod memory;
pub mod reader;

use std::collections::BTreeMap;
use std::path::Path;

use warpgauge_formats::event::{Event, What};
use warpgauge_formats::finding::{Finding, Severity, Sink};
use warpgauge_formats::lines::Line;

use self::memory::{LogMemory, Memory};
use self::reader::{Reader, log_of};
use crate::config::events::EventFormat;
use crate::event_metrics::{EventMetrics, Refusal};
use crate::skips::Skips;

/// Why a line, or something in it, was not taken; beside those of [`Refusal`]. Each is a `reason` of
/// `warpgauge.events.skipped`.
pub const REASONS: [&str; 6] =
    [REFUSED, TORN, TOO_LONG, UNKNOWN_TYPE, UNKNOWN_FIELD, memory::FORGOTTEN];

const REFUSED: &str = "line_refused";
const TORN: &str = "line_torn";
const TOO_LONG: &str = "line_too_long";
const UNKNOWN_TYPE: &str = "unknown_type";
const UNKNOWN_FIELD: &str = "unknown_field";

/// The only name in [`EventLogs::suspect`].
const SUSPECT: &str = "suspect";

/// Where a line stands and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// What the log is written in.
    pub format: EventFormat,
    /// The group that the configuration gives the log.
    pub group: Option<&'a str>,
    /// The file, for messages.
    pub path: &'a Path,
    /// The path without what rotation put into it.
    pub family: &'a str,
    /// Whether the line stood there before the log was followed: it counts nowhere, but later lines
    /// may use what it says.
    pub is_past: bool,
}

/// The logs of one pass.
#[derive(Debug, Default)]
pub struct EventLogs {
    readers: BTreeMap<String, LogReader>,
    memory: Memory,
    /// What was seen.
    pub metrics: EventMetrics,
    /// Lines that were read.
    pub lines: u64,
    /// What was not taken.
    pub skipped: Skips,
    /// What was taken, but looks odd.
    pub suspect: Skips,
}

/// The reader of one log; the channels of a GPU Flight session are one.
#[derive(Debug)]
struct LogReader {
    reader: Reader,
    memory: LogMemory,
    /// A line's number within this reader, so that the lines of several files are told apart.
    number: u64,
    /// Lines whose events have not come yet, and where they stand.
    waiting: BTreeMap<u64, (String, Vec<u8>)>,
}

impl EventLogs {
    /// Goes on with what an earlier pass has remembered.
    #[must_use]
    pub fn new(mut memory: Memory) -> Self {
        let open = std::mem::take(&mut memory.open);
        Self {
            memory,
            metrics: EventMetrics { open, ..EventMetrics::default() },
            ..Self::default()
        }
    }

    /// Takes in one line.
    pub fn line(&mut self, place: Place<'_>, line: Line<'_>) {
        let shown = || format!("{}:{}", place.path.display(), line.number);
        if line.too_long {
            if !place.is_past {
                self.lines += 1;
                self.skipped.note(TOO_LONG, || format!("{}: longer than 4 MiB", shown()));
            }
            return;
        }
        let log = log_of(place.format, place.family);
        if !self.readers.contains_key(&log) {
            let memory = self.memory.logs.remove(&log).unwrap_or_default();
            self.readers.insert(log.clone(), LogReader::new(place.format, memory));
        }
        let Some(reader) = self.readers.get_mut(&log) else { return };
        if place.is_past {
            return reader.learn(place.format, line.bytes);
        }
        self.lines += 1;
        let mut taker = Taker {
            place,
            shown: &shown,
            line: reader.number + 1,
            ended: line.ended,
            metrics: &mut self.metrics,
            skipped: &mut self.skipped,
            suspect: &mut self.suspect,
            waiting: &mut reader.waiting,
            memory: &mut reader.memory,
            text: line.bytes,
            has_answered: false,
        };
        reader.reader.line(reader.number + 1, line.bytes, &mut taker);
        let has_answered = taker.has_answered;
        reader.number += 1;
        if place.format == EventFormat::GpuFlight {
            if memory::is_dictionary(line.bytes) {
                reader.memory.learn(line.bytes);
            } else if !has_answered && memory::is_batch(line.bytes) {
                reader.waiting.insert(reader.number, (shown(), line.bytes.to_vec()));
            }
        }
    }

    /// What the next pass must know. Logs of which nothing was read for long are forgotten.
    #[must_use]
    pub fn into_memory(self, now_ns: u64) -> (Memory, EventMetrics, Skips) {
        let Self { readers, mut memory, mut metrics, mut skipped, suspect, .. } = self;
        suspect.log("event logs: odd, but taken");
        for (log, LogReader { reader, memory: mut of_log, waiting, .. }) in readers {
            reader.batches().for_each(|batches| of_log.have_read(batches));
            of_log.waiting = waiting.into_values().map(|(_, text)| text).collect();
            of_log.last_read_ns = now_ns;
            if !of_log.is_empty() {
                memory.logs.insert(log, of_log);
            }
        }
        memory.forget(now_ns, &mut skipped);
        memory.open = std::mem::take(&mut metrics.open);
        (memory, metrics, skipped)
    }
}

impl LogReader {
    fn new(format: EventFormat, mut memory: LogMemory) -> Self {
        let waiting = std::mem::take(&mut memory.waiting);
        let mut reader =
            Self { reader: Reader::new(format), number: 0, waiting: BTreeMap::new(), memory };
        for line in reader.memory.replay() {
            reader.number += 1;
            // Its events were taken in by the pass that read it.
            reader.reader.line(reader.number, &line, &mut Deaf);
        }
        for line in waiting {
            reader.number += 1;
            reader.reader.line(reader.number, &line, &mut Deaf);
            reader.waiting.insert(reader.number, ("a line of an earlier pass".to_owned(), line));
        }
        reader.memory.batches().for_each(|batches| reader.reader.skip_batches(&batches));
        reader
    }

    /// Takes from a line of the past what later ones may use.
    fn learn(&mut self, format: EventFormat, line: &[u8]) {
        let is_dictionary = memory::is_dictionary(line);
        if format != EventFormat::GpuFlight || !(is_dictionary || memory::is_start(line)) {
            return;
        }
        self.number += 1;
        let Self { reader, memory, .. } = self;
        reader.line(self.number, line, &mut Learner { memory, line });
        if is_dictionary {
            memory.learn(line);
        }
    }
}

/// Hears nothing.
struct Deaf;

impl Sink for Deaf {
    fn event(&mut self, _: u64, _: &Event<'_>) {}
    fn finding(&mut self, _: Finding) {}
    fn unknown(&mut self, _: u64, _: &str) {}
}

/// Hears of a line of the past whose session it begins.
struct Learner<'l> {
    memory: &'l mut LogMemory,
    line: &'l [u8],
}

impl Sink for Learner<'_> {
    fn event(&mut self, _: u64, event: &Event<'_>) {
        if let (What::Start(_), Some(session)) = (&event.what, &event.source.session) {
            self.memory.begin(session, self.line);
        }
    }
    fn finding(&mut self, _: Finding) {}
    fn unknown(&mut self, _: u64, _: &str) {}
}

/// Takes in what one line says.
struct Taker<'t> {
    place: Place<'t>,
    shown: &'t dyn Fn() -> String,
    line: u64,
    ended: bool,
    metrics: &'t mut EventMetrics,
    skipped: &'t mut Skips,
    suspect: &'t mut Skips,
    waiting: &'t mut BTreeMap<u64, (String, Vec<u8>)>,
    memory: &'t mut LogMemory,
    text: &'t [u8],
    /// Whether this line gave an event or was refused.
    has_answered: bool,
}

impl Taker<'_> {
    /// Notes that a line has been answered, and gives where it stands.
    fn answered(&mut self, line: u64) -> String {
        if line == self.line {
            self.has_answered = true;
            return (self.shown)();
        }
        self.waiting.remove(&line).map_or_else(|| (self.shown)(), |(shown, _)| shown)
    }
}

impl Sink for Taker<'_> {
    fn event(&mut self, line: u64, event: &Event<'_>) {
        if line == self.line {
            self.has_answered = true;
        } else {
            self.waiting.remove(&line);
        }
        if let What::Start(_) = &event.what
            && let Some(session) = &event.source.session
        {
            self.memory.begin(session, self.text);
        }
        if let Err(refusal) = self.metrics.add(self.place.group, event) {
            self.skipped.note(Refusal::reason(refusal), || (self.shown)());
        }
    }

    fn finding(&mut self, finding: Finding) {
        let words = |at: &str| {
            let Finding { field, expected, found, .. } = &finding;
            let colon = if field.is_empty() { "" } else { ": " };
            format!("{at}: {field}{colon}expected {expected}, found {found}")
        };
        if finding.severity == Severity::Suspect {
            return self.suspect.note(SUSPECT, || words(&(self.shown)()));
        }
        let reason = if self.ended { REFUSED } else { TORN };
        let at = self.answered(finding.line);
        self.skipped.note(reason, || words(&at));
    }

    fn unknown(&mut self, line: u64, name: &str) {
        let is_field = name.contains('.');
        if !is_field && line == self.line {
            self.has_answered = true;
        }
        let reason = if is_field { UNKNOWN_FIELD } else { UNKNOWN_TYPE };
        self.skipped.note(reason, || format!("{}: {name}", (self.shown)()));
    }
}

#[cfg(test)]
mod tests;
