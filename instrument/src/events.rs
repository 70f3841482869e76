//! The event log: what happened in this process, one event at a time, where the settings ask for it.
//!
//! ```text
//! scopes, memory ── on the program's threads ──> ring ─────────┐
//! kernels, copies ── CUPTI's activity records ──> buffer pool ─┴─> writer ──> files
//! ```
//!
//! ```text
//! ring      fixed-size records of many threads, taken by one; record, what is in them
//! ```
//!
//! The program is never held up: what finds no room is counted, and the log says so.

pub mod record;
pub mod ring;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::events::record::Record;
use crate::events::ring::Ring;
use crate::scopes::{ScopeRecord, Sink};

/// Records that the ring holds: a second of 16,000 scopes a second.
pub const RING_RECORDS: usize = 1 << 14;

static RING: Ring<RING_RECORDS> = Ring::new();

/// Whether a log is being written.
static IS_ON: AtomicBool = AtomicBool::new(false);

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

fn accept(scope: &ScopeRecord) {
    if is_on() {
        RING.push(&Record::Scope(*scope).to_words());
    }
}
