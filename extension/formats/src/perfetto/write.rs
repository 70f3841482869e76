//! From records to packets.

use super::annotations::Annotations;
use super::dictionary::Dictionary;
use super::packets::{self, Kind};
use super::tracks::Tracks;
use super::window::{DEFAULT_WINDOW, Due, Window};
use super::wire;
use crate::loss::Losses;
use crate::time::Timestamp;
use crate::trace::json::Members;
use crate::trace::{
    CounterEvent, EventType, Flow, FlowPoint, Labelled, MemoryEvent, Metadata, Record, TraceEvent,
    Track, Value,
};

/// Writes one trace.
///
/// Memory: the window and what it lets go at once, which is half of it; the distinct names,
/// categories and keys (4 MiB each at most); and one entry for each thread, stream, lane and counter.
#[derive(Debug)]
pub struct Writer {
    begun: bool,
    dictionary: Dictionary,
    tracks: Tracks,
    window: Window<Arrow>,
    losses: Losses,
    /// Body of the `TrackEvent` that is being written, kept for its memory.
    body: Vec<u8>,
}

/// One end of an arrow, as a field of the event that it is fastened to.
#[derive(Debug, Clone, Copy)]
struct Arrow {
    /// `flow_ids`, or `terminating_flow_ids`.
    field: u64,
    id: u64,
}

impl Arrow {
    /// An arrow's number counts within its category, and Perfetto's within the trace.
    fn new(flow: Flow, category: &str) -> Self {
        let field = if flow.start { 47 } else { 48 };
        Self { field, id: flow.number(category) }
    }

    fn put(self, event: &mut Vec<u8>) {
        wire::fixed64(event, self.field, self.id);
    }
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// A writer of a new trace.
    #[must_use]
    pub fn new() -> Self {
        Self::with_window(DEFAULT_WINDOW)
    }

    /// A writer that lets slices of `bytes` wait for their order.
    #[must_use]
    pub fn with_window(bytes: usize) -> Self {
        Self {
            begun: false,
            dictionary: Dictionary::new(),
            tracks: Tracks::default(),
            window: Window::new(bytes),
            losses: Losses::default(),
            body: vec![],
        }
    }

