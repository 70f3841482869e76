//! The rules of version 2, in the reference's order: of several that a record breaks, the first one
//! is named.

use super::fault::Broken;
use super::key::Key;
use super::record::Record;
use super::value::{Value, is_blank};
use super::{Distributed, TelemetryEvent};

type Result<T> = std::result::Result<T, Broken>;

/// Checks a record and makes it an event.
pub(super) fn validate<'a>(
    mut record: Record<'a>,
    accept_distributed: bool,
) -> Result<TelemetryEvent<'a>> {
    check_keys(&record, accept_distributed)?;
    match record.get(Key::SchemaVersion) {
        Some(Value::Integer(TelemetryEvent::SCHEMA_VERSION)) => {}
        Some(Value::Integer(_) | Value::Huge(_)) => return Err(Broken::NotVersion2),
        _ => return Err(Broken::NotAnInteger(Key::SchemaVersion.name())),
    }
    let timestamp_ns = at_least(0, Key::TimestampNs, integer(&record, Key::TimestampNs)?)?;
    check_text(&record, Key::EventType)?;
    check_text(&record, Key::Collector)?;
    let interval = integer(&record, Key::SamplingIntervalMs)?;
    let sampling_interval_ms = at_least(0, Key::SamplingIntervalMs, interval)?;
    let pid = at_least(-1, Key::Pid, integer(&record, Key::Pid)?)?;
    check_text(&record, Key::Host)?;
    check_distributed(&record)?;
    let device_id = integer(&record, Key::DeviceId)?;

    let allocated = integer(&record, Key::AllocatorAllocatedBytes)?;
    let reserved = integer(&record, Key::AllocatorReservedBytes)?;
    let active = optional_integer(&record, Key::AllocatorActiveBytes)?;
    let inactive = optional_integer(&record, Key::AllocatorInactiveBytes)?;
    let allocator_change_bytes = integer(&record, Key::AllocatorChangeBytes)?;
    let allocator_allocated_bytes = at_least(0, Key::AllocatorAllocatedBytes, allocated)?;
    let allocator_reserved_bytes = at_least(0, Key::AllocatorReservedBytes, reserved)?;
    let allocator_active_bytes = optional_at_least(0, Key::AllocatorActiveBytes, active)?;
    let allocator_inactive_bytes = optional_at_least(0, Key::AllocatorInactiveBytes, inactive)?;

    let used = integer(&record, Key::DeviceUsedBytes)?;
    let free = optional_integer(&record, Key::DeviceFreeBytes)?;
    let total = optional_integer(&record, Key::DeviceTotalBytes)?;
    let device_used_bytes = at_least(0, Key::DeviceUsedBytes, used)?;
    let device_free_bytes = optional_at_least(0, Key::DeviceFreeBytes, free)?;
    let device_total_bytes = optional_at_least(0, Key::DeviceTotalBytes, total)?;
    if let Some(total) = device_total_bytes {
        if device_used_bytes > total {
            return Err(Broken::MoreThanTotal(Key::DeviceUsedBytes.name()));
        }
        if device_free_bytes.is_some_and(|free| free > total) {
            return Err(Broken::MoreThanTotal(Key::DeviceFreeBytes.name()));
        }
    }
    check_optional_text(&record, Key::Context)?;
    if record.get(Key::Metadata) != Some(&Value::Object) {
        return Err(Broken::MetadataNotAnObject);
    }
    let distributed = if accept_distributed { distributed(&mut record)? } else { None };

    Ok(TelemetryEvent {
        timestamp_ns,
        event_type: record.take_text(Key::EventType).unwrap_or_default(),
        collector: record.take_text(Key::Collector).unwrap_or_default(),
        sampling_interval_ms,
        pid,
        host: record.take_text(Key::Host).unwrap_or_default(),
        distributed,
        device_id,
        allocator_allocated_bytes,
        allocator_reserved_bytes,
        allocator_active_bytes,
        allocator_inactive_bytes,
        allocator_change_bytes,
        device_used_bytes,
        device_free_bytes,
        device_total_bytes,
        context: record.take_text(Key::Context),
        metadata: std::mem::take(&mut record.metadata),
    })
}

fn check_keys(record: &Record<'_>, accept_distributed: bool) -> Result<()> {
    let missing = record.missing();
    if !missing.is_empty() {
        return Err(Broken::Missing(missing));
    }
    let unknown = record.not_in_schema(accept_distributed);
    if unknown.is_empty() { Ok(()) } else { Err(Broken::Unknown(unknown)) }
}

