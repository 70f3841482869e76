//! Records that outlive the call that handed them on.

use std::borrow::Cow;

use super::{
    CounterEvent, FlowPoint, Id, Label, Labelled, MemoryEvent, Metadata, Record, TraceEvent, Track,
    Value,
};
use crate::event::Text;

fn keep(text: Text<'_>) -> Text<'static> {
    Cow::Owned(text.into_owned())
}

fn keep_all(metadata: Metadata<'_>) -> Metadata<'static> {
    metadata.into_iter().map(|(name, value)| (keep(name), value.into_owned())).collect()
}

impl Record<'_> {
    /// The same record with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> Record<'static> {
        match self {
            Self::Event(event) => Record::Event(event.into_owned()),
            Self::Flow(point) => Record::Flow(FlowPoint {
                track: point.track.into_owned(),
                category: keep(point.category),
                name: keep(point.name),
                extra: keep_all(point.extra),
                ..point
            }),
            Self::Memory(event) => Record::Memory(MemoryEvent {
                track: event.track.into_owned(),
                allocator: event.allocator.map(keep),
                metadata: keep_all(event.metadata),
                ..event
            }),
            Self::Counter(event) => Record::Counter(CounterEvent {
                track: event.track.into_owned(),
                category: event.category.map(keep),
                name: keep(event.name),
                values: keep_all(event.values),
                unit: event.unit.map(keep),
                ..event
            }),
            Self::Label(label) => Record::Label(Label {
                timestamp: label.timestamp,
                track: label.track.into_owned(),
                says: label.says.into_owned(),
            }),
            Self::BaseTime(base) => Record::BaseTime(base),
            Self::Document { key, json } => Record::Document { key: keep(key), json: keep(json) },
            Self::Other(json) => Record::Other(keep(json)),
        }
    }
}

impl TraceEvent<'_> {
    /// The same event with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> TraceEvent<'static> {
        TraceEvent {
            category: self.category.map(keep),
            name: keep(self.name),
            track: self.track.into_owned(),
            call_stack: self.call_stack.into_iter().map(keep).collect(),
            metadata: keep_all(self.metadata),
            extra: keep_all(self.extra),
            ..self
        }
    }
}

impl Track<'_> {
    /// The same track with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> Track<'static> {
        Track { process: self.process.into_owned(), row: self.row.into_owned() }
    }
}

impl Id<'_> {
    /// The same id with a text of its own.
    #[must_use]
    pub fn into_owned(self) -> Id<'static> {
        match self {
            Self::None => Id::None,
            Self::Number(number) => Id::Number(number),
            Self::Text(text) => Id::Text(keep(text)),
        }
    }
}

impl Value<'_> {
    /// The same value with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Integer(value) => Value::Integer(value),
            Self::Unsigned(value) => Value::Unsigned(value),
            Self::Float(value) => Value::Float(value),
            Self::Boolean(value) => Value::Boolean(value),
            Self::Text(text) => Value::Text(keep(text)),
            Self::List(items) => Value::List(items.into_iter().map(Value::into_owned).collect()),
            Self::Json(text) => Value::Json(keep(text)),
        }
    }
}

impl Labelled<'_> {
    fn into_owned(self) -> Labelled<'static> {
        match self {
            Self::ProcessName(name) => Labelled::ProcessName(keep(name)),
            Self::ProcessLabels(labels) => Labelled::ProcessLabels(keep(labels)),
            Self::ProcessSortIndex(index) => Labelled::ProcessSortIndex(index),
            Self::ThreadName(name) => Labelled::ThreadName(keep(name)),
            Self::ThreadSortIndex(index) => Labelled::ThreadSortIndex(index),
            Self::Other { name, metadata } => {
                Labelled::Other { name: keep(name), metadata: keep_all(metadata) }
            }
        }
    }
}