    /// What Perfetto's form could not hold.
    #[must_use]
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Takes a record, and appends to `out` what can be written by now.
    pub fn write(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.begun, true) {
            packets::beginning(out);
        }
        match record {
            Record::Event(event) => self.event(event, out),
            Record::Flow(point) => self.flow_point(point, out),
            Record::Memory(event) => self.memory(event, out),
            Record::Counter(event) => self.counter(event, out),
            Record::Label(label) => {
                if let Labelled::Other { name, metadata } = &label.says {
                    self.other_label(&label.track, name, metadata, out);
                } else {
                    self.tracks.label(&label.track, &label.says);
                }
            }
            Record::BaseTime(base) => match u64::try_from(*base) {
                Ok(base) => packets::base_time(out, base),
                Err(_) => self.losses.count("base time before 1970"),
            },
            Record::Document { key, json } => packets::metadata(out, key, json),
            Record::Other(json) => packets::metadata(out, "record", json),
        }
        if self.window.is_full() {
            let Self { window, tracks, body, .. } = self;
            let mut ended = vec![];
            window.release_half(|due| release(tracks, due, body, &mut ended, out));
        }
    }

    /// Writes all that still waits.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let Self { window, tracks, body, .. } = self;
        let mut ended = vec![];
        window.release_all(|due| release(tracks, due, body, &mut ended, out));
        for place in 0..self.tracks.rows.len() {
            let Some(row) = self.tracks.rows.get_mut(place) else { continue };
            for (lane, ends) in std::mem::take(&mut row.lanes).close() {
                let track = self.tracks.lane(place, lane, out);
                for end in ends {
                    packets::event(out, end, Kind::End, track, [&[]; 2]);
                }
            }
        }
        self.tracks.describe_again(out);
    }

    fn event(&mut self, event: &TraceEvent<'_>, out: &mut Vec<u8>) {
        let Some(start) = self.time(event.timestamp, "event before the base time") else { return };
        let row = self.tracks.row(&event.track, event.thread.is_some());
        let body = &mut self.body;
        body.clear();
        let ends = event.event_type == EventType::RangeEnd && event.duration.is_none();
        // An end with a name ends only a range of that name and category.
        if !ends {
            self.dictionary.name(body, &event.name);
            let category = event.category.as_deref().unwrap_or(event.event_type.name());
            self.dictionary.category(body, category);
        }
        Annotations { event: body, dictionary: &mut self.dictionary }.of_event(event);
        if let Some(flow) = event.flow {
            Arrow::new(flow, flow.flow_type.category()).put(body);
        }
        define(&mut self.dictionary, out);
        let Some(duration) = event.duration else {
            let (kind, track) = match event.event_type {
                EventType::RangeStart => (Kind::Begin, self.tracks.ranges(row, out)),
                EventType::RangeEnd => (Kind::End, self.tracks.ranges(row, out)),
                _ => (Kind::Instant, self.tracks.announced(row, out)),
            };
            packets::event(out, start, kind, track, [body, &[]]);
            return;
        };
        let length = u64::try_from(duration.0).unwrap_or_else(|_| {
            self.losses.count("event.negative_duration");
            0
        });
        self.window.slice(row, start, start.saturating_add(length), body);
    }

    fn flow_point(&mut self, point: &FlowPoint<'_>, out: &mut Vec<u8>) {
        let Some(time) = self.time(point.timestamp, "flow before the base time") else { return };
        let row = self.tracks.row_of_arrow(&point.track);
        let body = &mut self.body;
        body.clear();
        self.dictionary.name(body, &point.name);
        self.dictionary.category(body, &point.category);
        define(&mut self.dictionary, out);
        if !point.extra.is_empty() {
            self.losses.count("flow.extra");
        }
        self.window.arrow(row, time, Arrow::new(point.flow, &point.category), body);
    }

    /// What no track can hold of a process or a thread stands among the words on the trace.
    fn other_label(
        &mut self,
        track: &Track<'_>,
        name: &str,
        metadata: &Metadata<'_>,
        out: &mut Vec<u8>,
    ) {
        let mut json = vec![];
        let mut members = Members::open(&mut json);
        members.track(track).object("args", |args| {
            args.all(metadata);
        });
        members.close();
        // Every part of it was a text or is written as one.
        packets::metadata(out, name, &String::from_utf8_lossy(&json));
    }

    fn memory(&mut self, event: &MemoryEvent<'_>, out: &mut Vec<u8>) {
        let Some(time) = self.time(event.timestamp, "memory before the base time") else { return };
        let row = self.tracks.row(&event.track, event.thread.is_some());
        let body = &mut self.body;
        body.clear();
        self.dictionary.name(body, "[memory]");
        Annotations { event: body, dictionary: &mut self.dictionary }.of_memory(event);
        define(&mut self.dictionary, out);
        let track = self.tracks.announced(row, out);
        packets::event(out, time, Kind::Instant, track, [body, &[]]);
        let device = match event.device {
            Some(device) if device >= 0 => format!("device {device}"),
            _ => "host".to_owned(),
        };
        let totals = [("allocated", event.total_allocated), ("reserved", event.total_reserved)];
        for (name, total) in totals {
            if let Some(total) = total {
                let name = format!("memory {name} ({device})");
                let value = Value::Integer(total);
                self.value(
                    &event.track,
                    event.thread.is_some(),
                    &name,
                    Some("By"),
                    time,
                    &value,
                    out,
                );
            }
        }
    }

    fn counter(&mut self, event: &CounterEvent<'_>, out: &mut Vec<u8>) {
        let Some(time) = self.time(event.timestamp, "counter before the base time") else { return };
        self.losses.count_some("counter.category", event.category.as_ref());
        let is_host = self.tracks.is_host(&event.track.process);
        for (series, value) in &event.values {
            let device = event.device.map(|device| format!("device {device} ")).unwrap_or_default();
            let name = format!("{device}{} {series}", event.name);
            let unit = event.unit.as_deref();
            self.value(&event.track, is_host, name.trim_end(), unit, time, value, out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one value, with all that names its track")]
    fn value(
        &mut self,
        track: &Track<'_>,
        is_host: bool,
        name: &str,
        unit: Option<&str>,
        time: u64,
        value: &Value<'_>,
        out: &mut Vec<u8>,
    ) {
        let mut body = vec![];
        match value {
            Value::Integer(value) => wire::signed(&mut body, 30, *value),
            other => match other.as_f64() {
                Some(value) => wire::double(&mut body, 44, value),
                None => return self.losses.count("counter value that is no number"),
            },
        }
        let number = self.tracks.counter(&track.process, is_host, name, unit, out);
        packets::event(out, time, Kind::Counter, number, [&body, &[]]);
    }

    fn time(&mut self, time: Timestamp, loss: &'static str) -> Option<u64> {
        let time = u64::try_from(time.0).ok();
        if time.is_none() {
            self.losses.count(loss);
        }
        time
    }
}

/// Writes what the window has let go. `fields` and `ended` are kept for their memory only.
fn release(
    tracks: &mut Tracks,
    due: Due<'_, Arrow>,
    fields: &mut Vec<u8>,
    ended: &mut Vec<u64>,
    out: &mut Vec<u8>,
) {
    let Due { row, start, end, body, arrows } = due;
    fields.clear();
    arrows.iter().for_each(|arrow| arrow.flow.put(fields));
    let Some(end) = end else {
        // An arrow to nowhere: an instant that it can be fastened to.
        let track = tracks.announced(row, out);
        packets::event(out, start, Kind::Instant, track, [body, fields]);
        return;
    };
    let Some(lanes) = tracks.rows.get_mut(row).map(|row| &mut row.lanes) else { return };
    let lane = lanes.place(start, end, ended);
    let track = tracks.lane(row, lane, out);
    for end in ended.drain(..) {
        packets::event(out, end, Kind::End, track, [&[]; 2]);
    }
    packets::event(out, start, Kind::Begin, track, [body, fields]);
}

/// Writes the numbers that texts have got, before they are used.
fn define(dictionary: &mut Dictionary, out: &mut Vec<u8>) {
    if !dictionary.defined.is_empty() {
        packets::interned(out, &dictionary.defined);
        dictionary.defined.clear();
    }
}
