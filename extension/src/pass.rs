//! One pass: a minute of the product's life, top to bottom.
//!
//! ```text
//! lock -> finish what a killed pass left -> resolve groups -> listing, runtime configuration
//!      -> read measurement files -> aggregate -> commit to the spool
//!      -> remove the files -> send, oldest first -> forget what was acknowledged
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use opentelemetry_proto::tonic::metrics::v1::ResourceMetrics;

use crate::aggregate::{Shape, Tally};
use crate::atomic_file::Durability;
use crate::carried::{self, Carried, GivenUpBy, Owed};
use crate::config::export::Temporality;
use crate::config::{Config, Distributions, Paths};
use crate::control::{self, OwnLine, RuntimeConfig};
use crate::groups::{Process, Resolution};
use crate::health::{self, Health};
use crate::listing::{ListedProcess, Listing, Owners};
use crate::lock::Lock;
use crate::measurements::folder::Folder;
use crate::measurements::manifest::{self, StillThere};
use crate::measurements::{self, Claim};
use crate::otlp::chunks;
use crate::otlp::mapping::{self, Window};
use crate::otlp::resource::{Host, instance_of};
use crate::otlp::sender::{self, Outcome};
use crate::report::{Delivery, Report, Row, RuntimeConfigOutcome};
use crate::setup::{Export, Setup};
use crate::skips::Skips;
use crate::spool::{Pending, Spool};

/// Does one pass.
///
/// # Errors
/// What kept it from working at all. Whatever went wrong with a single process, file or request is
/// in the report.
pub fn run(setup: &Setup, export: &Export) -> anyhow::Result<Report> {
    let started = Instant::now();
    let Paths { state, measurements, .. } = &setup.config.paths;
    make_folders(&setup.config.paths)?;
    let _lock = Lock::take(state)?;
    let spool = Spool::open(state)?;
    let folder = measurements::open(measurements)?;
    let still_there = finish_earlier(&spool, &folder, state)?;
    let mut carried = Carried::load(state)?;
    let waiting = spool.pending()?;

    let now_ns = unix_now_ns();
    let resolution = setup.rules.resolve(&setup.proc, setup.own_pid)?;
    let (listing, runtime_config) = list(setup, &resolution, now_ns)?;

    let owners = Owners::of(&listing);
    let shape = shape_of(&setup.config);
    let request =
        measurements::Request { owners: &owners, still_there: &still_there, shape, now_ns };
    let claim = measurements::claim(&folder, &request)?;
    claim.refused.log("refused");
    claim.left.log("left for a later pass");

    let window = window_after(carried.window_end_ns, claim.oldest_ns, now_ns);
    let groups = roll_ups(&claim, &listing);
    let mut resources = series(setup, &export.host, &claim, &listing, &groups, window);
    let health = Health {
        claim: &claim,
        carried: &carried,
        spool_bytes: waiting.iter().map(|request| request.size).sum(),
        spool_age: waiting.first().map_or(Duration::ZERO, |oldest| oldest.age(now_ns)),
        processes: runtime_config.listed,
    };
    resources.push(health::collect(&health, export.host.extension(), window)?);
    if export.settings.temporality == Temporality::Cumulative {
        carried.totals.apply(&mut resources);
        carried.totals.retain(&living(&export.host, &listing, setup, &resources));
    }
    commit(&spool, &folder, state, &mut carried, &claim, still_there, resources, window)?;

    let delivery = deliver(setup, export, &spool, &mut carried)?;
    let duration = started.elapsed();
    carried.last_duration_ns = u64::try_from(duration.as_nanos()).ok();
    if delivery.is_complete() {
        carried.last_success_ns = Some(unix_now_ns());
    }
    carried.store(state, Durability::ProcessDeath)?;
    Ok(Report::new(rows(&claim, &listing), &claim, runtime_config, delivery, duration))
}

