//! One record as it stands in a file, before anything about it is judged.

use std::borrow::Cow;

use super::TelemetryEvent;
use super::key::Key;
use super::metadata::{Member, Metadata, compact, owned};
use super::value::Value;
use crate::json::{self, Kind, Reader};

/// The prefix of legacy keys that belong into the metadata.
const METADATA_PREFIX: &str = "metadata_";

/// The members of a JSON object. Of a key that comes twice the last value counts.
#[derive(Debug, Default)]
pub(super) struct Record<'a> {
    values: Values<'a>,
    /// What stands under `metadata`, where that is an object.
    pub(super) metadata: Metadata<'a>,
    /// The members `metadata_*`, with their whole key.
    prefixed: Vec<Member<'a>>,
    /// All other keys.
    unknown: Vec<Cow<'a, str>>,
}

#[derive(Debug)]
struct Values<'a>([Option<Value<'a>>; Key::ALL.len()]);

impl Default for Values<'_> {
    fn default() -> Self {
        Self([const { None }; Key::ALL.len()])
    }
}

impl<'a> Record<'a> {
    /// Reads the object before which the reader stands.
    pub(super) fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        let mut record = Self::default();
        // Writers keep to one order: the key behind the last one is tried first.
        let mut likely = Key::ALL.iter().copied();
        reader.enter_object()?;
        while let Some(name) = reader.next_key()? {
            let key = likely.next().filter(|key| key.name() == name).or_else(|| {
                let key = Key::named(&name)?;
                likely = Key::ALL.get(key as usize + 1..).unwrap_or_default().iter().copied();
                Some(key)
            });
            record.read_member(key, name, reader)?;
        }
        Ok(record)
    }

    /// Reads the value of a key, behind whose colon the reader stands.
    pub(super) fn read_member(
        &mut self,
        key: Option<Key>,
        name: Cow<'a, str>,
        reader: &mut Reader<'a>,
    ) -> json::Result<()> {
        let Some(key) = key else { return self.read_other(name, reader) };
        let value = if key != Key::Metadata {
            Value::read(reader)?
        } else if reader.peek()? == Kind::Object {
            self.metadata = Metadata::read(reader)?;
            Value::Object
        } else {
            self.metadata = Metadata::default();
            Value::read(reader)?
        };
        self.set(key, value);
        Ok(())
    }

    /// Reads the value of a key that the schema does not have.
    fn read_other(&mut self, name: Cow<'a, str>, reader: &mut Reader<'a>) -> json::Result<()> {
        let value = reader.skip()?;
        if name.starts_with(METADATA_PREFIX) {
            self.prefixed.push((name, compact(value)));
        } else {
            self.unknown.push(name);
        }
        Ok(())
    }

    fn set(&mut self, key: Key, value: Value<'a>) {
        if let Some(slot) = self.values.0.get_mut(key as usize) {
            *slot = Some(value);
        }
    }

    /// What stands under the key; `None` where the key is not there.
    pub(super) fn get(&self, key: Key) -> Option<&Value<'a>> {
        self.values.0.get(key as usize).and_then(Option::as_ref)
    }

    pub(super) fn has(&self, key: Key) -> bool {
        self.get(key).is_some()
    }

    /// Takes out the text under the key, where it is one.
    pub(super) fn take_text(&mut self, key: Key) -> Option<Cow<'a, str>> {
        match self.values.0.get_mut(key as usize)?.take()? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The keys of the schema that are not there, in its order.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let keys = Key::ALL.iter().filter(|key| key.is_required() && !self.has(**key));
        keys.map(|key| key.name()).collect()
    }

    /// The keys that the schema does not have, sorted by code point.
    pub(super) fn not_in_schema(&self, accept_distributed: bool) -> Vec<String> {
        let is_foreign = |key: &&Key| {
            let is_known = key.is_required() || accept_distributed && key.is_distributed();
            !is_known && self.has(**key)
        };
        let legacy = Key::ALL.iter().filter(is_foreign).map(|key| key.name().to_owned());
        let prefixed = self.prefixed.iter().map(|(key, _)| key.to_string());
        let unknown = self.unknown.iter().map(ToString::to_string);
        let mut keys: Vec<_> = legacy.chain(prefixed).chain(unknown).collect();
        // The order of UTF-8's bytes is that of the code points.
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Takes out the metadata and folds the members `metadata_*` into it.
    pub(super) fn take_folded_metadata(&mut self) -> Metadata<'a> {
        let without_prefix = |(key, value): Member<'a>| match key {
            Cow::Borrowed(key) => (key.strip_prefix(METADATA_PREFIX).unwrap_or(key).into(), value),
            Cow::Owned(key) => {
                (key.strip_prefix(METADATA_PREFIX).unwrap_or(&key).to_owned().into(), value)
            }
        };
        let prefixed = std::mem::take(&mut self.prefixed).into_iter().map(without_prefix);
        std::mem::take(&mut self.metadata).folded(prefixed)
    }

    /// Whether the object is meant as an event.
    pub(super) fn tells_an_event(&self) -> bool {
        Key::ALL.iter().any(|key| key.tells_an_event() && self.has(*key))
    }

    /// The record that an event is written as, without its metadata.
    pub(super) fn of(event: &'a TelemetryEvent<'_>) -> Self {
        let integer = Value::Integer;
        let optional = |value: Option<i128>| value.map_or(Value::Null, Value::Integer);
        let text = |text: &'a str| Value::Text(text.into());
        let mut record = Self::default();
        for (key, value) in [
            (Key::SchemaVersion, integer(TelemetryEvent::SCHEMA_VERSION)),
            (Key::TimestampNs, integer(event.timestamp_ns)),
            (Key::EventType, text(&event.event_type)),
            (Key::Collector, text(&event.collector)),
            (Key::SamplingIntervalMs, integer(event.sampling_interval_ms)),
            (Key::Pid, integer(event.pid)),
            (Key::Host, text(&event.host)),
            (Key::DeviceId, integer(event.device_id)),
            (Key::AllocatorAllocatedBytes, integer(event.allocator_allocated_bytes)),
            (Key::AllocatorReservedBytes, integer(event.allocator_reserved_bytes)),
            (Key::AllocatorActiveBytes, optional(event.allocator_active_bytes)),
            (Key::AllocatorInactiveBytes, optional(event.allocator_inactive_bytes)),
            (Key::AllocatorChangeBytes, integer(event.allocator_change_bytes)),
            (Key::DeviceUsedBytes, integer(event.device_used_bytes)),
            (Key::DeviceFreeBytes, optional(event.device_free_bytes)),
            (Key::DeviceTotalBytes, optional(event.device_total_bytes)),
            (Key::Context, event.context.as_deref().map_or(Value::Null, text)),
            (Key::Metadata, Value::Object),
        ] {
            record.set(key, value);
        }
        if let Some(process) = &event.distributed {
            record.set(Key::JobId, process.job_id.as_deref().map_or(Value::Null, text));
            record.set(Key::Rank, integer(process.rank));
            record.set(Key::LocalRank, integer(process.local_rank));
            record.set(Key::WorldSize, integer(process.world_size));
        }
        record
    }
}

impl Record<'static> {
    /// Takes all members of `other`.
    pub(super) fn absorb(&mut self, other: Record<'_>) {
        if other.has(Key::Metadata) {
            self.metadata = other.metadata.into_owned();
        }
        for (slot, value) in self.values.0.iter_mut().zip(other.values.0) {
            if let Some(value) = value {
                *slot = Some(value.into_owned());
            }
        }
        self.prefixed.extend(other.prefixed.into_iter().map(owned));
        self.unknown.extend(other.unknown.into_iter().map(|key| key.into_owned().into()));
    }

    /// Takes a key that means nothing; its value is of no interest.
    pub(super) fn absorb_unknown(&mut self, name: String) {
        self.unknown.push(name.into());
    }
}

/// Whether anything depends on the value under a key.
pub(super) fn is_of_interest(name: &str) -> bool {
    Key::named(name).is_some() || name.starts_with(METADATA_PREFIX)
}
