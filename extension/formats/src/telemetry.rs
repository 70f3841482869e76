//! TelemetryEvent v2: samples of a device's memory, as the memory trackers of PyTorch and TensorFlow
//! programs export them.
//!
//! ```text
//! {"schema_version":2,"timestamp_ns":1700000000000000000,"event_type":"sample",
//!  "collector":"gpumemprof.cuda_tracker","sampling_interval_ms":100,"pid":1234,"host":"a",
//!  "device_id":0,"allocator_allocated_bytes":1024,"allocator_reserved_bytes":2048,
//!  "allocator_active_bytes":null,"allocator_inactive_bytes":null,"allocator_change_bytes":256,
//!  "device_used_bytes":2048,"device_free_bytes":4096,"device_total_bytes":6144,
//!  "context":null,"metadata":{"backend":"cuda"}}
//! ```
//!
//! Version 2 is strict: every key must be there, and no other. Records without `schema_version` are
//! legacy ones, which have other names and fewer fields; they are converted unless [`Options`]
//! forbid it. The rules, their order and their texts are those of the format's reference,
//! `gpumemprof.telemetry` of the releases 0.2.0 to 0.2.2; `docs/formats/telemetry-event-v2.md` has
//! them all and the limits that are set here.

mod digits;
mod fault;
mod key;
mod legacy;
mod load;
mod meaning;
mod metadata;
mod numbers;
mod record;
mod sample;
mod timeline;
mod validate;
mod value;
mod write;

use std::borrow::Cow;

pub use fault::{Broken, Fault, Place};
pub use load::{Form, LoadError, Loaded, Sink, load, load_all, load_records};
pub use metadata::Metadata;
pub use sample::scope_sample;
pub use timeline::{Timeline, Units};

pub(crate) use numbers::Numbers;

use crate::json::{Kind, Reader};
use key::Key;
use record::Record;
use value::Value;

/// One sample of a device's memory, or something that happened to it.
///
/// Integers are of 128 bits, because the format sets them no limit.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryEvent<'a> {
    /// Nanoseconds since the Unix epoch, at least 0.
    pub timestamp_ns: i128,
    /// What happened, such as `sample`, `allocation` or `error`; not blank.
    pub event_type: Cow<'a, str>,
    /// Who measured it, such as `gpumemprof.cuda_tracker`; not blank.
    pub collector: Cow<'a, str>,
    /// Milliseconds between two samples, at least 0.
    pub sampling_interval_ms: i128,
    /// The process, or -1 where it is not known.
    pub pid: i128,
    /// The host's name, or `unknown`; not blank.
    pub host: Cow<'a, str>,
    /// The process within a distributed run. Only later producers say it, and only with
    /// [`Options::accept_distributed`] is it read.
    pub distributed: Option<Distributed<'a>>,
    /// The device's number, or -1 for the host and for a device that is not known.
    pub device_id: i128,
    /// Bytes that tensors occupy, at least 0.
    pub allocator_allocated_bytes: i128,
    /// Bytes that the allocator holds of the device, at least 0.
    pub allocator_reserved_bytes: i128,
    /// Bytes in blocks that are in use, at least 0.
    pub allocator_active_bytes: Option<i128>,
    /// Bytes in blocks that are not, at least 0.
    pub allocator_inactive_bytes: Option<i128>,
    /// Bytes by which the allocated ones changed since the event before.
    pub allocator_change_bytes: i128,
    /// Bytes of the device that anybody uses, at least 0 and at most the total.
    pub device_used_bytes: i128,
    /// Bytes of the device that nobody uses, at least 0 and at most the total.
    pub device_free_bytes: Option<i128>,
    /// Bytes that the device has, at least 0.
    pub device_total_bytes: Option<i128>,
    /// What the program said about it.
    pub context: Option<Cow<'a, str>>,
    /// Whatever else the producer knows.
    pub metadata: Metadata<'a>,
}

