//! Events are written and read back: they are the same, or the writer has counted what it lost.

use proptest::prelude::*;
use warpgauge_formats::event::{Event, Scope, Source, System, What};
use warpgauge_formats::gpu_flight::{Columnar, Details, Fat};
use warpgauge_formats::gpumon::{self, Mode};
use warpgauge_formats::join::KernelDetailsJoin;
use warpgauge_formats::loss::Losses;

use crate::collect::{Collected, Logs, gpumon as read_gpumon, read_gpu_flight};
use crate::model::{essence, events};

/// Compares without regard to order, which a log of several channels does not keep.
fn same_or_counted(
    before: Vec<Event<'static>>,
    after: Vec<Event<'static>>,
    losses: &Losses,
) -> Result<(), TestCaseError> {
    let text = |events: Vec<Event<'static>>| {
        let mut texts: Vec<_> =
            events.into_iter().map(|event| format!("{:?}", essence(event))).collect();
        texts.sort();
        texts
    };
    let (before, after) = (text(before), text(after));
    let lost: Vec<_> = before.iter().filter(|event| !after.contains(event)).collect();
    let gained: Vec<_> = after.iter().filter(|event| !before.contains(event)).collect();
    if before != after && losses.is_empty() {
        prop_assert!(
            false,
            "nothing is counted, but of {} events\n{:#?}\nbecame {}\n{:#?}",
            before.len(),
            lost,
            after.len(),
            gained
        );
    }
    Ok(())
}

