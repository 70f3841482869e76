//! One pass: a minute of the product's life, top to bottom.
//!
//! ```text
//! lock -> finish what a killed pass left -> ask the devices, and meanwhile
//!      -> resolve groups -> listing, runtime configuration
//!      -> read measurement files, event logs -> aggregate -> commit to the spool
//!      -> remove the files -> send, oldest first -> forget what was acknowledged
//!      -> forward event logs
//! ```

mod container_plan;
mod deliver;
mod devices;
mod events;
pub mod folders;
mod forward_logs;
mod places;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use opentelemetry_proto::tonic::metrics::v1::ResourceMetrics;

pub use self::container_plan::{MAX_LINES_BY_HAND, process_in};
use self::events::EventSeries;
use self::places::{Claimed, Knowledge, Places};
pub use self::plan::{listed_process, place_of};
use crate::aggregate::{Shape, Tally};
use crate::atomic_file::Durability;
use crate::carried::{self, Carried};
use crate::config::export::Temporality;
use crate::config::{Config, Distributions, Paths};
use crate::containers::Containers;
use crate::control::RuntimeConfig;
use crate::devices::sampling;
use crate::health::{self, EventHealth, Health};
use crate::listing::Listing;
use crate::lock::Lock;
use crate::measurements::manifest::{self, ByFolder, Counted, StillThereByFolder};
use crate::measurements::{self, Claim};
use crate::otlp::chunks;
use crate::otlp::mapping::{self, Window};
use crate::otlp::resource::{Host, instance_of};
use crate::report::{Delivery, Measured, Report, Row};
use crate::setup::{Export, Setup};
use crate::spool::rejected::Rejected;
use crate::spool::{After, Commit, Entry, Spool};

/// The most that a pass takes, whatever it is left to do. The next one begins after a minute, and
/// `warpgauge.service` ends this one after 55 seconds.
const LENGTH: Duration = Duration::from_secs(50);

/// A clock that was set back by more than this is not waited for: windows begin anew.
const PATIENCE_WITH_THE_CLOCK: Duration = Duration::from_secs(10 * 60);

/// [`Carried`] within a window's folder.
const AFTER: &str = "after.json";

/// Does one pass.
///
/// # Errors
/// What kept it from working at all. Whatever went wrong with a single process, file or request is
/// in the report.
pub fn run(setup: &Setup, export: &Export) -> anyhow::Result<Report> {
    let started = Instant::now();
    let Paths { state, measurements, containers, .. } = &setup.config.paths;
    folders::make(&setup.config)?;
    let _lock = Lock::take(state)?;
    let (spool, rejected) = (Spool::open(state)?, Rejected::open(state)?);
    let top = measurements::open(measurements)?;
    let mut containers = Containers::look(containers);
    let still_there = finish_earlier(&spool, Places { top: &top, containers: &containers }, state)?;
    let mut carried = Carried::load(state)?;
    deliver::finish_giving_up(&spool, &rejected, &carried)?;
    let waiting = spool.pending()?;
    let sampling = sampling::begin(&setup.config.devices);

    let now_ns = unix_now_ns();
    let resolution = setup.rules.resolve(&setup.proc, setup.own_pid)?;
    let (listing, runtime_config) = plan::list(setup, &mut containers, &resolution, now_ns)?;

    let places = Places { top: &top, containers: &containers };
    let shape = shape_of(&setup.config);
    let knowledge = Knowledge { listing: &listing, still_there: &still_there, shape, now_ns };
    let claimed = places::claim(Some(&top), &containers, &knowledge)?;
    let claim = &claimed.sum;
    claim.refused.log("refused");
    claim.left.log("left for a later pass");
    let health_files_removed = places.remove_health_files(&listing, &setup.proc, now_ns);
    let events = events::read(setup, now_ns);
    let sample = devices::finish(sampling);

    begin_anew_if_the_clock_was_set_back(&mut carried, now_ns);
    let window = window_after(carried.window_end_ns, claim.oldest_ns, now_ns);
    let groups = roll_ups(claim, &listing);
    let mut resources = series(setup, &export.host, claim, &listing, &groups, window);
    let mut events = events.series(setup, &export.host, window)?;
    resources.append(&mut events.resources);
    devices::add_series(&mut resources, &sample, setup, &export.host, &listing, window);
    let health = Health {
        read: claim.read,
        refused: &claim.refused,
        unattributed: claim.unattributed,
        carried: &carried,
        spool_bytes: waiting.iter().map(|request| request.size).sum(),
        spool_age: waiting.first().map_or(Duration::ZERO, |oldest| oldest.age(now_ns)),
        processes: runtime_config.listed,
        health_files_removed,
        events: events.is_read.then_some(EventHealth {
            lines: events.lines,
            suspect: events.suspect,
            skipped: &events.skipped,
        }),
        device_faults: &sample.faults,
    };
    resources.push(health::collect(&health, export.host.extension(), window)?);
    if export.settings.temporality == Temporality::Cumulative {
        carried.totals.apply(&mut resources);
        let mut living = living(&export.host, &listing, setup, &resources);
        living.extend(events.instances());
        carried.totals.retain(&living);
    }
    let what = Sources { claimed: &claimed, still_there: &still_there, events: &events };
    commit(&spool, places, state, &mut carried, what, resources, window)?;
    let devices = devices::write_records(&sample, setup, &export.host, &listing, window);

    let delivery = deliver::deliver(setup, export, &spool, &rejected, &mut carried)?;
    let forwarding = forward_logs::forward_logs(setup, export, &mut carried, started + LENGTH);
    let duration = started.elapsed();
    carried.last_duration_ns = u64::try_from(duration.as_nanos()).ok();
    if delivery.is_complete() {
        carried.last_success_ns = Some(unix_now_ns());
    }
    carried.store(state, carried.durability())?;
    let rows = rows(claim, &listing);
    let report = Report::new(rows, measured(claim), runtime_config, delivery, duration);
    Ok(Report { forwarding, devices, ..report.with_events(events.report()) })
}

