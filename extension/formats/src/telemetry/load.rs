//! Files of events, in the four forms that there are.
//!
//! ```text
//! [{...}, {...}]                     a list
//! {"events": [{...}, {...}], ...}    an object with a list, under this key or one that is named
//! {"schema_version": 2, ...}         one record
//! {...}\n{...}\n                     a record a line
//! ```
//!
//! The reference knows the first three; lines are what long runs write. Events are handed on one by
//! one, however large the file is: memory is that of the reading buffer (a few hundred kilobytes,
//! more only for a record that is larger) plus at most 4 MiB to tell the forms apart.

mod document;
mod lines;
mod look;

use std::io::{self, Cursor, Read};

use super::fault::{Fault, Place};
use super::{Options, TelemetryEvent};
use crate::json::stream::{self, LONGEST_VALUE, Position};
use crate::lines::Lines;
use lines::Blank;
use look::Shape;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Where a file's events go.
pub trait Sink {
    /// One event.
    fn event(&mut self, place: Place, event: &TelemetryEvent<'_>);
    /// A record that gives none, and why.
    fn refused(&mut self, place: Place, fault: Fault);
}

/// How a file holds its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A list of records.
    List,
    /// An object in which a list of records is.
    Object,
    /// One record.
    Record,
    /// A record a line.
    Lines,
}

/// What a file held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    /// How its events stand in it.
    pub form: Form,
    /// Events handed on.
    pub events: u64,
    /// Records that gave none.
    pub refused: u64,
}

/// Why a file cannot be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A byte order mark, which JSON does not have.
    #[error(
        "byte 0: a UTF-8 byte order mark; JSON begins without one, save the file as plain UTF-8"
    )]
    ByteOrderMark,
    /// The input gave no more.
    #[error("line {line}: reading on failed: {source}")]
    Input {
        /// The line behind the last that was read, counted from 1.
        line: u64,
        /// What the input answered.
        source: io::Error,
    },
    /// The document is no JSON, or no more of it could be read.
    #[error(transparent)]
    Document(#[from] stream::Error),
    /// The document is a text, a number or the like.
    #[error("Telemetry payload must be a JSON object or array")]
    NoContainer,
    /// The document is an object without a list of events, and no record itself.
    #[error("JSON payload does not contain telemetry events")]
    NoEvents,
    /// Under the key that was named there is no list.
    #[error("Top-level key '{key}' must contain a list of events")]
    NoListUnderKey {
        /// The key.
        key: String,
    },
    /// The key of the events comes again, when those of the first list have been handed on.
    #[error("{position}: the key '{key}' comes twice; keep one list of events")]
    KeyTwice {
        /// The key.
        key: String,
        /// Behind the second key.
        position: Position,
    },
    /// One record is the whole file, and too large to be held.
    #[error("{position}: the record that the file is has more than {} MiB", LONGEST_VALUE >> 20)]
    RecordTooLarge {
        /// Where the limit was met.
        position: Position,
    },
    /// A record gives no event; only where all have to.
    #[error("{place}: {fault}")]
    Refused {
        /// Where the record stands.
        place: Place,
        /// Why.
        fault: Fault,
    },
}

impl LoadError {
    /// The line where reading ended, counted from 1; none where the file as a whole is at fault.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::ByteOrderMark => Some(1),
            Self::Input { line, .. } => Some(*line),
            Self::Document(error) => Some(error.position().line),
            Self::KeyTwice { position, .. } | Self::RecordTooLarge { position } => {
                Some(position.line)
            }
            Self::Refused { place, .. } => Some(place.line),
            Self::NoContainer | Self::NoEvents | Self::NoListUnderKey { .. } => None,
        }
    }
}

/// Reads a file's records and hands on their events, or why there is none, in the file's order.
///
/// Of an object, the list under `events_key` is read; without a key the one under `events`, or else
/// the object itself as a record. For other forms the key means nothing.
///
/// # Errors
/// Where the file is no JSON or none of the forms; what was handed on before stands. A record a line
/// is more robust: a line that is no JSON is refused by itself.
pub fn load(
    mut input: impl Read,
    events_key: Option<&str>,
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<Loaded, LoadError> {
    let looked = look::look(&mut input);
    let (head, shape) = looked.map_err(|source| LoadError::Input { line: 1, source })?;
    let input = Cursor::new(head).chain(input);
    let mut intake = Intake { options, sink, events: 0, refused: 0 };
    let form = match shape {
        Shape::ByteOrderMark => return Err(LoadError::ByteOrderMark),
        Shape::Lines => lines::load(Lines::new(input), Blank::PassedOver, false, &mut intake)?,
        Shape::Document => document::load(input, events_key, &mut intake)?,
    };
    Ok(Loaded { form, events: intake.events, refused: intake.refused })
}

/// Reads a record a line, whatever the lines look like: for every line the sink gets an event or why
/// there is none, also for one that is blank or no JSON. For streams of records, one of which may be
/// the first and broken.
///
/// # Errors
/// Where the input gives no more; what was handed on before stands.
pub fn load_records(
    mut input: impl Read,
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<Loaded, LoadError> {
    let mut head = vec![];
    let looked = input.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut head);
    looked.map_err(|source| LoadError::Input { line: 1, source })?;
    let has_mark = head == BYTE_ORDER_MARK;
    let lines = Lines::new(Cursor::new(head).chain(input));
    let mut intake = Intake { options, sink, events: 0, refused: 0 };
    let form = lines::load(lines, Blank::Judged, has_mark, &mut intake)?;
    Ok(Loaded { form, events: intake.events, refused: intake.refused })
}

/// Reads all events of a file, or none: what the reference's `load_telemetry_events` does. A fault
/// of the file comes before that of a record, and of those the first.
///
/// # Errors
/// What [`load`] says, and [`LoadError::Refused`].
pub fn load_all(
    input: impl Read,
    events_key: Option<&str>,
    options: &Options,
) -> Result<Vec<TelemetryEvent<'static>>, LoadError> {
    let mut all = All { events: vec![], first_refused: None };
    load(input, events_key, options, &mut all)?;
    match all.first_refused {
        None => Ok(all.events),
        Some((place, fault)) => Err(LoadError::Refused { place, fault }),
    }
}

struct All {
    events: Vec<TelemetryEvent<'static>>,
    first_refused: Option<(Place, Fault)>,
}

impl Sink for All {
    fn event(&mut self, _: Place, event: &TelemetryEvent<'_>) {
        if self.first_refused.is_none() {
            self.events.push(event.clone().into_owned());
        }
    }

    fn refused(&mut self, place: Place, fault: Fault) {
        self.events = vec![];
        self.first_refused.get_or_insert((place, fault));
    }
}

/// What becomes of the records, and how many there were.
struct Intake<'i> {
    options: &'i Options,
    sink: &'i mut dyn Sink,
    events: u64,
    refused: u64,
}

impl Intake<'_> {
    /// The place of the next record, which begins there.
    fn place(&self, line: u64, offset: u64) -> Place {
        Place { index: self.events + self.refused, line, offset }
    }

    fn take(&mut self, place: Place, event: Result<TelemetryEvent<'_>, impl Into<Fault>>) {
        match event {
            Ok(event) => {
                self.events += 1;
                self.sink.event(place, &event);
            }
            Err(fault) => {
                self.refused += 1;
                self.sink.refused(place, fault.into());
            }
        }
    }
}
