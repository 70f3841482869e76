//! Records from before version 2, made into events.
//!
//! Each function gives one field from whatever older records have in its place. "There" means that
//! the key is there, with whatever value: null does not let the next alias have its turn unless a
//! function says so. The order of the calls in [`convert`] is the order in which faults are named.

use std::borrow::Cow;

use super::fault::Broken;
use super::key::Key;
use super::metadata::Metadata;
use super::record::Record;
use super::validate::{check_optional_text, integer, integer_of, optional_integer, text_of};
use super::value::{Value, is_blank, stripped};
use super::{Distributed, Options, TelemetryEvent, digits};

type Result<T> = std::result::Result<T, Broken>;

/// The device's number where there is no device, as for a tracker of the host's memory.
const NO_DEVICE: i128 = -1;
const UNKNOWN_PID: i128 = -1;
const UNKNOWN_HOST: &str = "unknown";
const BYTES_PER_MEBIBYTE: f64 = 1_048_576.0;
const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// Converts a record; the result still has to be validated.
pub(super) fn convert<'a>(mut record: Record<'a>, options: &Options) -> Result<TelemetryEvent<'a>> {
    check_metadata(&record)?;
    let mut metadata = record.take_folded_metadata();
    let timestamp_ns = timestamp_ns(&record)?;
    let device_id = device_id(&record)?;
    let allocated = allocated(&record)?;
    let reserved = first_of(&record, &[Key::AllocatorReservedBytes, Key::MemoryReserved])?;
    let change = first_of(&record, &[Key::AllocatorChangeBytes, Key::MemoryChange])?;
    let allocator_active_bytes = optional_integer(&record, Key::AllocatorActiveBytes)?;
    let allocator_inactive_bytes = optional_integer(&record, Key::AllocatorInactiveBytes)?;
    let device_used_bytes = first_of(&record, &[Key::DeviceUsedBytes])?.unwrap_or(allocated);
    let device_total_bytes = total(&record, &metadata)?;
    let device_free_bytes = free(&record, device_used_bytes, device_total_bytes)?;
    let event_type = event_type(&mut record)?;
    let default_interval = i128::from(options.default_sampling_interval_ms);
    let sampling_interval_ms =
        first_of(&record, &[Key::SamplingIntervalMs])?.unwrap_or(default_interval);
    let pid = pid(&record, &metadata)?;
    let host = host(&mut record, &metadata)?;
    let collector = collector(&mut record, &metadata, device_id, options);
    let distributed = if options.accept_distributed {
        let distributed = distributed(&record, &metadata)?;
        metadata.retain(|key| !Key::named(key).is_some_and(Key::is_distributed));
        distributed
    } else {
        None
    };
    let context = context(&mut record)?;
    Ok(TelemetryEvent {
        timestamp_ns,
        event_type,
        collector,
        sampling_interval_ms,
        pid,
        host,
        distributed,
        device_id,
        allocator_allocated_bytes: allocated,
        allocator_reserved_bytes: reserved.unwrap_or(allocated),
        allocator_active_bytes,
        allocator_inactive_bytes,
        allocator_change_bytes: change.unwrap_or(0),
        device_used_bytes,
        device_free_bytes,
        device_total_bytes,
        context,
        metadata,
    })
}

fn check_metadata(record: &Record<'_>) -> Result<()> {
    match record.get(Key::Metadata) {
        None | Some(Value::Null | Value::Object) => Ok(()),
        Some(_) => Err(Broken::LegacyMetadataNotAnObject),
    }
}

/// The integer under the first of the keys that is there.
fn first_of(record: &Record<'_>, keys: &[Key]) -> Result<Option<i128>> {
    let key = keys.iter().find(|key| record.has(**key));
    key.map(|key| integer(record, *key)).transpose()
}

/// A number of any kind times `factor`, as a double, cut off toward zero.
fn scaled(value: Option<&Value<'_>>, factor: f64, key: Key) -> Option<Result<i128>> {
    // 2^127: the least double beyond the integers that are held.
    const LIMIT: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    let product = value?.as_f64()? * factor;
    // Within the limit the conversion only cuts off the fraction.
    let whole = || product as i128;
    Some(if product.abs() < LIMIT { Ok(whole()) } else { Err(Broken::BeyondRange(key.name())) })
}