/// What a pass would do now; changes nothing and takes no lock.
///
/// # Errors
/// As [`run`].
pub fn preview(setup: &Setup) -> anyhow::Result<Report> {
    let started = Instant::now();
    let sampling = sampling::begin(&setup.config.devices);
    let Paths { state, measurements, runtime_config, containers, .. } = &setup.config.paths;
    let mut containers = Containers::look(containers);
    let now_ns = unix_now_ns();
    let resolution = setup.rules.resolve(&setup.proc, setup.own_pid)?;
    let (existing, old) = RuntimeConfig::load(runtime_config)?;
    let mut listing = Listing::load(state)?;
    let planned = plan::plan(setup, &containers, &resolution, existing, &listing);
    listing.refresh(planned.alive.clone(), now_ns);
    let mut outcome = planned.outcome(old != planned.content);
    let mut refused = std::mem::take(&mut containers.refused);
    planned.apply_to_containers(setup, &containers, &mut outcome, &mut refused, false);
    containers.refused = refused;
    let top = if measurements.exists() { Some(measurements::open(measurements)?) } else { None };
    let knowledge = Knowledge {
        listing: &listing,
        still_there: &counted_already(state)?,
        shape: shape_of(&setup.config),
        now_ns,
    };
    let Claimed { sum: claim, .. } = places::claim(top.as_ref(), &containers, &knowledge)?;
    let (rows, delivery) = (rows(&claim, &listing), Delivery::default());
    let events = events::read(setup, now_ns).report();
    let devices = devices::report(&devices::finish(sampling));
    let report = Report::new(rows, measured(&claim), outcome, delivery, started.elapsed());
    Ok(Report { devices, ..report.with_events(events) })
}

/// Finishes what a killed pass had committed: its state becomes the state, its files are removed.
fn finish_earlier(
    spool: &Spool,
    places: Places<'_>,
    state: &Path,
) -> anyhow::Result<StillThereByFolder> {
    let mut still_there = StillThereByFolder::new();
    for entry in spool.entries()? {
        apply_after(&entry, state)?;
        let counted = manifest::parse(&entry.counted()?);
        let left = places.remove(&counted, true);
        if left.is_empty() {
            entry.forget_counted()?;
        } else {
            places.warn_of(&left);
            remember(&mut still_there, left);
        }
        // What cannot be put away is met, counted and warned of again by this pass.
        let refused = manifest::parse_refused(&entry.refused()?);
        let _ = places.put_away(&refused);
        entry.forget_refused()?;
    }
    Ok(still_there)
}

