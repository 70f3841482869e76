//! The event log: what happened in this process, one event at a time, where the settings ask for it.
//!
//! ```text
//! scopes, memory ── on the program's threads ──> ring ─────────┐
//! kernels, copies ── CUPTI's activity records ──> buffer pool ─┴─> writer ──> files
//! ```
//!
//! ```text
//! ring      fixed-size records of many threads, taken by one; record, what is in them
//! row       a kernel or a copy; clock, how its times become the wall clock's
//! log       when it begins and ends; memory, of devices inside scopes
//! writer    records and rows to lines; form, the formats; open_scopes, what memory belongs to
//! files     the log's files, one after the other; losses, what did not get there
//! settings  what the start-up settings say
//! ```
//!
//! The program is never held up: what finds no room is counted, and the log says so.

pub mod clock;
pub mod files;
pub mod form;
mod log;
pub mod losses;
pub mod memory;
mod open_scopes;
pub mod record;
pub mod ring;
pub mod row;
pub mod settings;
pub mod writer;

use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::events::log::{EventCounts, EventLog};
use crate::events::record::Record;
use crate::events::ring::Ring;
use crate::scopes::{self, Phase, ScopeRecord, Sink};
use crate::worker;

/// Records that the ring holds: 1 MiB.
pub const RING_RECORDS: usize = 1 << 14;

static RING: Ring<RING_RECORDS> = Ring::new();

/// Whether a log is being written.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Whether the worker was woken because the ring fills up.
static IS_FILLING: AtomicBool = AtomicBool::new(false);

/// Whether a log is being written, so that it is worth making records.
#[must_use]
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Takes scopes, while a log is being written; `None` where the settings ask for none.
#[must_use]
pub fn sink() -> Option<Sink> {
    is_on().then_some(accept as Sink)
}

/// Takes a scope. Any thread, at any moment.
pub fn accept(scope: &ScopeRecord) {
    if !is_on() {
        return;
    }
    match scope.phase {
        Phase::Begin => memory::scopes_changed(1),
        Phase::End => memory::scopes_changed(-1),
        Phase::Mark => {}
    }
    push(&Record::Scope(*scope));
}

fn push(record: &Record) {
    RING.push(&record.to_words());
    if RING.len() > RING_RECORDS as u64 / 2 && !IS_FILLING.swap(true, Ordering::Relaxed) {
        worker::wake();
    }
}

/// Begins to take records, or ends it.
pub fn switch(on: bool) {
    IS_ON.store(on, Ordering::Relaxed);
    match sink() {
        Some(sink) => scopes::set_sink(sink),
        None => scopes::switch_off(),
    }
}

/// Whether the ring has to be emptied before its time.
pub(crate) fn is_filling() -> bool {
    IS_FILLING.load(Ordering::Relaxed)
}

/// Records that the ring had no room for.
#[must_use]
pub fn dropped() -> u64 {
    RING.dropped()
}

/// Takes every record out of the ring; for one thread at a time. No more than it holds: threads may
/// add as fast as this takes.
pub fn take(mut each: impl FnMut(Record)) {
    IS_FILLING.store(false, Ordering::Relaxed);
    for _ in 0..RING_RECORDS {
        let Some(words) = RING.pop() else { break };
        if let Some(record) = Record::from_words(&words) {
            each(record);
        }
    }
}
