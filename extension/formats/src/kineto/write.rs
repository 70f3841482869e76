//! From records to Kineto's document.

use super::category::of_event_type;
use super::document::Document;
use super::{args, unsaid};
use crate::json::write;
use crate::loss::Losses;
use crate::trace::json::{Members, value};
use crate::trace::{
    CounterEvent, EventType, Flow, FlowPoint, Label, Labelled, MemoryEvent, Record, TraceEvent,
    Value,
};

/// Writes one document, record by record.
///
/// What is said of the trace stands before the events where it comes before them, and behind them
/// otherwise; only the latter is kept until [`Writer::finish`].
#[derive(Debug, Default)]
pub struct Writer {
    document: Document,
    losses: Losses,
}

impl Writer {
    /// A writer of a new document.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What Kineto's form could not hold.
    #[must_use]
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Appends a record to `out`.
    pub fn write(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        match record {
            Record::BaseTime(base) => {
                write::integer(self.document.member("baseTimeNanoseconds", out), *base);
            }
            Record::Document { key, json } => {
                self.document.member(key, out).extend_from_slice(json.as_bytes());
            }
            Record::Event(event) => {
                self.document.next_event(out);
                self::event(event, out);
                if let Some(flow) = &event.flow {
                    self.document.next_event(out);
                    fastened_flow(event, *flow, out);
                }
            }
            Record::Flow(point) => {
                self.document.next_event(out);
                flow(point, out);
            }
            Record::Memory(event) => {
                self.document.next_event(out);
                memory(event, out);
            }
            Record::Counter(event) => {
                self.losses.count_some("counter.unit", event.unit.as_ref());
                self.losses.count_some("counter.device", event.device.as_ref());
                self.document.next_event(out);
                counter(event, out);
            }
            Record::Label(label) => {
                self.document.next_event(out);
                self::label(label, out);
            }
            Record::Other(json) => {
                self.document.next_event(out);
                out.extend_from_slice(json.as_bytes());
            }
        }
    }

    /// Closes the document.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.document.close(out);
    }
}

fn event(event: &TraceEvent<'_>, out: &mut Vec<u8>) {
    let phase = phase(event);
    let mut members = Members::open(out);
    members.text("ph", phase);
    let own = || of_event_type(event.event_type).filter(|_| phase == "X");
    let category = event.category.as_deref().or_else(own);
    if let Some(category) = category {
        members.text("cat", category);
    }
    members.text("name", &event.name).track(&event.track).time("ts", event.timestamp);
    if let Some(duration) = event.duration {
        members.time("dur", crate::time::Timestamp(duration.0));
    }
    members.all(&event.extra).object("args", |members| {
        args::put(members, event);
        unsaid::put(members, event, category);
    });
    members.close();
}

/// The letter that says what kind of record an event is.
pub(crate) fn phase(event: &TraceEvent<'_>) -> &'static str {
    match (event.duration, event.event_type) {
        (Some(_), _) => "X",
        (None, EventType::RangeStart) => "B",
        (None, EventType::RangeEnd) => "E",
        (None, _) => "i",
    }
}

/// The flow of an event as the record of its own that it is in Kineto.
fn fastened_flow(event: &TraceEvent<'_>, flow: Flow, out: &mut Vec<u8>) {
    let category = flow.flow_type.category();
    let point = FlowPoint {
        flow,
        timestamp: event.timestamp,
        track: event.track.clone(),
        category: category.into(),
        name: category.into(),
        enclosing: !flow.start,
        extra: vec![],
    };
    self::flow(&point, out);
}

fn flow(point: &FlowPoint<'_>, out: &mut Vec<u8>) {
    let mut members = Members::open(out);
    members.text("ph", if point.flow.start { "s" } else { "f" }).integer("id", point.flow.id);
    members.track(&point.track).time("ts", point.timestamp);
    if !point.category.is_empty() {
        members.text("cat", &point.category);
    }
    members.text("name", &point.name);
    if point.enclosing {
        members.text("bp", "e");
    }
    members.all(&point.extra);
    members.close();
}

pub(crate) fn memory(event: &MemoryEvent<'_>, out: &mut Vec<u8>) {
    let mut members = Members::open(out);
    members.text("ph", "i").text("cat", "cpu_instant_event").text("s", "t");
    members.text("name", "[memory]").track(&event.track).time("ts", event.timestamp);
    members.object("args", |members| args::put_memory(members, event));
    members.close();
}

fn counter(event: &CounterEvent<'_>, out: &mut Vec<u8>) {
    let mut members = Members::open(out);
    members.text("ph", "C");
    if let Some(category) = &event.category {
        members.text("cat", category);
    }
    members.text("name", &event.name).track(&event.track).time("ts", event.timestamp);
    members.object("args", |members| {
        members.all(&event.values);
    });
    members.close();
}

pub(crate) fn label(label: &Label<'_>, out: &mut Vec<u8>) {
    let text = |key, text: &str| (key, Value::Text(text.to_owned().into()));
    let (name, (key, item)) = match &label.says {
        Labelled::ProcessName(name) => ("process_name", text("name", name)),
        Labelled::ProcessLabels(labels) => ("process_labels", text("labels", labels)),
        Labelled::ProcessSortIndex(index) => {
            ("process_sort_index", ("sort_index", Value::Integer(*index)))
        }
        Labelled::ThreadName(name) => ("thread_name", text("name", name)),
        Labelled::ThreadSortIndex(index) => {
            ("thread_sort_index", ("sort_index", Value::Integer(*index)))
        }
        Labelled::Other { name, .. } => (&**name, ("", Value::Boolean(false))),
    };
    let mut members = Members::open(out);
    members.text("ph", "M").text("name", name);
    if let Some(time) = label.timestamp {
        members.time("ts", time);
    }
    members.track(&label.track);
    members.object("args", |members| match &label.says {
        Labelled::Other { metadata, .. } => {
            members.all(metadata);
        }
        _ => value(members.key(key), &item),
    });
    members.close();
}
