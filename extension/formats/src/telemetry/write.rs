//! Events as JSON text.

use super::TelemetryEvent;
use super::key::Key;
use crate::json::write::{self, Object};

impl TelemetryEvent<'_> {
    /// Appends the event as one JSON object on one line, without a newline behind it: all keys of the
    /// schema, in its order. Those of a distributed run stand behind `host`, where later producers
    /// write them.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::open(out);
        object
            .integer(Key::SchemaVersion.name(), Self::SCHEMA_VERSION)
            .integer(Key::TimestampNs.name(), self.timestamp_ns)
            .text(Key::EventType.name(), &self.event_type)
            .text(Key::Collector.name(), &self.collector)
            .integer(Key::SamplingIntervalMs.name(), self.sampling_interval_ms)
            .integer(Key::Pid.name(), self.pid)
            .text(Key::Host.name(), &self.host);
        if let Some(process) = &self.distributed {
            text_or_null(&mut object, Key::JobId, process.job_id.as_deref());
            object
                .integer(Key::Rank.name(), process.rank)
                .integer(Key::LocalRank.name(), process.local_rank)
                .integer(Key::WorldSize.name(), process.world_size);
        }
        object
            .integer(Key::DeviceId.name(), self.device_id)
            .integer(Key::AllocatorAllocatedBytes.name(), self.allocator_allocated_bytes)
            .integer(Key::AllocatorReservedBytes.name(), self.allocator_reserved_bytes);
        integer_or_null(&mut object, Key::AllocatorActiveBytes, self.allocator_active_bytes);
        integer_or_null(&mut object, Key::AllocatorInactiveBytes, self.allocator_inactive_bytes);
        object
            .integer(Key::AllocatorChangeBytes.name(), self.allocator_change_bytes)
            .integer(Key::DeviceUsedBytes.name(), self.device_used_bytes);
        integer_or_null(&mut object, Key::DeviceFreeBytes, self.device_free_bytes);
        integer_or_null(&mut object, Key::DeviceTotalBytes, self.device_total_bytes);
        text_or_null(&mut object, Key::Context, self.context.as_deref());
        self.metadata.write(object.key(Key::Metadata.name()));
        object.close();
    }
}

fn integer_or_null(object: &mut Object<'_>, key: Key, value: Option<i128>) {
    let out = object.key(key.name());
    match value {
        Some(value) => write::integer(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

fn text_or_null(object: &mut Object<'_>, key: Key, value: Option<&str>) {
    let out = object.key(key.name());
    match value {
        Some(value) => write::text(out, value),
        None => out.extend_from_slice(b"null"),
    }
}
