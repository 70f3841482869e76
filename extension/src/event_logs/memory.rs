//! What one pass remembers of the logs for the next: `<state>/events.json`.
//!
//! Of a GPU Flight session: its dictionaries, its first line, the batches that still wait for theirs,
//! and the numbers of those that were read. The lines are kept as the log has them and read again by the same reader, so that there is no
//! second form of a reader's state to go wrong.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use warpgauge_formats::gpu_flight::Batches;

use crate::event_metrics::open_scopes::OpenScopes;
use crate::skips::Skips;

/// The file's name in the state folder.
pub const FILE: &str = "events.json";

/// How long a log is remembered of which nothing was read.
const MEMORY_NS: u64 = 7 * 24 * 3_600 * 1_000_000_000;

/// Bytes of all that is remembered of all logs; the logs that were not read for longest go first.
const MOST_BYTES: usize = 64 << 20;

/// What a range of numbers costs.
const RANGE: usize = size_of::<(i64, i64)>();

/// `reason` of logs whose memory went.
pub const FORGOTTEN: &str = "memory_full";

/// What is remembered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// By the log's path without what rotation put into it.
    pub logs: BTreeMap<String, LogMemory>,
    /// The scopes that have begun and not ended.
    pub open: OpenScopes,
    /// `service.instance.id` of every source whose totals go on, and when something was read of it,
    /// nanoseconds since the epoch.
    pub instances: BTreeMap<String, u64>,
}

/// What is remembered of one log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogMemory {
    /// By session.
    sessions: BTreeMap<String, Session>,
    /// Lines that wait for their dictionary.
    #[serde(with = "lines")]
    pub waiting: Vec<Vec<u8>>,
    /// When a line was last read, nanoseconds since the epoch.
    pub last_read_ns: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Session {
    /// Its first line.
    start: Option<String>,
    /// The numbers of the batches that were read, by type: first and last of each range.
    batches: BTreeMap<String, Vec<(i64, i64)>>,
    /// By the key in a `dictionary_update`, then by id.
    dictionaries: BTreeMap<String, BTreeMap<String, String>>,
}

/// Why the memory cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path}: {source}; the state folder must be readable, and the file what warpgauge wrote: remove it to begin anew"
)]
pub struct MemoryError {
    path: PathBuf,
    source: io::Error,
}

impl Memory {
    /// Reads it; a missing file is a first pass.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn load(state: &Path) -> Result<Self, MemoryError> {
        let path = state.join(FILE);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(MemoryError { path, source }),
        };
        serde_json::from_slice(&text)
            .map_err(|fault| MemoryError { path, source: io::Error::other(fault) })
    }

    /// As the file holds it.
    ///
    /// # Errors
    /// None in practice: every part of it has a JSON form.
    pub fn to_json(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(io::Error::other)
    }

    /// Keeps within the bounds.
    pub(super) fn forget(&mut self, now_ns: u64, skipped: &mut Skips) {
        let is_kept = |last_ns: u64| now_ns.saturating_sub(last_ns) <= MEMORY_NS;
        self.logs.retain(|_, log| is_kept(log.last_read_ns));
        self.instances.retain(|_, last_ns| is_kept(*last_ns));
        let mut bytes: usize = self.logs.values().map(LogMemory::bytes).sum();
        while bytes > MOST_BYTES {
            let oldest = self.logs.iter().min_by_key(|(_, log)| log.last_read_ns);
            let Some(oldest) = oldest.map(|(log, _)| log.clone()) else { break };
            bytes -= self.logs.remove(&oldest).map_or(0, |log| log.bytes());
            skipped.note(FORGOTTEN, || format!("{oldest}: what its dictionaries say"));
        }
    }
}

impl LogMemory {
    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.waiting.is_empty()
    }

    fn bytes(&self) -> usize {
        let texts = self.sessions.values().map(|session| {
            let tables = session.dictionaries.values().flatten();
            let texts: usize = tables.map(|(id, text)| id.len() + text.len() + 8).sum();
            let ranges = session.batches.values().map(Vec::len).sum::<usize>() * RANGE;
            texts + ranges + session.start.as_ref().map_or(0, String::len)
        });
        texts.sum::<usize>() + self.waiting.iter().map(Vec::len).sum::<usize>()
    }

    /// Remembers a session's first line.
    pub(super) fn begin(&mut self, session: &str, line: &[u8]) {
        let start = &mut self.sessions.entry(session.to_owned()).or_default().start;
        start.get_or_insert_with(|| String::from_utf8_lossy(line).into_owned());
    }

    /// Remembers what a dictionary line says. The first text of an id is its text.
    pub(super) fn learn(&mut self, line: &[u8]) {
        let Ok(Value::Object(line)) = serde_json::from_slice(line) else { return };
        let Some(Value::String(session)) = line.get("session_id") else { return };
        let tables = line.iter().filter_map(|(key, table)| Some((key, table.as_object()?)));
        let known = &mut self.sessions.entry(session.clone()).or_default().dictionaries;
        for (key, table) in tables {
            let known = known.entry(key.clone()).or_default();
            for (id, text) in table {
                if let Value::String(text) = text {
                    known.entry(id.clone()).or_insert_with(|| text.clone());
                }
            }
        }
    }

    /// Remembers which batches were read.
    pub(super) fn have_read(&mut self, Batches { session, of, numbers }: Batches<'_>) {
        let session = self.sessions.entry(session.to_owned()).or_default();
        session.batches.insert(of.to_owned(), numbers);
    }

    /// The batches that were read.
    pub(super) fn batches(&self) -> impl Iterator<Item = Batches<'_>> {
        self.sessions.iter().flat_map(|(name, session)| {
            let numbers = session.batches.iter();
            numbers.map(|(of, numbers)| Batches { session: name, of, numbers: numbers.clone() })
        })
    }

    /// The lines that tell a reader what is remembered.
    pub(super) fn replay(&self) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for (name, session) in &self.sessions {
            lines.extend(session.start.as_ref().map(|start| start.clone().into_bytes()));
            let mut line = Map::new();
            line.insert("type".to_owned(), DICTIONARY.into());
            line.insert("session_id".to_owned(), name.clone().into());
            for (key, table) in &session.dictionaries {
                let table = table.iter().map(|(id, text)| (id.clone(), text.clone().into()));
                line.insert(key.clone(), Value::Object(table.collect()));
            }
            lines.push(Value::Object(line).to_string().into_bytes());
        }
        lines
    }
}

const DICTIONARY: &str = "dictionary_update";

/// Whether a line may be a dictionary.
#[must_use]
pub fn is_dictionary(line: &[u8]) -> bool {
    memmem::find(line, DICTIONARY.as_bytes()).is_some()
}

/// Whether a line may be a session's first.
#[must_use]
pub fn is_start(line: &[u8]) -> bool {
    [&b"\"job_start\""[..], b"\"init\""].iter().any(|kind| memmem::find(line, kind).is_some())
}

/// Whether a line may be a batch with rows.
pub(super) fn is_batch(line: &[u8]) -> bool {
    memmem::find(line, b"_batch\"").is_some() && memmem::find(line, b"[]").is_none()
}

/// Lines as texts: what waits was read as UTF-8 already.
mod lines {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(lines: &[Vec<u8>], to: S) -> Result<S::Ok, S::Error> {
        let texts: Vec<_> = lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
        texts.serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<Vec<u8>>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        Ok(texts.into_iter().map(String::into_bytes).collect())
    }
}