/// What a pass would do now; changes nothing and takes no lock.
///
/// # Errors
/// As [`run`].
pub fn preview(setup: &Setup) -> anyhow::Result<Report> {
    let started = Instant::now();
    let Paths { state, measurements, runtime_config, .. } = &setup.config.paths;
    let now_ns = unix_now_ns();
    let resolution = setup.rules.resolve(&setup.proc, setup.own_pid)?;
    let (existing, old) = RuntimeConfig::load(runtime_config)?;
    let planned = plan(setup, &resolution, existing, &Listing::load(state)?, now_ns);
    let mut listing = Listing::load(state)?;
    listing.refresh(planned.alive.clone(), now_ns);
    let owners = Owners::of(&listing);
    let claim = if measurements.exists() {
        let request = measurements::Request {
            owners: &owners,
            still_there: &StillThere::default(),
            shape: shape_of(&setup.config),
            now_ns,
        };
        measurements::claim(&measurements::open(measurements)?, &request)?
    } else {
        Claim::default()
    };
    let outcome = planned.outcome(old != planned.content);
    Ok(Report::new(rows(&claim, &listing), &claim, outcome, Delivery::default(), started.elapsed()))
}

fn make_folders(paths: &Paths) -> anyhow::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let mut private = std::fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    private
        .create(&paths.state)
        .with_context(|| format!("cannot make the state folder {}", paths.state.display()))?;
    if !paths.measurements.exists() {
        let cannot =
            || format!("cannot make the measurements folder {}", paths.measurements.display());
        std::fs::create_dir_all(&paths.measurements).with_context(cannot)?;
        // Every monitored user writes here; the sticky bit keeps each from touching the others'.
        let everybody = std::fs::Permissions::from_mode(0o1777);
        std::fs::set_permissions(&paths.measurements, everybody).with_context(cannot)?;
    }
    if let Some(parent) = paths.runtime_config.parent() {
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot make the folder {}", parent.display()))?;
    }
    Ok(())
}

/// Finishes what a killed pass had committed: its state becomes the state, its files are removed.
fn finish_earlier(spool: &Spool, folder: &Folder, state: &Path) -> anyhow::Result<StillThere> {
    let mut still_there = StillThere::default();
    for entry in spool.entries()? {
        entry.apply_after(&state.join(carried::FILE))?;
        let left = manifest::remove(folder, &entry.counted()?, measurements::workers(), true);
        if left.is_empty() {
            entry.forget_counted()?;
        } else {
            tracing::warn!(
                "{}: {} counted files cannot be removed, {} is one; they are not counted again, but the folder grows: run warpgauge as a user that may remove them",
                folder.path().display(),
                left.len(),
                left.first()
                    .map(|file| measurements::folder::shown(&file.name))
                    .unwrap_or_default(),
            );
            still_there.extend(left);
        }
    }
    Ok(still_there)
}

/// The processes to be listed, the file as it should be, and what to say of persons' lines.
struct Planned {
    alive: Vec<ListedProcess>,
    content: Vec<u8>,
    listed: usize,
    remarks: Vec<String>,
}

impl Planned {
    fn outcome(&self, changed: bool) -> RuntimeConfigOutcome {
        let Self { listed, remarks, .. } = self;
        RuntimeConfigOutcome { listed: *listed, changed, remarks: remarks.clone(), failure: None }
    }
}

/// Remembers who is listed, then tells the instrument. The order matters: nothing may be measured
/// that nobody remembers.
fn list(
    setup: &Setup,
    resolution: &Resolution,
    now_ns: u64,
) -> anyhow::Result<(Listing, RuntimeConfigOutcome)> {
    let Paths { state, runtime_config, .. } = &setup.config.paths;
    for skipped in resolution.skipped.iter().chain(&resolution.incomplete) {
        tracing::warn!("/proc: {skipped}");
    }
    let mut listing = Listing::load(state)?;
    let loaded = RuntimeConfig::load(runtime_config);
    let (existing, old) = match loaded {
        Ok(loaded) => loaded,
        Err(fault) => {
            // Somebody else's file, perhaps: it is not overwritten unread.
            let failure = RuntimeConfigOutcome {
                failure: Some(fault.to_string()),
                ..RuntimeConfigOutcome::default()
            };
            return Ok((listing, failure));
        }
    };
    let planned = plan(setup, resolution, existing, &listing, now_ns);
    let changed = listing.refresh(planned.alive.clone(), now_ns);
    listing.store(state, if changed { Durability::PowerCut } else { Durability::ProcessDeath })?;
    let outcome = match control::write_if_changed(runtime_config, &old, &planned.content) {
        Ok(written) => planned.outcome(written),
        Err(fault) => {
            RuntimeConfigOutcome { failure: Some(fault.to_string()), ..planned.outcome(false) }
        }
    };
    for remark in &outcome.remarks {
        tracing::warn!("{}: {remark}", runtime_config.display());
    }
    Ok((listing, outcome))
}

