//! Reads both forms, line by line.

use std::collections::{BTreeSet, HashMap};

use super::batch::Batch;
use super::budget::Budget;
use super::dictionary::{Dictionaries, Kind, Refused};
use super::entries::{DeviceLine, SessionLine};
use super::fat::{DEVICE_TYPES, SESSION_TYPES};
use super::rows::{Layout, Type, Unresolved};
use super::session::Session;
use super::waiting::{Queue, Waiting};
use crate::event::{Event, Source, Text, What};
use crate::finding::{Finding, Sink};
use crate::json::{self, Reader as Json};
use crate::record::{Field as _, Record as _, Slot};

/// Most sessions that are remembered; the least numbered beyond them are refused.
const MOST_SESSIONS: usize = 1_024;

/// What stands where there is no room for a text.
const ROOM: &str = "fewer names and texts";

/// Reads a log, or the channels of a session one after the other.
///
/// Memory, at most: 8 MiB of texts for the dictionaries of a session and 64 MiB for all that is
/// remembered of all sessions, 8 MiB of lines that wait for their dictionary, and one batch. What
/// goes beyond is refused and named.
#[derive(Debug, Default)]
pub struct Reader {
    budget: Budget,
    sessions: HashMap<String, Session>,
    waiting: Queue,
    cells: Vec<i64>,
}

/// The batches of a session and type that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batches<'r> {
    /// `session_id`
    pub session: &'r str,
    /// `type`, such as `kernel_event_batch`.
    pub of: &'r str,
    /// First and last `batch_id` of each range.
    pub numbers: Vec<(i64, i64)>,
}

/// Whether rows whose ids nobody explains may still wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    Waits,
    IsOver,
}

