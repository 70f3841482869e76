//! From the lines of many logs to events, each log with a reader of its own.

use std::collections::BTreeMap;

use warpgauge_formats::event::{Event, Phase, What};
use warpgauge_formats::finding::{Finding, Sink};
use warpgauge_formats::lines::Line;

use crate::config::events::EventFormat;
use crate::event_logs::memory::{is_dictionary, is_start};
use crate::event_logs::reader::{Reader, log_of};
use crate::event_metrics::EventSource;
use crate::event_metrics::open_scopes::OpenScopes;
use crate::events::format::Format;
use crate::events::reader::message;
use crate::follow::FileId;

/// Most logs whose readers are kept; the one that has said nothing for longest goes first. It begins
/// anew when it says something, without the names that it has told.
const MOST_LOGS: usize = 256;

/// Most lines whose events may come later: as many as a reader lets wait.
const MOST_WAITING: usize = 32_768;

/// Hears what the logs say. A place is `file:line`.
pub(super) trait Show {
    /// One event.
    fn event(&mut self, event: &Event<'_>);
    /// One thing that is wrong.
    fn finding(&mut self, place: &str, words: &str);
    /// A field or a type that no reader knows.
    fn unknown(&mut self, place: &str, name: &str);
}

/// The logs that are followed.
pub(super) struct Logs {
    /// By rule; `None` is told by the content.
    formats: Vec<Option<EventFormat>>,
    readers: BTreeMap<String, LogReader>,
    open: OpenScopes,
    lines: u64,
}

struct LogReader {
    reader: Reader,
    format: EventFormat,
    /// A line's number within this reader.
    number: u64,
    /// Where the lines stand whose events have not come yet.
    waiting: BTreeMap<u64, String>,
    /// When it was last used, in lines of all logs.
    used: u64,
}

impl Logs {
    pub(super) fn new(formats: Vec<Option<EventFormat>>) -> Self {
        Self { formats, readers: BTreeMap::new(), open: OpenScopes::default(), lines: 0 }
    }

    /// Reads one line. Of one that stood there before, only what later ones may use.
    pub(super) fn line(&mut self, file: &FileId, line: Line<'_>, show: &mut dyn Show) {
        let is_past = file.is_past(&line);
        let place = || format!("{}:{}", file.path.display(), line.number);
        if is_past && !is_dictionary(line.bytes) && !is_start(line.bytes) {
            return;
        }
        if line.too_long {
            return show.finding(&place(), "longer than 4 MiB");
        }
        let Some(format) = self.format(file, line.bytes) else {
            if !is_past && !line.bytes.trim_ascii().is_empty() {
                show.finding(&place(), "tells no format; name it with --format");
            }
            return;
        };
        self.lines += 1;
        let (open, used) = (&mut self.open, self.lines);
        let log = log_of(format, &file.family);
        if !self.readers.contains_key(&log) {
            let reader = Reader::new(format);
            let reader = LogReader { reader, format, number: 0, waiting: BTreeMap::new(), used };
            self.readers.insert(log.clone(), reader);
        }
        if let Some(reader) = self.readers.get_mut(&log) {
            reader.used = used;
            reader.line(is_past, line.bytes, place(), open, show);
        }
        if self.readers.len() > MOST_LOGS {
            let oldest = self.readers.iter().min_by_key(|(_, reader)| reader.used);
            if let Some(oldest) = oldest.map(|(log, _)| log.clone()) {
                self.readers.remove(&oldest);
            }
        }
    }

    /// The format of the rule, else of the log so far, else of the line.
    fn format(&self, file: &FileId, line: &[u8]) -> Option<EventFormat> {
        let known = [EventFormat::Gpumon, EventFormat::GpuFlight].into_iter().find(|format| {
            let reader = self.readers.get(&log_of(*format, &file.family));
            reader.is_some_and(|reader| reader.format == *format)
        });
        let of_rule = self.formats.get(file.rule).copied().flatten();
        of_rule.or(known).or_else(|| match Format::of(line) {
            Some(Format::Gpumon) => Some(EventFormat::Gpumon),
            Some(Format::GpuFlight | Format::GpuFlightFat) => Some(EventFormat::GpuFlight),
            _ => None,
        })
    }
}

impl LogReader {
    fn line(
        &mut self,
        is_past: bool,
        bytes: &[u8],
        place: String,
        open: &mut OpenScopes,
        show: &mut dyn Show,
    ) {
        self.number += 1;
        let Self { reader, waiting, number, .. } = self;
        let line = *number;
        reader.line(line, bytes, &mut Hear { is_past, line, place: &place, waiting, open, show });
        if reader.waits(line) {
            waiting.insert(line, place);
            if waiting.len() > MOST_WAITING {
                waiting.pop_first();
            }
        }
    }
}

/// Hears what one line says.
struct Hear<'h> {
    is_past: bool,
    line: u64,
    place: &'h str,
    waiting: &'h BTreeMap<u64, String>,
    open: &'h mut OpenScopes,
    show: &'h mut dyn Show,
}

impl Hear<'_> {
    fn place(&self, line: u64) -> &str {
        let known = self.waiting.get(&line).filter(|_| line != self.line);
        known.map_or(self.place, String::as_str)
    }
}

impl Sink for Hear<'_> {
    fn event(&mut self, _: u64, event: &Event<'_>) {
        if self.is_past {
            return;
        }
        let What::Scope(scope) = &event.what else { return self.show.event(event) };
        let source = EventSource::of(None, &event.source);
        match scope.phase {
            Phase::Begin => self.open.begin(&source, scope),
            Phase::End => {
                let began = self.open.end(&source, scope);
                if let (Some(began), None) = (began, scope.duration) {
                    // What the line does not say, its beginning did.
                    let mut scope = scope.clone();
                    scope.duration = Some(scope.time.since(began));
                    scope.began = scope.began.or(Some(began));
                    let source = event.source.clone();
                    return self.show.event(&Event { source, what: What::Scope(scope) });
                }
            }
            Phase::Continue | Phase::Suspend | Phase::Sample => {}
        }
        self.show.event(event);
    }

    fn finding(&mut self, finding: Finding) {
        if !self.is_past {
            let place = self.place(finding.line).to_owned();
            self.show.finding(&place, &message(&finding));
        }
    }

    fn unknown(&mut self, line: u64, name: &str) {
        if !self.is_past {
            let place = self.place(line).to_owned();
            self.show.unknown(&place, name);
        }
    }
}