fn plan(
    setup: &Setup,
    resolution: &Resolution,
    mut existing: RuntimeConfig,
    listing: &Listing,
    now_ns: u64,
) -> Planned {
    let Config { functions, instrumentation_enabled, .. } = &setup.config;
    let mut alive = Vec::new();
    let mut own = Vec::new();
    for group in &resolution.groups {
        for process in &group.processes {
            alive.push(listed_process(process, Some(&group.name), now_ns));
            let (pid, group) = (process.namespace_pid, group.name.clone());
            own.push(OwnLine { pid, functions: *functions, group });
        }
    }
    let mut remarks: Vec<_> = existing
        .malformed
        .iter()
        .map(|line| format!("line {}: {}: `{}`", line.number, line.fault, line.shown()))
        .collect();
    existing.manual.retain(|line| {
        let pid = line.entry.pid;
        match Process::look_up(&setup.proc, pid) {
            Ok(Some(process))
                if listing.last_start_of(pid).is_none_or(|start| start == process.id.start_ticks) =>
            {
                if own.iter().all(|own| own.pid != pid) {
                    alive.push(listed_process(&process, None, now_ns));
                }
                true
            }
            // Ended, and perhaps its pid is another's by now.
            Ok(_) => {
                remarks.push(format!(
                    "line {}: process {pid} has ended; its line is dropped",
                    line.number
                ));
                false
            }
            Err(cause) => {
                remarks.push(format!(
                    "line {}: process {pid}: {cause}; its line stays, its measurements cannot be attributed",
                    line.number
                ));
                true
            }
        }
    });
    let listed = if *instrumentation_enabled {
        let manual = existing.manual.iter().map(|line| line.entry.pid);
        own.iter().map(|line| line.pid).chain(manual).collect::<BTreeSet<_>>().len()
    } else {
        0
    };
    let content = existing.render(&own, *instrumentation_enabled);
    Planned { alive, content, listed, remarks }
}

/// A process as the listing keeps it.
#[must_use]
pub fn listed_process(process: &Process, group: Option<&str>, now_ns: u64) -> ListedProcess {
    ListedProcess {
        pid: process.id.pid,
        own_pid: process.namespace_pid,
        start_ticks: process.id.start_ticks,
        created_ns: process.created_unix_nanoseconds,
        uids: process.uids.all(),
        group: group.map(str::to_owned),
        executable: process.executable_name.clone().unwrap_or_else(|| process.comm.clone()),
        service_name: process.otel_service_name.clone(),
        container_id: process.container_id.clone(),
        last_seen_ns: now_ns,
    }
}

fn shape_of(config: &Config) -> Shape {
    match config.metrics.distributions {
        Distributions::Off => Shape::None,
        Distributions::Explicit => Shape::Explicit,
        Distributions::Exponential => Shape::Exponential,
    }
}