/// Which process of a distributed run an event is from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Distributed<'a> {
    /// The run; not blank.
    pub job_id: Option<Cow<'a, str>>,
    /// The process' number within the run, at least 0 and below `world_size`.
    pub rank: i128,
    /// The process' number on its host, at least 0 and below `world_size`.
    pub local_rank: i128,
    /// Processes of the run, at least 1.
    pub world_size: i128,
}

/// What is read, and what stands in for what legacy records do not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether records without `schema_version` are converted. Default: true.
    pub permissive_legacy: bool,
    /// The collector of legacy records that give no hint at theirs. Default: `legacy.unknown`.
    pub default_collector: String,
    /// The sampling interval of legacy records without one, in milliseconds. Default: 0.
    pub default_sampling_interval_ms: i64,
    /// Whether `job_id`, `rank`, `local_rank` and `world_size` are known keys, as later producers
    /// write them. Default: false.
    pub accept_distributed: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            permissive_legacy: true,
            default_collector: "legacy.unknown".to_owned(),
            default_sampling_interval_ms: 0,
            accept_distributed: false,
        }
    }
}

impl<'a> TelemetryEvent<'a> {
    /// The version of the schema that events are written in.
    pub const SCHEMA_VERSION: i128 = 2;

    /// Reads the record that `text` is: version 2, or a legacy one that is converted.
    ///
    /// # Errors
    /// Where the text is no JSON, or the first rule that the record breaks.
    pub fn from_json(text: &'a str, options: &Options) -> Result<Self, Fault> {
        Ok(Self::from_record(read(text)?, options)?)
    }

    /// Reads the record that `text` is, which must be of version 2: what lacks a `schema_version`
    /// lacks a field.
    ///
    /// # Errors
    /// Where the text is no JSON, or the first rule that the record breaks.
    pub fn from_v2_json(text: &'a str, options: &Options) -> Result<Self, Fault> {
        Ok(validate::validate(read(text)?, options.accept_distributed)?)
    }

    /// Judges a record: as version 2 where it has a `schema_version`, else as a legacy one.
    fn from_record(record: Record<'a>, options: &Options) -> Result<Self, Broken> {
        match record.get(Key::SchemaVersion) {
            Some(Value::Integer(Self::SCHEMA_VERSION)) => {
                validate::validate(record, options.accept_distributed)
            }
            Some(Value::Integer(version)) => Err(Broken::UnsupportedVersion(version.to_string())),
            Some(Value::Huge(digits)) => Err(Broken::UnsupportedVersion(digits.to_string())),
            Some(_) => Err(Broken::NotAnInteger(Key::SchemaVersion.name())),
            None if !options.permissive_legacy => Err(Broken::LegacyDisabled),
            None => {
                let event = legacy::convert(record, options)?;
                event.check()?;
                Ok(event)
            }
        }
    }

    /// Checks an event that was put together by hand. Events that were read are right.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self) -> Result<(), Broken> {
        validate::validate(Record::of(self), self.distributed.is_some()).map(drop)
    }

    /// The same, borrowing from nothing.
    #[must_use]
    pub fn into_owned(self) -> TelemetryEvent<'static> {
        TelemetryEvent {
            event_type: owned(self.event_type),
            collector: owned(self.collector),
            host: owned(self.host),
            distributed: self.distributed.map(Distributed::into_owned),
            context: self.context.map(owned),
            metadata: self.metadata.into_owned(),
            ..self
        }
    }
}

impl Distributed<'_> {
    /// The same, borrowing from nothing.
    #[must_use]
    pub fn into_owned(self) -> Distributed<'static> {
        Distributed { job_id: self.job_id.map(owned), ..self }
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    text.into_owned().into()
}

fn read(text: &str) -> Result<Record<'_>, Fault> {
    let mut reader = Reader::new(text);
    if reader.peek()? != Kind::Object {
        reader.skip()?;
        reader.end()?;
        return Err(Broken::NotAnObject.into());
    }
    let record = Record::read(&mut reader)?;
    reader.end()?;
    Ok(record)
}
