//! Which clock a log's times were read from, and when that was.

use warpgauge_formats::event::{Event, What};
use warpgauge_formats::time::{Span, Timestamp};

/// The span of a log's times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clock {
    /// The first instant and the last one.
    pub span: Option<(Timestamp, Timestamp)>,
}

impl Clock {
    /// Takes in the times of an event.
    pub fn note(&mut self, event: &Event<'_>) {
        let Some((from, to)) = times(event) else { return };
        let (first, last) = self.span.unwrap_or((from, to));
        self.span = Some((first.min(from), last.max(to)));
    }

    /// What to add to the log's times for the wall clock's, where they cannot be that already: the
    /// file was last written to when its last event happened.
    #[must_use]
    pub fn offset(&self, modified: Option<Timestamp>) -> Option<Span> {
        let (_, last) = self.span.filter(|(_, last)| !last.is_wall_clock())?;
        modified.map(|modified| modified.since(last))
    }

    /// Whether the times cannot be the wall clock's.
    #[must_use]
    pub fn is_monotonic(&self) -> bool {
        self.span.is_some_and(|(_, last)| !last.is_wall_clock())
    }
}

/// When an event began and ended; details have no time of their own.
fn times(event: &Event<'_>) -> Option<(Timestamp, Timestamp)> {
    let at = |time| (time, time);
    Some(match &event.what {
        What::Start(start) => at(start.time),
        What::End(time) => at(*time),
        What::Sampling(sampling) => at(sampling.time),
        What::Kernel(kernel) => (kernel.start, kernel.start.after(kernel.duration)),
        What::KernelDetails(_) => return None,
        What::Copy(copy) => (copy.start, copy.start.after(copy.duration)),
        What::Scope(scope) => at(scope.time),
        What::Profile(sample) => at(sample.time),
        What::System(system) => at(system.time),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_formats::event::Source;

    #[test]
    fn only_times_that_cannot_be_an_epoch_get_an_offset() {
        let modified = Some(Timestamp(1_800_000_000_000_000_000));
        let of = |time| {
            let mut clock = Clock::default();
            clock.note(&Event { source: Source::default(), what: What::End(Timestamp(time)) });
            clock.offset(modified)
        };
        assert_eq!(
            of(191_093_942_715_200),
            Some(Span(1_800_000_000_000_000_000 - 191_093_942_715_200))
        );
        assert_eq!(of(1_706_800_122_000_000_000), None);
        assert_eq!(Clock::default().offset(modified), None);
    }
}