/// From the end of the last window to now. The first window of all begins with its first
/// measurement; a clock that was set back never makes one that ends before it begins.
fn window_after(last_end_ns: Option<u64>, oldest_ns: Option<u64>, now_ns: u64) -> Window {
    let start_ns = last_end_ns.or(oldest_ns).unwrap_or(now_ns);
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

/// The point of no return, and what must follow it.
#[expect(clippy::too_many_arguments, reason = "everything that becomes true in one instant")]
fn commit(
    spool: &Spool,
    folder: &Folder,
    state: &Path,
    carried: &mut Carried,
    claim: &Claim,
    still_there: StillThere,
    resources: Vec<ResourceMetrics>,
    window: Window,
) -> anyhow::Result<()> {
    // Without a measurement there is nothing that a power cut could lose.
    let durability = if claim.is_empty() && carried.owed.is_empty() {
        Durability::ProcessDeath
    } else {
        Durability::PowerCut
    };
    carried.window_end_ns = Some(window.end_ns);
    carried.owed.clear();
    let older = spool.entries()?;
    let entry = spool.commit(
        window,
        &chunks::pack(resources),
        claim.counted.iter().chain(still_there.iter()),
        &carried.to_json()?,
        durability,
    )?;
    entry.apply_after(&state.join(carried::FILE))?;
    for entry in older {
        entry.forget_counted()?;
    }
    let workers = measurements::workers();
    if manifest::remove(folder, &claim.counted, workers, false).is_empty()
        && still_there.iter().next().is_none()
    {
        entry.forget_counted()?;
    }
    match claim.put_away(folder) {
        Ok(0) => {}
        Ok(stay) => tracing::warn!(
            "{}: {stay} refused entries cannot be moved away and are met again by the next pass",
            folder.path().display()
        ),
        Err(fault) => tracing::warn!(
            "{}/{}: {fault}; refused entries stay where they are",
            folder.path().display(),
            measurements::quarantine::NAME
        ),
    }
    Ok(())
}

/// Sends what waits, oldest first, until something has to wait or the time is spent.
fn deliver(
    setup: &Setup,
    export: &Export,
    spool: &Spool,
    carried: &mut Carried,
) -> anyhow::Result<Delivery> {
    let state = &setup.config.paths.state;
    let end = Instant::now() + export.settings.budget;
    let mut delivery = Delivery::default();
    let mut sender = sender::open(&export.settings)?;
    for request in spool.pending()? {
        if Instant::now() >= end {
            delivery.waits("the time for sending is spent (export.budget)".to_owned());
            break;
        }
        let points = request.points()?;
        match sender.send(&request.read()?, end) {
            Outcome::Accepted => delivery.accepted_points += points,
            Outcome::Partial { rejected_points, message } => {
                tracing::error!(
                    "the receiver refused {rejected_points} of {points} points: {message}"
                );
                delivery.accepted_points += points.saturating_sub(rejected_points);
                delivery.rejected_points += rejected_points;
                owe(carried, state, &request, GivenUpBy::Receiver, "partial", rejected_points)?;
            }
            Outcome::Refused { reason } => {
                owe(carried, state, &request, GivenUpBy::Receiver, "refused", points)?;
                let path = spool.reject(&request, &reason)?;
                tracing::error!(
                    "the receiver refused {points} points for good: {reason}; they lie in {}",
                    path.display()
                );
                delivery.refused_points += points;
                continue;
            }
            Outcome::Retry { reason, .. } => {
                delivery.waits(reason);
                break;
            }
            Outcome::Misconfigured { reason } => {
                delivery.misconfigured = Some(reason);
                break;
            }
        }
        spool.remove(&request)?;
    }
    bound(setup, spool, carried, &mut delivery)?;
    spool.sweep()?;
    let waiting = spool.pending()?;
    delivery.waiting_requests = waiting.len();
    delivery.waiting_bytes = waiting.iter().map(|request| request.size).sum();
    Ok(delivery)
}

/// Keeps the spool within its limits; what goes is owed to the next export.
fn bound(
    setup: &Setup,
    spool: &Spool,
    carried: &mut Carried,
    delivery: &mut Delivery,
) -> anyhow::Result<()> {
    let mut dropped = Skips::default();
    for (request, excess) in Spool::excess(&spool.pending()?, &setup.config.spool, unix_now_ns()) {
        let points = request.points()?;
        owe(
            carried,
            &setup.config.paths.state,
            &request,
            GivenUpBy::Spool,
            excess.reason(),
            points,
        )?;
        spool.remove(&request)?;
        dropped.note_many(excess.reason(), points, || request.name.clone());
    }
    delivery.dropped_points = dropped.total();
    dropped.log("dropped from the spool (data points)");
    Ok(())
}

/// Remembers lost points before the request goes, under the request's name: killed in between, the
/// next pass comes to the same name and counts it once.
fn owe(
    carried: &mut Carried,
    state: &Path,
    request: &Pending,
    by: GivenUpBy,
    reason: &str,
    points: u64,
) -> anyhow::Result<()> {
    carried.owed.insert(request.name.clone(), Owed { by, reason: reason.to_owned(), points });
    carried.store(state, Durability::PowerCut)?;
    Ok(())
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

/// The wall clock, nanoseconds since the epoch.
#[must_use]
pub fn unix_now_ns() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}
