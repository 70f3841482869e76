//! What must be known of a trace before its records can be merged with others' or split.

use std::collections::BTreeMap;

use warpgauge_formats::finding::Finding;
use warpgauge_formats::json::Reader;
use warpgauge_formats::trace::{Id, Labelled, Record, Sink, Track};

use super::ranks::{self, Rank};
use super::split::Mark;

/// Processes of one trace that are told apart.
const MOST_PROCESSES: usize = 65_536;

/// Bytes that the names of these processes may have together.
const MOST_NAMES: usize = 16 << 20;

/// Bytes of what is said of the trace as a whole that are kept.
const MOST_DOCUMENT: usize = 1 << 20;

/// What a trace says of itself, and how far its times and ids reach.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Nanoseconds between the Unix epoch and the zero of its times.
    pub(super) base: Option<i64>,
    /// The rank that `distributedInfo` names.
    pub(super) rank: Option<i64>,
    /// The part of which trace it is, where it was split by time.
    pub(super) mark: Option<Mark>,
    /// The ranks that were merged into it.
    pub(super) ranks: Vec<Rank>,
    /// What it says of itself besides, as JSON.
    pub(super) document: Vec<(String, String)>,
    /// Members of the document that did not fit.
    pub(super) left_out: u64,
    /// The first and last time of its events.
    pub(super) span: Option<(i64, i64)>,
    /// The lowest and highest of its correlation ids, activities' ids and arrows' ids.
    pub(super) ids: Option<(i64, i64)>,
    /// Its processes.
    pub(super) processes: BTreeMap<Id<'static>, Process>,
    /// Whether it has more processes than are told apart.
    pub(super) has_too_many: bool,
    /// Records.
    pub(super) records: u64,
    document_bytes: usize,
    name_bytes: usize,
    last: Id<'static>,
}

/// What is said of a process.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Process {
    pub(super) is_named: bool,
    pub(super) sort_index: Option<i64>,
}

impl Survey {
    fn time(&mut self, start: i64, end: i64) {
        let (first, last) = self.span.unwrap_or((start, end));
        self.span = Some((first.min(start), last.max(start).max(end)));
    }

    fn id(&mut self, id: Option<i64>) {
        if let Some(id) = id {
            let (lowest, highest) = self.ids.unwrap_or((id, id));
            self.ids = Some((lowest.min(id), highest.max(id)));
        }
    }

    fn process(&mut self, track: &Track<'_>) -> Option<&mut Process> {
        if self.last != track.process || self.processes.is_empty() {
            self.last = track.process.clone().into_owned();
            if !self.processes.contains_key(&self.last) {
                if let Id::Text(name) = &self.last {
                    self.name_bytes += name.len();
                }
                if self.processes.len() >= MOST_PROCESSES || self.name_bytes > MOST_NAMES {
                    self.has_too_many = true;
                    return None;
                }
                self.processes.insert(self.last.clone(), Process::default());
            }
        }
        self.processes.get_mut(&self.last)
    }

    fn document(&mut self, key: &str, json: &str) {
        match key {
            ranks::MEMBER => self.ranks = ranks::read(json).unwrap_or_default(),
            Mark::MEMBER => self.mark = Mark::read(json),
            _ => {
                if key == "distributedInfo" {
                    self.rank = rank(json);
                }
                self.document_bytes += key.len() + json.len();
                if self.document_bytes > MOST_DOCUMENT {
                    self.left_out += 1;
                } else {
                    self.document.push((key.to_owned(), json.to_owned()));
                }
            }
        }
    }
}

/// The member `rank` of `distributedInfo`.
fn rank(json: &str) -> Option<i64> {
    let mut reader = Reader::new(json);
    reader.enter_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        if key == "rank" {
            return reader.number().ok()?.whole();
        }
        reader.skip().ok()?;
    }
    None
}

impl Sink for Survey {
    fn record(&mut self, _: u64, record: &Record<'_>) {
        self.records += 1;
        match record {
            Record::Event(event) => {
                self.time(event.timestamp.0, event.end().0);
                self.id(event.correlation);
                self.id(event.linked);
                self.id(event.flow.map(|flow| flow.id));
                self.process(&event.track);
            }
            Record::Flow(point) => {
                self.id(Some(point.flow.id));
                self.process(&point.track);
            }
            Record::Memory(event) => {
                self.time(event.timestamp.0, event.timestamp.0);
                self.process(&event.track);
            }
            Record::Counter(event) => {
                self.time(event.timestamp.0, event.timestamp.0);
                self.process(&event.track);
            }
            Record::Label(label) => {
                if let Some(process) = self.process(&label.track) {
                    match label.says {
                        Labelled::ProcessName(_) => process.is_named = true,
                        Labelled::ProcessSortIndex(index) => process.sort_index = Some(index),
                        _ => {}
                    }
                }
            }
            Record::BaseTime(base) => self.base = Some(*base),
            Record::Document { key, json } => self.document(key, json),
            Record::Other(_) => {}
        }
    }

    // Both are heard when the trace is written.
    fn finding(&mut self, _: Finding) {}
    fn unknown(&mut self, _: u64, _: &str) {}
}
