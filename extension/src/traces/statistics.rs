//! What traces hold, summed up in bounded memory.
//!
//! ```text
//! records ── role ─┬─ launches (joins calls and work) ── timeline ── device, stream ── together
//!                  ├─ kernels, copies (by name)
//!                  └─ memory, counters, what the trace says of itself
//! ```
//!
//! The definitions stand in `docs/formats/traces.md`. Times are whole nanoseconds and exact;
//! quantiles have the error of [`Distribution`].

mod copies;
mod counters;
mod device;
mod distribution;
mod intervals;
mod launches;
mod memory;
mod role;
mod said;
mod timeline;
mod together;
mod trace;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use warpgauge_formats::finding::{Finding, Severity};
use warpgauge_formats::trace::{Record, Sink};

use self::role::{Role, Work};
use self::timeline::is_kernel;
use crate::events::statistics::Kernels;
use crate::events::unknown::Unknown;

pub use self::copies::{Copies, CopyTotals};
pub use self::counters::{Counters, Range};
pub use self::device::{Communication, Device, Idle, Stream};
pub use self::distribution::Distribution;
pub use self::launches::Delays;
pub use self::memory::{Memory, MemoryTotals};
pub use self::said::{MergedRank, Said};
pub use self::timeline::Limits;
pub use self::trace::Trace;

/// Most categories that are counted apart.
const CATEGORIES: usize = 1_000;

/// The category that stands for all beyond [`CATEGORIES`].
const OTHERS: &str = "(others)";

/// The sums of traces. Feed it with a reader, between [`Statistics::trace_begins`] and
/// [`Statistics::trace_ends`].
#[derive(Debug, Default)]
pub struct Statistics {
    /// The traces, in the order in which they were read.
    pub traces: Vec<Trace>,
    /// Records by category; of records that have none, by their kind in brackets.
    pub categories: BTreeMap<String, u64>,
    /// Kernels of all traces by name.
    pub kernels: Kernels,
    /// Copies and fills of all traces by kind.
    pub copies: Copies,
    /// What the reader does not know.
    pub unknown: Unknown,
    /// Records and members that were not taken.
    pub refused: u64,
    /// Those that were taken, but cannot be right.
    pub suspect: u64,
    /// The first that was refused, and the file in which that was.
    pub first_refused: Option<(String, Finding)>,
    limits: Limits,
    only_devices: bool,
}

impl Statistics {
    /// Sums within other bounds of memory than the usual ones.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Sums up the devices alone: no categories, kernels and copies by name.
    #[must_use]
    pub fn of_devices() -> Self {
        Self { only_devices: true, ..Self::default() }
    }

    /// A trace begins.
    pub fn trace_begins(&mut self, name: &str) {
        self.traces.push(Trace::begins(name, self.limits));
    }

    /// A trace has been read, to its end or as far as it goes.
    pub fn trace_ends(&mut self) {
        self.traces.last_mut().into_iter().for_each(Trace::ends);
        self.copies.trace_ends();
    }

    fn count(&mut self, category: &str) {
        if let Some(count) = self.categories.get_mut(category) {
            *count += 1;
            return;
        }
        let category = if self.categories.len() < CATEGORIES { category } else { OTHERS };
        *self.categories.entry(category.to_owned()).or_default() += 1;
    }
}

impl Sink for Statistics {
    fn record(&mut self, _: u64, record: &Record<'_>) {
        let category = trace::category(record);
        if !category.is_empty() && !self.only_devices {
            self.count(category);
        }
        let Some(trace) = self.traces.last_mut() else { return };
        trace.note(record);
        let Record::Event(event) = record else { return };
        let role = Role::of(event);
        trace.work(event, role);
        if self.only_devices {
            return;
        }
        let (start, end) = (event.timestamp.0, event.end().0.max(event.timestamp.0));
        if is_kernel(role) {
            self.kernels.note(&event.name, end.saturating_sub(start));
        } else if role == Role::Work(Work::Memory) {
            self.copies.note(&event.name, start, end, event.transfer.bytes);
        }
    }

    fn finding(&mut self, finding: Finding) {
        if finding.severity == Severity::Suspect {
            self.suspect += 1;
            return;
        }
        self.refused += 1;
        if self.first_refused.is_none() {
            let name = self.traces.last().map(|trace| trace.name.clone());
            self.first_refused = Some((name.unwrap_or_default(), finding));
        }
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.unknown.note(line, name);
    }
}
