//! Event logs as traces.
//!
//! ```text
//! Event                       Record
//! scope begin ... end         a slice on the process's own row, with instance and parent
//! kernel, copy                a slice on the row of its stream, below its device
//!   call times                a slice of the call, and an arrow from it to the work
//! profile sample              an instant on the device's row `samples`
//! state of host and devices   counters with units
//! session begins, ends        names of processes, and instants
//! ```
//!
//! Every session is a process of its own with devices of its own, whatever its pid. Times of the wall
//! clock count from a midnight before the first, which becomes the trace's base time: a viewer that
//! holds times as doubles would lose the low digits of the epoch's. Times of a clock that starts with
//! the machine stay what they are.

mod calls;
mod counters;
mod device_work;
mod instants;
mod open_scopes;
mod processes;
mod scopes;

use crate::event::{Event, What};
use crate::finding::{self, Finding};
use crate::loss::Losses;
use crate::time::Timestamp;
use crate::trace::{self, Record};

use calls::LastCalls;
use open_scopes::OpenScopes;
use processes::Processes;

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;
/// How long before the first event of a log another may lie that stands behind it: one channel
/// follows the other.
const MARGIN: i64 = 3_600_000_000_000;

/// Draws events as records, on the way to `next`.
///
/// Details of kernels are drawn with their kernel: put
/// [`KernelDetailsJoin`](crate::join::KernelDetailsJoin) in front. Memory: the open scopes (65,536 or
/// 16 MiB of texts at most, then the oldest is drawn as one that has not ended), and one entry for
/// each of 4,096 sessions and 256 devices of each; further ones are drawn together.
pub struct Timeline<'s> {
    next: &'s mut dyn trace::Sink,
    base: Option<i64>,
    processes: Processes,
    open: OpenScopes,
    calls: LastCalls,
    losses: Losses,
}

impl<'s> Timeline<'s> {
    /// Draws for `next`.
    pub fn new(next: &'s mut dyn trace::Sink) -> Self {
        Self {
            next,
            base: None,
            processes: Processes::default(),
            open: OpenScopes::default(),
            calls: LastCalls::default(),
            losses: Losses::default(),
        }
    }

    /// Draws what has begun and not ended. Call it when the log has ended. Gives what a trace could
    /// not hold.
    #[must_use]
    pub fn end(mut self) -> Losses {
        for scope in self.open.take_all() {
            self.record(scope.line, &scopes::unended(&scope));
        }
        self.losses
    }

    /// A time of the log as one of the trace.
    fn time(&mut self, line: u64, time: Timestamp) -> Timestamp {
        if !time.is_wall_clock() {
            return time;
        }
        let base = self.base.unwrap_or_else(|| {
            let base = (time.0 - MARGIN).div_euclid(DAY) * DAY;
            self.base = Some(base);
            self.next.record(line, &Record::BaseTime(base));
            base
        });
        Timestamp(time.0 - base)
    }

    fn record(&mut self, line: u64, record: &Record<'_>) {
        self.next.record(line, record);
    }
}

impl finding::Sink for Timeline<'_> {
    fn event(&mut self, line: u64, event: &Event<'_>) {
        // The base time stands first: readers that stream want it before the events.
        if let Some(time) = time_of(&event.what) {
            self.time(line, time);
        }
        let source = self.processes.source(&event.source, line, self.next);
        match &event.what {
            What::Start(start) => self.session_start(line, source, start),
            What::End(time) => self.session_end(line, source, *time),
            What::Sampling(sampling) => self.sampling(line, source, sampling),
            What::Kernel(kernel) => self.kernel(line, source, kernel),
            What::KernelDetails(_) => self.losses.count("kernel_details"),
            What::Copy(copy) => self.copy(line, source, copy),
            What::Scope(scope) => self.scope(line, source, scope),
            What::Profile(sample) => self.sample(line, source, sample),
            What::System(system) => {
                self.losses.count_some("system.name", system.name.as_ref());
                self.state(line, source, system.time, system.host.as_ref(), &system.devices);
            }
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.next.finding(finding);
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.next.unknown(line, name);
    }
}

/// When something happened, or began.
fn time_of(what: &What<'_>) -> Option<Timestamp> {
    Some(match what {
        What::Start(start) => start.time,
        What::End(time) => *time,
        What::Sampling(sampling) => sampling.time,
        What::Kernel(kernel) => kernel.start,
        What::KernelDetails(_) => return None,
        What::Copy(copy) => copy.start,
        What::Scope(scope) => scope.time,
        What::Profile(sample) => sample.time,
        What::System(system) => system.time,
    })
}

impl std::fmt::Debug for Timeline<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Timeline")
            .field("base", &self.base)
            .field("losses", &self.losses)
            .finish_non_exhaustive()
    }
}