/// What a pass would find counted already, for one that changes nothing.
fn counted_already(state: &Path) -> anyhow::Result<StillThereByFolder> {
    let mut counted = StillThereByFolder::new();
    if state.join("spool").exists() {
        for entry in Spool::look(state).entries()? {
            remember(&mut counted, manifest::parse(&entry.counted()?));
        }
    }
    Ok(counted)
}

fn remember(still_there: &mut StillThereByFolder, files: ByFolder<Counted>) {
    for (folder, files) in files {
        still_there.entry(folder).or_default().extend(files);
    }
}

fn shape_of(config: &Config) -> Shape {
    match config.metrics.distributions {
        Distributions::Off => Shape::None,
        Distributions::Explicit => Shape::Explicit,
        Distributions::Exponential => Shape::Exponential,
    }
}

/// While the clock is behind the end of the last window, windows are moments at that end, since those
/// of one series must not overlap. That is right for a clock that is corrected by a little; one that
/// was wrong by a day must not pin a whole day to one moment.
fn begin_anew_if_the_clock_was_set_back(carried: &mut Carried, now_ns: u64) {
    let ahead = carried.window_end_ns.map_or(0, |end_ns| end_ns.saturating_sub(now_ns));
    let ahead = Duration::from_nanos(ahead);
    if ahead > PATIENCE_WITH_THE_CLOCK {
        tracing::warn!(
            "the clock was set back: the last window ended {} s from now; windows and cumulative series begin anew",
            ahead.as_secs()
        );
        carried.window_end_ns = None;
        carried.totals = Default::default();
    }
}

/// From the end of the last window to now. The first window of all begins with its first
/// measurement. A clock that was set back never makes one that ends before it begins, nor does a
/// file that claims to be of tomorrow.
fn window_after(last_end_ns: Option<u64>, oldest_ns: Option<u64>, now_ns: u64) -> Window {
    let oldest_ns = oldest_ns.map_or(now_ns, |oldest_ns| oldest_ns.min(now_ns));
    let start_ns = last_end_ns.unwrap_or(oldest_ns).min(u64::MAX - 1);
    Window { start_ns, end_ns: now_ns.max(start_ns + 1) }
}

/// Merges the processes of each group.
fn roll_ups<'l>(claim: &Claim, listing: &'l Listing) -> BTreeMap<&'l str, Tally> {
    let mut groups = BTreeMap::<_, Tally>::new();
    for (index, tally) in &claim.tallies {
        let process = listing.processes().get(*index);
        if let Some(group) = process.and_then(|process| process.group.as_deref()) {
            groups.entry(group).or_default().merge(tally);
        }
    }
    groups
}

fn series(
    setup: &Setup,
    host: &Host,
    claim: &Claim,
    listing: &Listing,
    groups: &BTreeMap<&str, Tally>,
    window: Window,
) -> Vec<ResourceMetrics> {
    let mut resources = Vec::new();
    let mut processes: Vec<_> = claim.tallies.iter().collect();
    processes.sort_by_key(|(index, _)| **index);
    for (index, tally) in processes {
        let Some(process) = listing.processes().get(*index) else { continue };
        // A process that a person listed has no roll-up to be seen in.
        if setup.config.metrics.per_process || process.group.is_none() {
            resources.push(mapping::tally(host.process(process), tally, window));
        }
    }
    for (group, tally) in groups {
        resources.push(mapping::tally(host.roll_up(group), tally, window));
    }
    resources
}

/// The resources whose series go on.
fn living(
    host: &Host,
    listing: &Listing,
    setup: &Setup,
    resources: &[ResourceMetrics],
) -> BTreeSet<String> {
    let processes = listing.processes().iter().map(|process| host.process(process));
    let groups = setup.config.monitored_pg_names.iter().map(|group| host.roll_up(group));
    let known = processes.chain(groups).map(|resource| instance_of(&resource).to_owned());
    let sent = resources.iter().filter_map(|resource| resource.resource.as_ref());
    known.chain(sent.map(|resource| instance_of(resource).to_owned())).collect()
}

/// Where a window's numbers come from.
#[derive(Clone, Copy)]
struct Sources<'s> {
    claimed: &'s Claimed,
    still_there: &'s StillThereByFolder,
    events: &'s EventSeries,
}

