//! From records to Kineto's document.

use super::args;
use super::category::of_event_type;
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
    state: State,
    /// Members of the document that came when the events had begun.
    late: Vec<u8>,
    losses: Losses,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Empty,
    /// Members of the document have been written.
    Head,
    /// `traceEvents` has been opened.
    Events,
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
                write::integer(self.member("baseTimeNanoseconds", out), *base);
            }
            Record::Document { key, json } => {
                self.member(key, out).extend_from_slice(json.as_bytes());
            }
            Record::Event(event) => {
                if event.thread != event.resource && event.thread.is_some() {
                    self.losses.count("event.thread");
                }
                self.next_event(out);
                self::event(event, out);
                if let Some(flow) = &event.flow {
                    self.next_event(out);
                    fastened_flow(event, *flow, out);
                }
            }
            Record::Flow(point) => {
                self.next_event(out);
                flow(point, out);
            }
            Record::Memory(event) => {
                self.next_event(out);
                memory(event, out);
            }
            Record::Counter(event) => {
                self.losses.count_some("counter.unit", event.unit.as_ref());
                self.losses.count_some("counter.device", event.device.as_ref());
                self.next_event(out);
                counter(event, out);
            }
            Record::Label(label) => {
                self.next_event(out);
                self::label(label, out);
            }
            Record::Other(json) => {
                self.next_event(out);
                out.extend_from_slice(json.as_bytes());
            }
        }
    }

    /// Closes the document.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.state != State::Events {
            self.next_event(out);
        }
        out.extend_from_slice(b"\n]");
        out.append(&mut self.late);
        out.extend_from_slice(b"}\n");
        self.state = State::Empty;
    }

    /// Writes the key of a member of the document, and gives the buffer for its value.
    fn member<'b>(&'b mut self, key: &str, out: &'b mut Vec<u8>) -> &'b mut Vec<u8> {
        let target = match self.state {
            State::Events => {
                self.late.extend_from_slice(b",\n");
                &mut self.late
            }
            State::Head => {
                out.extend_from_slice(b",\n");
                out
            }
            State::Empty => {
                self.state = State::Head;
                out.push(b'{');
                out
            }
        };
        write::text(target, key);
        target.push(b':');
        target
    }

    /// Goes to where the next event stands.
    fn next_event(&mut self, out: &mut Vec<u8>) {
        match self.state {
            State::Events => {
                out.extend_from_slice(b",\n");
                return;
            }
            State::Head => out.extend_from_slice(b",\n\"traceEvents\":[\n"),
            State::Empty => out.extend_from_slice(b"{\"traceEvents\":[\n"),
        }
        self.state = State::Events;
    }
}

fn event(event: &TraceEvent<'_>, out: &mut Vec<u8>) {
    let phase = match (event.duration, event.event_type) {
        (Some(_), _) => "X",
        (None, EventType::RangeStart) => "B",
        (None, EventType::RangeEnd) => "E",
        (None, _) => "i",
    };
    let mut members = Members::open(out);
    members.text("ph", phase);
    let own = || of_event_type(event.event_type).filter(|_| phase == "X");
    if let Some(category) = event.category.as_deref().or_else(own) {
        members.text("cat", category);
    }
    members.text("name", &event.name).track(&event.track).time("ts", event.timestamp);
    if let Some(duration) = event.duration {
        members.time("dur", crate::time::Timestamp(duration.0));
    }
    members.all(&event.extra).object("args", |members| args::put(members, event));
    members.close();
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

fn memory(event: &MemoryEvent<'_>, out: &mut Vec<u8>) {
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

fn label(label: &Label<'_>, out: &mut Vec<u8>) {
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