/// The integer under a key; an error where there is anything else, or nothing.
pub(super) fn integer(record: &Record<'_>, key: Key) -> Result<i128> {
    integer_of(record.get(key), key)
}

/// The value as an integer.
pub(super) fn integer_of(value: Option<&Value<'_>>, key: Key) -> Result<i128> {
    match value {
        Some(Value::Integer(value)) => Ok(*value),
        Some(Value::Huge(_)) => Err(Broken::BeyondRange(key.name())),
        _ => Err(Broken::NotAnInteger(key.name())),
    }
}

/// The integer under a key, where it is there and not null.
pub(super) fn optional_integer(record: &Record<'_>, key: Key) -> Result<Option<i128>> {
    match record.get(key) {
        None | Some(Value::Null) => Ok(None),
        value => integer_of(value, key).map(Some),
    }
}

fn at_least(minimum: i128, key: Key, value: i128) -> Result<i128> {
    let too_small = Broken::TooSmall { field: key.name(), minimum, nullable: false };
    if value < minimum { Err(too_small) } else { Ok(value) }
}

fn optional_at_least(minimum: i128, key: Key, value: Option<i128>) -> Result<Option<i128>> {
    let too_small = Broken::TooSmall { field: key.name(), minimum, nullable: true };
    if value.is_some_and(|value| value < minimum) { Err(too_small) } else { Ok(value) }
}

fn check_text(record: &Record<'_>, key: Key) -> Result<()> {
    text_of(record.get(key), key).map(drop)
}

/// The value as a text that is not blank.
pub(super) fn text_of<'r>(value: Option<&'r Value<'_>>, key: Key) -> Result<&'r str> {
    match value {
        None | Some(Value::Null) => Err(Broken::Blank(key.name())),
        Some(Value::Text(text)) if is_blank(text) => Err(Broken::Blank(key.name())),
        Some(Value::Text(text)) => Ok(text),
        Some(_) => Err(Broken::NotAString(key.name())),
    }
}

/// A text, blank or not, or null.
pub(super) fn check_optional_text(record: &Record<'_>, key: Key) -> Result<()> {
    match record.get(key) {
        None | Some(Value::Null | Value::Text(_)) => Ok(()),
        Some(_) => Err(Broken::NotAString(key.name())),
    }
}

fn check_distributed(record: &Record<'_>) -> Result<()> {
    if !matches!(record.get(Key::JobId), None | Some(Value::Null)) {
        check_text(record, Key::JobId)?;
    }
    for (key, minimum) in [(Key::Rank, 0), (Key::LocalRank, 0), (Key::WorldSize, 1)] {
        if record.has(key) {
            at_least(minimum, key, integer(record, key)?)?;
        }
    }
    Ok(())
}

fn distributed<'a>(record: &mut Record<'a>) -> Result<Option<Distributed<'a>>> {
    let is_there =
        [Key::JobId, Key::Rank, Key::LocalRank, Key::WorldSize].iter().any(|key| record.has(*key));
    if !is_there {
        return Ok(None);
    }
    let rank = optional_integer(record, Key::Rank)?;
    let local_rank = optional_integer(record, Key::LocalRank)?;
    let world_size = optional_integer(record, Key::WorldSize)?;
    let job_id = record.take_text(Key::JobId);
    Distributed::resolved(job_id, rank, local_rank, world_size).map(Some)
}

impl<'a> Distributed<'a> {
    /// Fills in what a record does not say: one process, whose local number is its number.
    pub(super) fn resolved(
        job_id: Option<std::borrow::Cow<'a, str>>,
        rank: Option<i128>,
        local_rank: Option<i128>,
        world_size: Option<i128>,
    ) -> Result<Self> {
        let rank = rank.unwrap_or(0);
        let local_rank = local_rank.unwrap_or(rank);
        let world_size = world_size.unwrap_or(1);
        at_least(0, Key::Rank, rank)?;
        at_least(0, Key::LocalRank, local_rank)?;
        at_least(1, Key::WorldSize, world_size)?;
        for (key, number) in [(Key::Rank, rank), (Key::LocalRank, local_rank)] {
            if number >= world_size {
                return Err(Broken::RankTooLarge(key.name()));
            }
        }
        Ok(Self { job_id, rank, local_rank, world_size })
    }
}