/// The point of no return, and what must follow it.
fn commit(
    spool: &Spool,
    places: Places<'_>,
    state: &Path,
    carried: &mut Carried,
    sources: Sources<'_>,
    resources: Vec<ResourceMetrics>,
    window: Window,
) -> anyhow::Result<()> {
    let Sources { claimed, still_there, events } = sources;
    let is_all_removed = still_there.is_empty();
    // Without a measurement and a line there is nothing that a power cut could lose.
    let durability = match claimed.is_empty() && is_all_removed && events.lines == 0 {
        true => carried.durability(),
        false => Durability::PowerCut,
    };
    carried.window_end_ns = Some(window.end_ns);
    carried.owed.clear();
    carried.forwarded = Default::default();
    let older = spool.entries()?;
    let still_standing =
        still_there.iter().map(|(folder, files)| (folder, files.iter().collect::<Vec<_>>()));
    let counted = claimed.counted.iter().map(|(folder, files)| (folder, files.iter().collect()));
    let text = carried.to_json()?;
    let mut after = vec![After { name: AFTER, content: &text }];
    after.extend(events.after());
    let entry = spool.commit(&Commit {
        window,
        chunks: &chunks::pack(resources),
        counted: &manifest::render(counted.chain(still_standing)),
        refused: &manifest::render_refused(&claimed.refused_names),
        after: &after,
        durability,
    })?;
    apply_after(&entry, state)?;
    for entry in older {
        entry.forget_counted()?;
    }
    if places.remove(&claimed.counted, false).is_empty() && is_all_removed {
        entry.forget_counted()?;
    }
    places.put_away(&claimed.refused_names).log("met again by the next pass");
    entry.forget_refused()?;
    Ok(())
}

/// Puts what a window carries on where the next pass reads it.
fn apply_after(entry: &Entry, state: &Path) -> anyhow::Result<()> {
    entry.apply_after(AFTER, &state.join(carried::FILE))?;
    Ok(events::apply(entry, state)?)
}

fn rows(claim: &Claim, listing: &Listing) -> Vec<Row> {
    let mut rows: Vec<_> = claim
        .tallies
        .iter()
        .filter_map(|(index, tally)| Some(Row::new(listing.processes().get(*index)?, tally)))
        .collect();
    rows.sort_by(|a, b| (&a.group, a.pid).cmp(&(&b.group, b.pid)));
    rows
}

fn measured(claim: &Claim) -> Measured<'_> {
    Measured { read: claim.read, unattributed: claim.unattributed, refused: &claim.refused }
}

/// The wall clock, nanoseconds since the epoch.
#[must_use]
pub fn unix_now_ns() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000_000_000;

    fn window(last_end: Option<u64>, oldest: Option<u64>, now: u64) -> (u64, u64) {
        let window = window_after(last_end, oldest, now);
        assert!(window.start_ns < window.end_ns);
        (window.start_ns, window.end_ns)
    }

    #[test]
    fn a_window_begins_where_the_one_before_ended() {
        assert_eq!(window(Some(5 * MINUTE), Some(MINUTE), 6 * MINUTE), (5 * MINUTE, 6 * MINUTE));
    }

    #[test]
    fn the_first_window_begins_with_its_first_measurement() {
        assert_eq!(window(None, Some(MINUTE), 2 * MINUTE), (MINUTE, 2 * MINUTE));
        assert_eq!(window(None, None, MINUTE), (MINUTE, MINUTE + 1));
    }

    #[test]
    fn no_clock_and_no_file_of_tomorrow_turns_a_window_around() {
        assert_eq!(window(Some(9 * MINUTE), None, 6 * MINUTE), (9 * MINUTE, 9 * MINUTE + 1));
        assert_eq!(window(None, Some(u64::MAX), MINUTE), (MINUTE, MINUTE + 1));
        assert_eq!(window(Some(u64::MAX), None, MINUTE).1, u64::MAX);
        assert_eq!(window(None, None, u64::MAX).1, u64::MAX);
    }

    #[test]
    fn a_clock_that_was_wrong_by_a_day_is_not_waited_for() {
        let carried_to = |end_ns| Carried { window_end_ns: Some(end_ns), ..Carried::default() };
        let mut carried = carried_to(1_440 * MINUTE);
        begin_anew_if_the_clock_was_set_back(&mut carried, MINUTE);
        assert_eq!(carried.window_end_ns, None);
        let mut carried = carried_to(9 * MINUTE);
        begin_anew_if_the_clock_was_set_back(&mut carried, MINUTE);
        assert_eq!(carried.window_end_ns, Some(9 * MINUTE));
    }
}
