//! What telemetry says of the memory of one device: the last sample of what is a level, the highest
//! of what can run out, and how often what happened.

use std::collections::BTreeMap;

use warpgauge_formats::telemetry::TelemetryEvent;

use super::Refusal;
use super::named::cut;

/// Most types of events that are counted apart; further ones are counted together.
pub const MOST_TYPES: usize = 64;

/// The memory of a device between two passes, as one collector sees it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryTally {
    /// The last sample, and when it was taken.
    last: Option<(i64, MemorySample)>,
    /// The most that was allocated, bytes.
    pub most_allocated: i64,
    /// The most that was reserved, bytes.
    pub most_reserved: i64,
    /// Events by type; `None` are the types beyond [`MOST_TYPES`].
    pub events: BTreeMap<Option<String>, u64>,
    /// Events that tell that memory ran out.
    pub out_of_memory: u64,
}

/// One sample; bytes but for the fragmentation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemorySample {
    /// Bytes that tensors occupy.
    pub allocated: i64,
    /// Bytes that the allocator holds.
    pub reserved: i64,
    /// Bytes in blocks that are in use.
    pub active: Option<i64>,
    /// Bytes in blocks that are not.
    pub inactive: Option<i64>,
    /// Bytes of the device that anybody uses, as the collector tells.
    pub used: i64,
    /// Bytes of the device that nobody uses.
    pub free: Option<i64>,
    /// Bytes that the device has.
    pub total: Option<i64>,
    /// `TelemetryEvent::gap_bytes`.
    pub gap: i64,
    /// `TelemetryEvent::fragmentation`.
    pub fragmentation: Option<f64>,
}

impl MemoryTally {
    /// Takes in one event.
    ///
    /// # Errors
    /// [`Refusal::NumberTooLarge`]; nothing has then changed.
    pub fn add(&mut self, event: &TelemetryEvent<'_>) -> Result<(), Refusal> {
        let sample = MemorySample::of(event)?;
        let time = whole(event.timestamp_ns)?;
        if self.last.is_none_or(|(last, _)| last <= time) {
            self.last = Some((time, sample));
        }
        self.most_allocated = self.most_allocated.max(sample.allocated);
        self.most_reserved = self.most_reserved.max(sample.reserved);
        let name = Some(cut(&event.event_type).to_owned());
        let is_apart = self.events.len() < MOST_TYPES || self.events.contains_key(&name);
        *self.events.entry(name.filter(|_| is_apart)).or_default() += 1;
        self.out_of_memory += u64::from(event.is_out_of_memory());
        Ok(())
    }

    /// The sample that was taken last, wherever it stood.
    #[must_use]
    pub fn last(&self) -> Option<MemorySample> {
        self.last.map(|(_, sample)| sample)
    }
}

impl MemorySample {
    fn of(event: &TelemetryEvent<'_>) -> Result<Self, Refusal> {
        let optional = |value: Option<i128>| value.map(whole).transpose();
        Ok(Self {
            allocated: whole(event.allocator_allocated_bytes)?,
            reserved: whole(event.allocator_reserved_bytes)?,
            active: optional(event.allocator_active_bytes)?,
            inactive: optional(event.allocator_inactive_bytes)?,
            used: whole(event.device_used_bytes)?,
            free: optional(event.device_free_bytes)?,
            total: optional(event.device_total_bytes)?,
            gap: whole(event.gap_bytes())?,
            fragmentation: event.fragmentation(),
        })
    }
}

/// A number as OTLP holds it.
pub(super) fn whole(value: i128) -> Result<i64, Refusal> {
    i64::try_from(value).map_err(|_| Refusal::NumberTooLarge)
}

#[cfg(test)]
mod tests {
    use warpgauge_formats::telemetry::Options;

    use super::*;

    fn event(members: &str) -> TelemetryEvent<'static> {
        let text = format!(r#"{{"device_id":0,{members}}}"#);
        TelemetryEvent::from_json(&text, &Options::default()).unwrap().into_owned()
    }

    #[test]
    fn levels_are_those_of_the_latest_and_peaks_of_all() {
        let mut tally = MemoryTally::default();
        for members in [
            r#""timestamp_ns":2,"memory_allocated":6,"memory_reserved":8,"device_used_bytes":11"#,
            r#""timestamp_ns":1,"memory_allocated":9,"memory_reserved":9"#,
            r#""timestamp_ns":2,"memory_allocated":2,"memory_reserved":8,"device_used_bytes":7,"type":"error","metadata_oom_reason":"full""#,
        ] {
            tally.add(&event(members)).unwrap();
        }
        let last = tally.last().unwrap();
        assert_eq!((last.allocated, last.used, last.total), (2, 7, None));
        assert_eq!((last.gap, last.fragmentation), (-1, Some(0.75)));
        assert_eq!((tally.most_allocated, tally.most_reserved, tally.out_of_memory), (9, 9, 1));
        let types: Vec<_> = tally.events.into_iter().collect();
        assert_eq!(types, [(Some("error".to_owned()), 1), (Some("sample".to_owned()), 2)]);
    }

    #[test]
    fn what_no_number_of_the_protocol_holds_is_not_taken() {
        let mut tally = MemoryTally::default();
        let large = event(r#""timestamp_ns":1,"memory_allocated":9223372036854775808"#);
        assert_eq!(tally.add(&large), Err(Refusal::NumberTooLarge));
        assert_eq!(tally, MemoryTally::default());
    }

    #[test]
    fn types_are_bounded_and_none_is_left_out() {
        let mut tally = MemoryTally::default();
        for number in 0..100 {
            tally.add(&event(&format!(r#""timestamp_ns":1,"type":"t{number}""#))).unwrap();
        }
        assert_eq!((tally.events.len(), tally.events[&None]), (65, 36));
    }
}
