//! Events as entries of event logs, which tell the devices' memory beside scopes.

use super::{Numbers, TelemetryEvent};
use crate::event::{Device, Event, Phase, Scope, Source, What};
use crate::loss::Losses;

const MIB: i64 = 1 << 20;

/// The event as a sample of a scope that is named by the event's type, with the device's memory in
/// whole MiB; its program is the collector, its tag the context. What such an entry has no place for
/// is counted in `losses`; nothing where it has no place for the event.
pub fn scope_sample<'e>(event: &'e TelemetryEvent<'_>, losses: &mut Losses) -> Option<Event<'e>> {
    let numbers = Numbers::of(event, losses)?;
    losses.count("host");
    losses.count("allocator_allocated_bytes, allocator_reserved_bytes, allocator_change_bytes");
    losses.count_some("allocator_active_bytes", numbers.active.as_ref());
    losses.count_some("allocator_inactive_bytes", numbers.inactive.as_ref());
    losses.count_some("sampling_interval_ms", Some(&()).filter(|()| numbers.interval_ms != 0));
    losses.count_some("metadata", Some(&()).filter(|()| !event.metadata.is_empty()));
    losses.count_some("job_id, rank, local_rank, world_size", event.distributed.as_ref());
    let devices = match (numbers.free, numbers.total) {
        (Some(free), Some(total)) if numbers.device >= 0 => {
            if [numbers.used, free, total].iter().any(|bytes| bytes % MIB != 0) {
                losses.count("bytes below a MiB");
            }
            vec![Device {
                index: numbers.device,
                used_mib: Some(numbers.used / MIB),
                free_mib: Some(free / MIB),
                total_mib: Some(total / MIB),
                ..Device::default()
            }]
        }
        _ => {
            losses.count("device_used_bytes without device, free and total");
            vec![]
        }
    };
    Some(Event {
        source: Source {
            pid: Some(numbers.pid).filter(|pid| *pid >= 0),
            app: Some((&*event.collector).into()),
            ..Source::default()
        },
        what: What::Scope(Scope {
            phase: Phase::Sample,
            time: numbers.time,
            name: (&*event.event_type).into(),
            tag: event.context.as_deref().map(Into::into),
            devices,
            ..Scope::default()
        }),
    })
}