/// Nanoseconds, or seconds with a fraction; a double at that, as these producers computed it.
fn timestamp_ns(record: &Record<'_>) -> Result<i128> {
    if let Some(nanoseconds) = first_of(record, &[Key::TimestampNs])? {
        return Ok(nanoseconds);
    }
    let seconds = record.get(Key::Timestamp);
    scaled(seconds, NANOSECONDS_PER_SECOND, Key::Timestamp).unwrap_or(Err(Broken::NoTimestamp))
}

/// The device's number, or what its name says: `cuda:1`, `/GPU:0`, `cpu`.
fn device_id(record: &Record<'_>) -> Result<i128> {
    if let Some(id) = first_of(record, &[Key::DeviceId])? {
        return Ok(id);
    }
    if let Some(name) = record.get(Key::Device).and_then(Value::as_text) {
        if contains_ignoring_case(name, "cpu") {
            return Ok(NO_DEVICE);
        }
        let number = name.rsplit_once(':').map(|(_, number)| number).unwrap_or_default();
        match digits::read(number) {
            digits::Digits::Is(number) => return Ok(number),
            digits::Digits::Huge => return Err(Broken::BeyondRange(Key::Device.name())),
            digits::Digits::NotDecimal => return Err(Broken::DeviceNumber(number.to_owned())),
            digits::Digits::No => {}
        }
        if name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("/gpu")) {
            return Ok(0);
        }
    }
    // Producers that count in mebibytes know one device only.
    Ok(if record.has(Key::MemoryMb) { 0 } else { NO_DEVICE })
}

fn contains_ignoring_case(text: &str, word: &str) -> bool {
    let (text, word) = (text.as_bytes(), word.as_bytes());
    text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

/// Bytes; a `memory_mb` that is no number lets the next key have its turn.
fn allocated(record: &Record<'_>) -> Result<i128> {
    if let Some(bytes) = first_of(record, &[Key::AllocatorAllocatedBytes, Key::MemoryAllocated])? {
        return Ok(bytes);
    }
    if let Some(bytes) = scaled(record.get(Key::MemoryMb), BYTES_PER_MEBIBYTE, Key::MemoryMb) {
        return bytes;
    }
    Ok(first_of(record, &[Key::DeviceUsedBytes])?.unwrap_or(0))
}

/// Bytes; null where it is not known, which also an alias may say.
fn total(record: &Record<'_>, metadata: &Metadata<'_>) -> Result<Option<i128>> {
    const ALIASES: [Key; 3] = [Key::TotalMemory, Key::DeviceTotal, Key::TotalBytes];
    for key in [Key::DeviceTotalBytes].into_iter().chain(ALIASES) {
        if record.has(key) {
            return optional_integer(record, key);
        }
    }
    for key in ALIASES {
        match metadata.value(key.name()) {
            None => {}
            Some(Value::Null) => return Ok(None),
            value => return integer_of(value.as_ref(), key).map(Some),
        }
    }
    Ok(None)
}

fn free(record: &Record<'_>, used: i128, total: Option<i128>) -> Result<Option<i128>> {
    if record.has(Key::DeviceFreeBytes) {
        return optional_integer(record, Key::DeviceFreeBytes);
    }
    Ok(total.map(|total| total.saturating_sub(used).max(0)))
}

fn event_type<'a>(record: &mut Record<'a>) -> Result<Cow<'a, str>> {
    let Some(key) = [Key::EventType, Key::Type].into_iter().find(|key| record.has(*key)) else {
        return Ok("sample".into());
    };
    text_of(record.get(key), Key::EventType)?;
    Ok(record.take_text(key).unwrap_or_default())
}

fn pid(record: &Record<'_>, metadata: &Metadata<'_>) -> Result<i128> {
    if let Some(pid) = first_of(record, &[Key::Pid])? {
        return Ok(pid);
    }
    let pid = metadata.value(Key::Pid.name());
    pid.map_or(Ok(UNKNOWN_PID), |pid| integer_of(Some(&pid), Key::Pid))
}