impl Reader {
    /// A reader that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one line, without its newline. A blank line is nothing.
    pub fn line(&mut self, number: u64, bytes: &[u8], sink: &mut dyn Sink) {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let found = format!("other bytes behind byte {}", error.valid_up_to());
                return sink.finding(Finding::refused(number, "", "UTF-8", found));
            }
        };
        if text.trim_ascii().is_empty() {
            return;
        }
        let fault =
            |fault: json::Fault| Finding::refused(number, "", "a JSON object", fault.to_string());
        match type_of(text).map_err(fault) {
            Err(finding) => sink.finding(finding),
            Ok(None) => sink.finding(Finding::refused(number, "type", "a string", "nothing")),
            Ok(Some(kind)) => {
                if let Err(finding) = self.typed(number, &kind, text, sink) {
                    sink.finding(finding);
                }
            }
        }
    }

    /// Whether that line, the last one read, waits for its dictionary: what it tells comes later.
    #[must_use]
    pub fn waits(&self, line: u64) -> bool {
        self.waiting.ends_with(line)
    }

    /// Names what never got its dictionary. Call it when the log has ended.
    pub fn end(&mut self, sink: &mut dyn Sink) {
        for waiting in self.waiting.drain() {
            self.again(&waiting, Patience::IsOver, sink);
        }
    }

    /// The batches that were read, for a later reader of the same log ([`Reader::skip_batches`]).
    /// At most 256 ranges for a session and type; the lowest beyond them are forgotten.
    pub fn batches(&self) -> impl Iterator<Item = Batches<'_>> {
        self.sessions.iter().flat_map(|(session, known)| {
            known.seen.iter().map(|(of, seen)| {
                let numbers = seen.ranges().collect();
                Batches { session, of: of.name(), numbers }
            })
        })
    }

    /// Takes batches for read: one that comes is refused as one that comes again. Lines that wait
    /// must be read before.
    pub fn skip_batches(&mut self, Batches { session, of, numbers }: &Batches<'_>) {
        let Some(of) = Type::named(of) else { return };
        // Where there is no room for the session, its batches are refused anyway.
        let Ok(session) = self::session(&mut self.sessions, &mut self.budget, 0, session) else {
            return;
        };
        numbers.iter().for_each(|range| session.seen.extend(of, *range));
    }

    fn typed(
        &mut self,
        number: u64,
        kind: &str,
        text: &str,
        sink: &mut dyn Sink,
    ) -> Result<(), Finding> {
        if let Some(of) = Type::named(kind) {
            return self.batch(number, of, text, sink);
        }
        if kind == "dictionary_update" {
            return self.dictionary(number, text, sink);
        }
        let fault =
            |fault: json::Fault| Finding::refused(number, "", "a JSON object", fault.to_string());
        let mut json = Json::new(text);
        let (source, what, unknown) = if DEVICE_TYPES.contains(&kind) {
            DeviceLine::read_record(&mut json).map_err(fault)?.event(kind)
        } else if SESSION_TYPES.contains(&kind) {
            SessionLine::read_record(&mut json).map_err(fault)?.event(kind)
        } else {
            json.skip().map_err(fault)?;
            json.end().map_err(fault)?;
            sink.unknown(number, kind);
            return Ok(());
        }
        .map_err(|missing| {
            Finding::refused(number, missing.field, missing.expected, "nothing of that type")
        })?;
        json.end().map_err(fault)?;
        unknown.iter().for_each(|key| sink.unknown(number, &format!("{kind}.{key}")));
        self.single(number, source, what, sink)
    }

    /// One event that stands in a line of its own.
    fn single(
        &mut self,
        number: u64,
        source: Source<'_>,
        mut what: What<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), Finding> {
        let name = source.session.as_deref().unwrap_or_default();
        let budget = &mut self.budget;
        let session = session(&mut self.sessions, budget, number, name)?;
        session
            .learn(&source, budget)
            .map_err(|spent| Finding::refused(number, "app", ROOM, spent.to_string()))?;
        if !session.is_new_bound(&what) {
            return Ok(());
        }
        match &mut what {
            What::Scope(scope) => session.scopes.note(scope, budget),
            What::Profile(sample) => sample.scope_ended = session.scopes.had_ended(sample),
            _ => {}
        }
        let pid = source.pid.or(session.source.pid);
        let app = source.app.or_else(|| session.source.app.as_deref().map(Text::Borrowed));
        sink.event(number, &Event { source: Source { session: source.session, pid, app }, what });
        Ok(())
    }

    fn dictionary(&mut self, number: u64, text: &str, sink: &mut dyn Sink) -> Result<(), Finding> {
        let update = Update::read(number, text, sink)?;
        let budget = &mut self.budget;
        let session = session(&mut self.sessions, budget, number, &update.session)?;
        let mut known = vec![];
        for (kind, id, text) in update.entries {
            match define(&mut session.dictionaries, budget, number, kind, &id, &text) {
                Ok(id) => known.push((kind, id)),
                Err(finding) => sink.finding(finding),
            }
        }
        for waiting in self.waiting.take(&update.session, known.into_iter()) {
            self.again(&waiting, Patience::Waits, sink);
        }
        Ok(())
    }

    /// Reads a line that has waited once more.
    fn again(&mut self, waiting: &Waiting, patience: Patience, sink: &mut dyn Sink) {
        // It was read without a fault when it came.
        let Ok(batch) = Batch::read(&waiting.text, std::mem::take(&mut self.cells)) else { return };
        if let Err(finding) =
            self.rows(waiting.line, waiting.of, &waiting.text, batch, patience, sink)
        {
            sink.finding(finding);
        }
    }

    fn batch(
        &mut self,
        number: u64,
        of: Type,
        text: &str,
        sink: &mut dyn Sink,
    ) -> Result<(), Finding> {
        let batch = Batch::read(text, std::mem::take(&mut self.cells))
            .map_err(|wrong| Finding::refused(number, wrong.field, wrong.expected, wrong.found))?;
        let budget = &mut self.budget;
        let session = session(&mut self.sessions, budget, number, &batch.session)?;
        if !session.seen.is_new(of, batch.number) {
            let found = format!("{} again", batch.number.unwrap_or_default());
            return Err(Finding::refused(
                number,
                "batch_id",
                "a batch that has not come yet",
                found,
            ));
        }
        let columns = batch.columns.iter().filter(|column| !of.knows(column));
        for key in batch.unknown.iter().chain(columns) {
            sink.unknown(number, &format!("{}.{key}", of.name()));
        }
        self.rows(number, of, text, batch, Patience::Waits, sink)
    }

    fn rows(
        &mut self,
        number: u64,
        of: Type,
        text: &str,
        batch: Batch<'_>,
        patience: Patience,
        sink: &mut dyn Sink,
    ) -> Result<(), Finding> {
        let layout = Layout::new(of, &batch.columns).map_err(|name| {
            Finding::refused(number, "columns", format!("a column {name}"), "none")
        })?;
        let budget = &mut self.budget;
        let session = session(&mut self.sessions, budget, number, &batch.session)?;
        let rows = batch.cells.chunks_exact(batch.columns.len().max(1));
        let mut unexplained =
            rows.clone().filter_map(|row| layout.unexplained(row, &session.dictionaries));
        if patience == Patience::Waits
            && let Some(id) = unexplained.next()
        {
            let session = batch.session.to_string();
            let waiting = Waiting { line: number, of, session, text: text.to_owned(), id };
            for crowded_out in self.waiting.push(waiting) {
                self.again(&crowded_out, Patience::IsOver, sink);
            }
            return Ok(());
        }
        let mut faults = BTreeSet::new();
        for row in rows {
            let mut what = match layout.event(batch.base, row, &session.dictionaries) {
                Ok(what) => what,
                Err(fault) => {
                    if faults.len() < MOST_FAULTS && faults.insert(fault) {
                        sink.finding(fault.finding(number));
                    }
                    continue;
                }
            };
            match &mut what {
                What::Scope(scope) => session.scopes.note(scope, budget),
                What::Profile(sample) => sample.scope_ended = session.scopes.had_ended(sample),
                _ => {}
            }
            let source = Source {
                session: Some(Text::Borrowed(&batch.session)),
                pid: session.source.pid,
                app: session.source.app.as_deref().map(Text::Borrowed),
            };
            sink.event(number, &Event { source, what });
        }
        self.cells = batch.cells;
        Ok(())
    }
}

/// Most different faults of one line that are named.
const MOST_FAULTS: usize = 100;

