//! The sums of one trace.

use warpgauge_formats::time::Timestamp;
use warpgauge_formats::trace::{EventType, Record, TraceEvent};

use super::counters::Counters;
use super::device::Device;
use super::memory::Memory;
use super::role::Role;
use super::said::Said;
use super::timeline::{Limits, Timeline};

/// One trace: what no other trace is mixed into, for each has a clock of its own.
#[derive(Debug)]
pub struct Trace {
    /// The file.
    pub name: String,
    /// What it says of itself.
    pub said: Said,
    /// Nanoseconds between the Unix epoch and the zero of its times; none where it does not tell.
    pub base: Option<i64>,
    /// The first beginning and the last end of all events.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Its devices, in the order of their processes.
    pub devices: Vec<Device>,
    /// Memory by device.
    pub memory: Memory,
    /// Counters.
    pub counters: Counters,
    /// Pieces of work on streams beyond the limit.
    pub left_out: u64,
    /// Calls that were forgotten before any work of theirs had come.
    pub forgotten_calls: u64,
    timeline: Option<Timeline>,
}

impl Trace {
    pub(super) fn begins(name: &str, limits: Limits) -> Self {
        Self {
            name: name.to_owned(),
            said: Said::default(),
            base: None,
            span: None,
            devices: vec![],
            memory: Memory::default(),
            counters: Counters::default(),
            left_out: 0,
            forgotten_calls: 0,
            timeline: Some(Timeline::new(limits)),
        }
    }

    pub(super) fn note(&mut self, record: &Record<'_>) {
        match record {
            Record::Event(event) => self.reach(event.timestamp, event.end()),
            Record::Memory(event) => {
                self.reach(event.timestamp, event.timestamp);
                self.memory.note(event);
            }
            Record::Counter(event) => {
                self.reach(event.timestamp, event.timestamp);
                self.counters.note(event);
            }
            Record::Label(label) => self.said.label(label),
            Record::BaseTime(base) => self.base = Some(*base),
            Record::Document { key, json } => self.said.document(key, json),
            Record::Flow(_) | Record::Other(_) => {}
        }
    }

    pub(super) fn work(&mut self, event: &TraceEvent<'_>, role: Role) {
        if let Some(timeline) = &mut self.timeline {
            timeline.note(event, role);
        }
    }

    pub(super) fn ends(&mut self) {
        let Some(mut timeline) = self.timeline.take() else { return };
        timeline.end();
        self.left_out = timeline.left_out;
        self.forgotten_calls = timeline.forgotten_calls();
        self.devices = timeline.devices;
        self.devices.sort_by(|one, other| one.process.cmp(&other.process));
        for device in &mut self.devices {
            device.streams.sort_by(|one, other| one.row.cmp(&other.row));
            let name = self.said.device_name(&device.process, device.ordinal);
            device.name = name.map(str::to_owned);
            device.rank = self.said.rank_of(&device.process);
            device.label = self.said.processes.get(&device.process).cloned();
        }
    }

    fn reach(&mut self, from: Timestamp, to: Timestamp) {
        let to = to.max(from);
        self.span =
            Some(self.span.map_or((from, to), |(first, last)| (first.min(from), last.max(to))));
    }
}

/// What a record is counted as.
pub(super) fn category<'r>(record: &'r Record<'_>) -> &'r str {
    match record {
        Record::Event(event) => match (event.category.as_deref(), event.event_type) {
            (Some(category), _) => category,
            (None, EventType::Marker) => "(instant)",
            (None, _) => "(no category)",
        },
        Record::Flow(_) => "(flow)",
        Record::Memory(_) => "(memory)",
        Record::Counter(_) => "(counter)",
        Record::Label(_) => "(label)",
        Record::Other(_) => "(other)",
        Record::BaseTime(_) | Record::Document { .. } => "",
    }
}
