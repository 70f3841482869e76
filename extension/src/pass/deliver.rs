//! The way out: sends what waits, keeps the spool within its limits, remembers what got lost.

use std::path::Path;
use std::time::Instant;

use super::unix_now_ns;
use crate::atomic_file::Durability;
use crate::carried::{Carried, GivenUpBy, Owed};
use crate::otlp::sender::{self, Outcome};
use crate::report::Delivery;
use crate::setup::{Export, Setup};
use crate::skips::Skips;
use crate::spool::rejected::Rejected;
use crate::spool::{Pending, Spool};

/// `reason` of points that the receiver refused out of a request that it took.
const PARTIAL: &str = "partial";

/// `reason` of points of a request that the receiver refused as a whole.
const REFUSED: &str = "refused";

/// Gives up what a killed pass had given up already: its points are owed, so it must not be sent,
/// and owed, once more.
pub(super) fn finish_giving_up(
    spool: &Spool,
    rejected: &Rejected,
    carried: &Carried,
) -> anyhow::Result<()> {
    let pending = if carried.owed.is_empty() { Vec::new() } else { spool.pending()? };
    for request in pending {
        match carried.owed.get(&request.name) {
            Some(Owed { by: GivenUpBy::Receiver, reason, .. }) if reason == REFUSED => {
                rejected.take(&request)?;
            }
            Some(_) => spool.remove(&request)?,
            None => {}
        }
    }
    // Also of words whose request was not refused again.
    Ok(rejected.sweep()?)
}

/// Sends what waits, oldest first, until something has to wait or the time is spent.
pub(super) fn deliver(
    setup: &Setup,
    export: &Export,
    spool: &Spool,
    rejected: &Rejected,
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
                owe(carried, state, &request, GivenUpBy::Receiver, PARTIAL, rejected_points)?;
            }
            Outcome::Refused { reason } => {
                let path = rejected.keep_words(&request, &reason)?;
                owe(carried, state, &request, GivenUpBy::Receiver, REFUSED, points)?;
                rejected.take(&request)?;
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
    rejected.sweep()?;
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
/// next pass lets the request go without counting it again.
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