impl Unresolved {
    fn finding(self, line: u64) -> Finding {
        match self {
            Self::Id(kind, id) => {
                let found = format!("id {id}, which no dictionary_update explains");
                Finding::refused(line, "rows", format!("an id of {}", kind.key()), found)
            }
            Self::Time => Finding::refused(line, "dt_ns", "a time of 64 bits", "a later one"),
            Self::EventType(other) => {
                Finding::refused(line, "event_type", "0 to 3", other.to_string())
            }
        }
    }
}

fn session<'s>(
    sessions: &'s mut HashMap<String, Session>,
    budget: &mut Budget,
    line: u64,
    name: &str,
) -> Result<&'s mut Session, Finding> {
    if !sessions.contains_key(name) {
        if sessions.len() >= MOST_SESSIONS {
            return Err(Finding::refused(
                line,
                "session_id",
                "at most 1024 sessions in a log",
                name,
            ));
        }
        budget
            .take(name)
            .map_err(|spent| Finding::refused(line, "session_id", ROOM, spent.to_string()))?;
        sessions.insert(name.to_owned(), Session::default());
    }
    sessions.get_mut(name).ok_or_else(|| Finding::refused(line, "session_id", "a session", name))
}

/// The first type that the line names, wherever it stands.
fn type_of(text: &str) -> json::Result<Option<Text<'_>>> {
    let mut json = Json::new(text);
    json.enter_object()?;
    while let Some(key) = json.next_key()? {
        if key == "type" {
            return Ok(Text::slot(&mut json)?.take());
        }
        json.skip()?;
    }
    Ok(None)
}

fn define(
    dictionaries: &mut Dictionaries,
    budget: &mut Budget,
    line: u64,
    kind: Kind,
    id: &str,
    text: &str,
) -> Result<i64, Finding> {
    let refuse = |expected: String, found: String| {
        Err(Finding::refused(line, format!("{}.{id}", kind.key()), expected, found))
    };
    let Ok(number) = id.parse() else {
        return refuse("a whole number as id".to_owned(), id.to_owned());
    };
    match dictionaries.define(kind, number, text, budget) {
        Ok(()) => Ok(number),
        Err(Refused::Redefined(known)) => {
            refuse(format!("{known:?}, which it was before"), format!("{text:?}"))
        }
        Err(Refused::NotAnId) => refuse("an id from 1".to_owned(), id.to_owned()),
        Err(Refused::Full(full)) => refuse(ROOM.to_owned(), full.to_string()),
        Err(Refused::Spent(spent)) => refuse(ROOM.to_owned(), spent.to_string()),
    }
}

/// A `dictionary_update` line.
struct Update<'a> {
    session: Text<'a>,
    entries: Vec<(Kind, Text<'a>, Text<'a>)>,
}

impl<'a> Update<'a> {
    fn read(line: u64, text: &'a str, sink: &mut dyn Sink) -> Result<Self, Finding> {
        let fault =
            |fault: json::Fault| Finding::refused(line, "", "a JSON object", fault.to_string());
        let (mut session, mut entries, mut unknown) = (Slot::Absent, vec![], vec![]);
        let mut json = Json::new(text);
        let mut read = || {
            json.enter_object()?;
            while let Some(key) = json.next_key()? {
                match Kind::ALL.into_iter().find(|kind| kind.key() == key) {
                    Some(kind) => {
                        let table = Table::slot(&mut json)?;
                        entries.push((kind, table));
                    }
                    None if key == "session_id" => session = Text::slot(&mut json)?,
                    None => {
                        json.skip()?;
                        if !matches!(key.as_ref(), "type" | "version") {
                            unknown.push(key);
                        }
                    }
                }
            }
            json.end()
        };
        read().map_err(fault)?;
        unknown.iter().for_each(|key| sink.unknown(line, &format!("dictionary_update.{key}")));
        let refuse =
            |field: &str, expected, found: &str| Finding::refused(line, field, expected, found);
        let session = session.take().ok_or_else(|| refuse("session_id", "a string", "nothing"))?;
        let mut all = vec![];
        for (kind, mut table) in entries {
            if let Slot::Wrong(found) = table {
                return Err(refuse(kind.key(), Table::EXPECTED, found));
            }
            let table = table.take().map(|table| table.0).unwrap_or_default();
            all.extend(table.into_iter().map(|(id, text)| (kind, id, text)));
        }
        Ok(Self { session, entries: all })
    }
}

/// `{"1":"gemm","2":"relu"}`
struct Table<'a>(Vec<(Text<'a>, Text<'a>)>);

impl<'a> crate::record::Field<'a> for Table<'a> {
    const EXPECTED: &'static str = "an object of strings";

    fn read(json: &mut Json<'a>) -> json::Result<Option<Self>> {
        if json.peek()? != json::Kind::Object {
            return Ok(None);
        }
        let mut entries = vec![];
        json.enter_object()?;
        while let Some(id) = json.next_key()? {
            match Text::read(json)? {
                Some(text) => entries.push((id, text)),
                None => return Ok(None),
            }
        }
        Ok(Some(Self(entries)))
    }
}
