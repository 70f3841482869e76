//! The numbers of an event as tables, traces and other logs hold them.

use super::TelemetryEvent;
use crate::loss::Losses;
use crate::time::Timestamp;

/// All numbers of an event, of 64 bits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) time: Timestamp,
    pub(crate) interval_ms: i64,
    pub(crate) pid: i64,
    pub(crate) device: i64,
    pub(crate) allocated: i64,
    pub(crate) reserved: i64,
    pub(crate) active: Option<i64>,
    pub(crate) inactive: Option<i64>,
    pub(crate) change: i64,
    pub(crate) used: i64,
    pub(crate) free: Option<i64>,
    pub(crate) total: Option<i64>,
    /// Rank, local rank and world size.
    pub(crate) process: Option<[i64; 3]>,
}

impl Numbers {
    /// The numbers of `event`; counted as lost where one has more than 64 bits.
    pub(crate) fn of(event: &TelemetryEvent<'_>, losses: &mut Losses) -> Option<Self> {
        let numbers = Self::within_64_bits(event);
        if numbers.is_none() {
            losses.count("event with a number beyond 64 bits");
        }
        numbers
    }

    fn within_64_bits(event: &TelemetryEvent<'_>) -> Option<Self> {
        let whole = |value: i128| i64::try_from(value).ok();
        // Outer `None`: there is one that does not fit.
        let optional = |value: Option<i128>| match value {
            None => Some(None),
            Some(value) => whole(value).map(Some),
        };
        let process = match &event.distributed {
            None => None,
            Some(process) => {
                Some([whole(process.rank)?, whole(process.local_rank)?, whole(process.world_size)?])
            }
        };
        Some(Self {
            time: Timestamp(whole(event.timestamp_ns)?),
            interval_ms: whole(event.sampling_interval_ms)?,
            pid: whole(event.pid)?,
            device: whole(event.device_id)?,
            allocated: whole(event.allocator_allocated_bytes)?,
            reserved: whole(event.allocator_reserved_bytes)?,
            active: optional(event.allocator_active_bytes)?,
            inactive: optional(event.allocator_inactive_bytes)?,
            change: whole(event.allocator_change_bytes)?,
            used: whole(event.device_used_bytes)?,
            free: optional(event.device_free_bytes)?,
            total: optional(event.device_total_bytes)?,
            process,
        })
    }
}