/// GPU Flight has no line without a session: one is named after the process.
fn with_session(mut event: Event<'static>) -> Event<'static> {
    let Source { session, pid, .. } = &mut event.source;
    session.get_or_insert_with(|| match pid {
        Some(pid) => format!("pid-{pid}").into(),
        None => "no-session".into(),
    });
    event
}

fn fat(events: &[Event<'static>]) -> (Collected, Losses) {
    let (mut writer, mut logs, mut collected) = (Fat::new(), Logs::default(), Collected::default());
    events.iter().for_each(|event| writer.write(event, &mut logs));
    read_gpu_flight(logs.channels(), &mut collected);
    (collected, writer.losses().clone())
}

fn columnar(events: &[Event<'static>], details: Details) -> (Collected, Losses) {
    let (mut writer, mut logs, mut collected) =
        (Columnar::new(details), Logs::default(), Collected::default());
    events.iter().for_each(|event| writer.write(event, &mut logs));
    writer.flush(&mut logs);
    let mut join = KernelDetailsJoin::new(&mut collected);
    read_gpu_flight(logs.channels(), &mut join);
    join.end();
    (collected, writer.losses().clone())
}

/// A batch gives each scope a number and a depth, where the source has none.
fn with_place(mut event: Event<'static>) -> Event<'static> {
    if let What::Scope(scope) = &mut event.what {
        (scope.instance, scope.depth) = (scope.instance.or(Some(1)), scope.depth.or(Some(0)));
    }
    event
}

/// A batch has host and devices in rows of their own.
fn in_rows(event: Event<'static>) -> Vec<Event<'static>> {
    let What::System(system) = event.what else { return vec![event] };
    let System { time, host, devices, .. } = system;
    let of = |host, devices| Event {
        source: event.source.clone(),
        what: What::System(System { time, name: None, host, devices }),
    };
    let host = host.map(|host| of(Some(host), vec![]));
    let devices = devices.into_iter().map(|mut device| {
        // The total and what is used tell what is free.
        if device.used_mib.zip(device.total_mib).is_some() {
            device.free_mib = None;
        }
        of(None, vec![device])
    });
    host.into_iter().chain(devices).collect()
}

/// One log of all events, and a log of each alone behind its session's start, so that a loss of one
/// does not hide that of another.
fn logs_of(events: &[Event<'static>]) -> Vec<Vec<Event<'static>>> {
    let is_start = |event: &&Event<'static>| matches!(event.what, What::Start(_));
    let start_of = |source: &Source<'static>| {
        events.iter().filter(is_start).find(|start| start.source == *source).cloned()
    };
    let alone = events.iter().map(|event| {
        let start = start_of(&event.source).filter(|start| start != event);
        start.into_iter().chain([event.clone()]).collect()
    });
    alone.chain([events.to_vec()]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_wide_form_gives_back_what_it_was_given_or_counts_what_it_lost(events in events()) {
        for events in logs_of(&events) {
            let (read, losses) = fat(&events);
            prop_assert_eq!(read.said(), [""; 0], "what is written is right");
            prop_assert_eq!(read.unknown_names(), [""; 0], "and known");
            same_or_counted(events.into_iter().map(with_session).collect(), read.into_events(), &losses)?;
        }
    }

    #[test]
    fn batches_give_back_what_they_were_given_or_count_what_they_lost(events in events()) {
        let events: Vec<_> = events.into_iter().map(with_place).collect();
        for events in logs_of(&events) {
            let (read, losses) = columnar(&events, Details::All);
            prop_assert_eq!(read.said(), [""; 0], "what is written is right");
            prop_assert_eq!(read.unknown_names(), [""; 0], "and known");
            let before = events.into_iter().map(with_session).flat_map(in_rows).collect();
            same_or_counted(before, read.into_events(), &losses)?;
        }
    }

    #[test]
    fn what_gpumon_is_given_comes_back_valid_and_whole_or_counted(events in events()) {
        for events in logs_of(&events) {
            let (mut writer, mut log) = (gpumon::Writer::new(), vec![]);
            events.iter().for_each(|event| writer.write(event, &mut log));
            let strict = read_gpumon(Mode::Strict, &log);
            prop_assert_eq!(strict.refused(), [], "{}", String::from_utf8_lossy(&log));
            prop_assert_eq!(strict.unknown_names(), [""; 0]);
            same_or_counted(events, strict.into_events(), writer.losses())?;
        }
    }
}

/// Events of one kind at a time, of which a format says that it holds all: no loss may be counted.
mod whole {
    use super::*;

    fn of(events: Vec<Event<'static>>, is_held: impl Fn(&What<'_>) -> bool) -> Vec<Event<'static>> {
        let named = |mut event: Event<'static>| {
            event.source =
                Source { session: Some("s".into()), pid: Some(7), app: Some("a".into()) };
            event
        };
        let start = Event { source: Source::default(), what: What::Start(Default::default()) };
        let events = events
            .into_iter()
            .filter(|event| is_held(&event.what) && !matches!(event.what, What::Start(_)));
        std::iter::once(start).chain(events).map(named).collect()
    }

    fn is_bare(scope: &Scope<'_>) -> bool {
        scope.devices.is_empty()
            && scope.host.is_none()
            && scope.tag.as_deref().is_none_or(str::is_empty)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn the_wide_form_holds_samples_of_the_system_and_of_programs(events in events()) {
            let events = of(events, |what| match what {
                What::Profile(sample) => matches!(sample.kind, None | Some(0 | 1)),
                What::System(_) | What::Sampling(_) => true,
                _ => false,
            });
            let (read, losses) = fat(&events);
            prop_assert_eq!(losses, Losses::default());
            same_or_counted(events, read.into_events(), &Losses::default())?;
        }

        #[test]
        fn batches_hold_kernels_with_their_details_and_scopes_and_samples(events in events()) {
            let strip = |mut event: Event<'static>| {
                match &mut event.what {
                    What::Kernel(kernel) => {
                        (kernel.device, kernel.call_start, kernel.call_end) = (None, None, None);
                        (kernel.platform, kernel.error, kernel.tag) = (None, None, None);
                        kernel.external_kind = kernel.external_kind.filter(|kind| *kind != 0);
                        kernel.external = kernel.external.filter(|_| kernel.external_kind.is_some());
                        if kernel.correlation.is_none() {
                            (kernel.details, kernel.grid, kernel.block) = (None, None, None);
                        }
                        if let Some(details) = &mut kernel.details {
                            let finite = |share: &mut Option<f64>| *share = share.filter(|share| share.is_finite());
                            finite(&mut details.occupancy);
                            finite(&mut details.register_occupancy);
                            finite(&mut details.shared_memory_occupancy);
                            finite(&mut details.warp_occupancy);
                            finite(&mut details.block_occupancy);
                            (details.grid, details.block) = (kernel.grid, kernel.block);
                        }
                    }
                    What::Scope(scope) => {
                        (scope.began, scope.duration, scope.path) = (None, None, None);
                    }
                    What::Profile(sample) => sample.stall_name = None,
                    _ => {}
                }
                with_place(event)
            };
            let events = of(events.into_iter().map(strip).collect(), |what| match what {
                What::Kernel(_) | What::Profile(_) | What::Sampling(_) => true,
                What::Scope(scope) => is_bare(scope) && scope.phase != warpgauge_formats::event::Phase::Sample,
                _ => false,
            });
            let (read, losses) = columnar(&events, Details::All);
            prop_assert_eq!(losses, Losses::default());
            same_or_counted(events, read.into_events(), &Losses::default())?;
        }
    }
}

#[cfg(feature = "parquet")]
mod tables {
    use std::collections::HashMap;
    use std::io;
    use std::sync::{Arc, Mutex};

    use warpgauge_formats::tables::{self, Table};

    use super::*;

    /// Files in memory.
    #[derive(Clone, Default)]
    pub(crate) struct Memory(Arc<Mutex<HashMap<Table, Vec<u8>>>>);

    pub(crate) struct File(Table, Memory);

    impl io::Write for File {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            (self.1).0.lock().unwrap().entry(self.0).or_default().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl tables::Files for Memory {
        type File = File;

        fn create(&mut self, table: Table) -> io::Result<File> {
            Ok(File(table, self.clone()))
        }
    }

    impl tables::Tables for Memory {
        type File = bytes::Bytes;

        fn open(&mut self, table: Table) -> io::Result<Option<bytes::Bytes>> {
            Ok(self.0.lock().unwrap().get(&table).cloned().map(bytes::Bytes::from))
        }
    }

    pub(crate) fn written(events: &[Event<'static>]) -> Memory {
        let memory = Memory::default();
        let mut writer = tables::Writer::new(memory.clone());
        events.iter().for_each(|event| writer.write(event).unwrap());
        writer.finish().unwrap();
        memory
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 100 } else { 1000 }))]

        #[test]
        fn tables_hold_every_event_whole(events in events()) {
            let mut read = Collected::default();
            tables::read(&mut written(&events), &mut read).unwrap();
            same_or_counted(events, read.into_events(), &Losses::default())?;
        }
    }
}