fn host<'a>(record: &mut Record<'a>, metadata: &Metadata<'a>) -> Result<Cow<'a, str>> {
    if record.has(Key::Host) {
        text_of(record.get(Key::Host), Key::Host)?;
        return Ok(record.take_text(Key::Host).unwrap_or_default());
    }
    match metadata.value(Key::Host.name()) {
        Some(host) => text_of(Some(&host), Key::Host).map(|host| host.to_owned().into()),
        None => Ok(UNKNOWN_HOST.into()),
    }
}

/// The collector, or which of the known ones writes such records. Never a fault: what cannot be
/// one is passed over.
fn collector<'a>(
    record: &mut Record<'a>,
    metadata: &Metadata<'_>,
    device_id: i128,
    options: &Options,
) -> Cow<'a, str> {
    if let Some(collector) = record.take_text(Key::Collector).filter(|text| !is_blank(text)) {
        return collector;
    }
    let known = |backend: &Value<'_>| collector_of(backend.as_text()?);
    let from_backend = match record.get(Key::Backend) {
        Some(backend) => known(backend),
        None => metadata.value(Key::Backend.name()).as_ref().and_then(known),
    };
    if let Some(collector) = from_backend {
        return collector.into();
    }
    if record.has(Key::MemoryMb) {
        return "tfmemprof.memory_tracker".into();
    }
    match (record.has(Key::MemoryAllocated), device_id) {
        (true, NO_DEVICE) => "gpumemprof.cpu_tracker".into(),
        (true, _) => "gpumemprof.cuda_tracker".into(),
        (false, _) => options.default_collector.clone().into(),
    }
}

fn collector_of(backend: &str) -> Option<&'static str> {
    const BACKENDS: [(&str, &str); 4] = [
        ("mps", "gpumemprof.mps_tracker"),
        ("rocm", "gpumemprof.rocm_tracker"),
        ("cuda", "gpumemprof.cuda_tracker"),
        ("cpu", "gpumemprof.cpu_tracker"),
    ];
    let backend = stripped(backend);
    let known = BACKENDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(backend));
    known.map(|(_, collector)| *collector)
}

/// The process within its run: from the record or else, where that has nothing or null, from the
/// metadata.
fn distributed<'a>(
    record: &Record<'_>,
    metadata: &Metadata<'_>,
) -> Result<Option<Distributed<'a>>> {
    let value = |key: Key| {
        let value = record.get(key).filter(|value| **value != Value::Null).cloned();
        let value = value.map(Value::into_owned);
        let value = value.or_else(|| metadata.value(key.name()).map(Value::into_owned));
        value.filter(|value| *value != Value::Null)
    };
    let keys = [Key::JobId, Key::Rank, Key::LocalRank, Key::WorldSize];
    if !keys.iter().any(|key| record.has(*key) || metadata.get(key.name()).is_some()) {
        return Ok(None);
    }
    let number = |key: Key, minimum: i128| {
        let number = value(key).map(|value| integer_of(Some(&value), key)).transpose()?;
        match number {
            Some(number) if number < minimum => {
                Err(Broken::TooSmall { field: key.name(), minimum, nullable: false })
            }
            number => Ok(number),
        }
    };
    let job_id = value(Key::JobId);
    let job_id = job_id.as_ref().map(|job_id| text_of(Some(job_id), Key::JobId)).transpose()?;
    let job_id = job_id.map(|job_id| job_id.to_owned().into());
    Distributed::resolved(
        job_id,
        number(Key::Rank, 0)?,
        number(Key::LocalRank, 0)?,
        number(Key::WorldSize, 1)?,
    )
    .map(Some)
}

fn context<'a>(record: &mut Record<'a>) -> Result<Option<Cow<'a, str>>> {
    if record.has(Key::Context) {
        check_optional_text(record, Key::Context)?;
        return Ok(record.take_text(Key::Context));
    }
    // Where the fallback is wrong, the reference names the field that it stands for.
    match record.get(Key::Message) {
        None | Some(Value::Null | Value::Text(_)) => Ok(record.take_text(Key::Message)),
        Some(_) => Err(Broken::NotAString(Key::Context.name())),
    }
}
