//! Metadata as `DebugAnnotation`s of an event, each in its type.

use super::dictionary::Dictionary;
use super::wire;
use crate::event::{Dim3, Text};
use crate::trace::{MemoryEvent, MemoryOperation, TraceEvent, Value};

/// Writes annotations into the body of a `TrackEvent`.
pub(super) struct Annotations<'b> {
    pub(super) event: &'b mut Vec<u8>,
    pub(super) dictionary: &'b mut Dictionary,
}

impl Annotations<'_> {
    /// A value under its name.
    pub(super) fn value(&mut self, name: &str, item: &Value<'_>) {
        self.annotation(name, |annotation| value(annotation, item));
    }

    fn annotation(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        let dictionary = &mut *self.dictionary;
        wire::message(self.event, 4, |annotation| {
            dictionary.key(annotation, name);
            write(annotation);
        });
    }

    fn integer(&mut self, name: &str, number: Option<i64>) {
        if let Some(number) = number {
            self.value(name, &Value::Integer(number));
        }
    }

    fn extents(&mut self, name: &str, extents: Option<Dim3>) {
        if let Some(extents) = extents {
            self.annotation(name, |annotation| {
                for extent in extents {
                    wire::message(annotation, 12, |inner| wire::signed(inner, 4, extent));
                }
            });
        }
    }

    fn all(&mut self, metadata: &[(Text<'_>, Value<'_>)]) {
        for (name, item) in metadata {
            self.value(name, item);
        }
    }

    /// All that an event says beside its name, time and track.
    pub(super) fn of_event(&mut self, event: &TraceEvent<'_>) {
        let TraceEvent { kernel, transfer, .. } = event;
        self.integer("device", event.device);
        self.integer("stream", event.stream);
        if event.thread != event.resource {
            self.integer("thread", event.thread);
        }
        self.integer("correlation", event.correlation);
        self.integer("External id", event.linked);
        self.extents("grid", kernel.grid);
        self.extents("block", kernel.block);
        self.integer("registers per thread", kernel.registers);
        self.integer("shared memory", kernel.shared_bytes);
        self.integer("bytes", transfer.bytes);
        if let Some(bandwidth) = transfer.bandwidth {
            self.value("memory bandwidth (GB/s)", &Value::Float(bandwidth));
        }
        if !event.call_stack.is_empty() {
            self.annotation("Call stack", |annotation| {
                for frame in &event.call_stack {
                    wire::message(annotation, 12, |inner| wire::text(inner, 6, frame));
                }
            });
        }
        self.all(&event.metadata);
        self.all(&event.extra);
    }

    /// All that a change of memory says.
    pub(super) fn of_memory(&mut self, event: &MemoryEvent<'_>) {
        let operation = match event.operation {
            MemoryOperation::Allocation => "allocation",
            MemoryOperation::Free => "free",
        };
        self.value("operation", &Value::Text(operation.into()));
        self.value("bytes", &Value::Unsigned(event.bytes));
        if let Some(address) = event.address {
            self.value("address", &Value::Unsigned(address));
        }
        self.integer("device", event.device);
        self.integer("device type", event.device_type);
        if let Some(allocator) = &event.allocator {
            self.value("allocator", &Value::Text((&**allocator).into()));
        }
        self.value("category", &Value::Text(event.category.as_str().into()));
        self.all(&event.metadata);
    }
}

fn value(annotation: &mut Vec<u8>, item: &Value<'_>) {
    match item {
        Value::Boolean(flag) => wire::unsigned(annotation, 2, u64::from(*flag)),
        Value::Unsigned(number) => wire::unsigned(annotation, 3, *number),
        Value::Integer(number) => wire::signed(annotation, 4, *number),
        Value::Float(number) => wire::double(annotation, 5, *number),
        Value::Text(text) => wire::text(annotation, 6, text),
        Value::Json(json) => wire::text(annotation, 9, json),
        Value::List(items) => {
            for item in items {
                wire::message(annotation, 12, |inner| value(inner, item));
            }
        }
    }
}
