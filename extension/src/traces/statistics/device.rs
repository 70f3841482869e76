//! One device: what ran on its streams, and what the sums of that are.

use warpgauge_formats::time::Timestamp;
use warpgauge_formats::trace::Id;

use super::intervals::{Interval, Intervals};
use super::launches::Delays;
use super::role::Work;
use super::together::{Running, Together};

/// Gaps that are shorter are taken for the device's own time between two kernels, nanoseconds: the
/// default of `consecutive_kernel_delay` in HolisticTraceAnalysis 0.5.0, which is 30 and compared
/// with microseconds.
const KERNEL_WAIT: i64 = 30_000;

/// One device of a trace.
#[derive(Debug, Default)]
pub struct Device {
    /// The process as which it is drawn.
    pub process: Id<'static>,
    /// The rank that it belongs to, where the trace tells it.
    pub rank: Option<i64>,
    /// Its ordinal, where an event tells it.
    pub ordinal: Option<i64>,
    /// Its product name, where the trace tells it.
    pub name: Option<String>,
    /// What the trace calls its process.
    pub label: Option<String>,
    /// The beginning of the first and the end of the last piece of work or wait.
    pub span: Option<(Timestamp, Timestamp)>,
    /// From the host's calls to the starts of what they asked for.
    pub delays: Delays,
    /// Pieces that came after their time had been summed up, and the nanoseconds of them that no
    /// other figure of times holds.
    pub late: (u64, i128),
    /// Its streams.
    pub streams: Vec<Stream>,
    together: Together,
    settled: Option<i64>,
}

/// One stream of a device.
#[derive(Debug, Default)]
pub struct Stream {
    /// The row as which it is drawn.
    pub row: Id<'static>,
    /// Kernels, copies and fills.
    pub pieces: u64,
    /// Nanoseconds in which at least one of them ran.
    pub busy: i128,
    /// Nanoseconds between them, by reason.
    pub idle: Idle,
    behind: Option<i64>,
    intervals: [Intervals; Work::ALL.len()],
}

/// Why a stream had nothing to do between two pieces of work, as HolisticTraceAnalysis 0.5.0 tells
/// it (`_analyze_idle_time_for_stream`). Nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Idle {
    /// The host asked for the next piece only when the one before had ended.
    pub host_wait: i128,
    /// The next piece had been asked for, and the gap is shorter than 30 us.
    pub kernel_wait: i128,
    /// Anything else: another stream was waited for, or nothing tells when the host asked.
    pub other: i128,
}

impl Idle {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> i128 {
        self.host_wait + self.kernel_wait + self.other
    }
}

/// Time in collective operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Communication {
    /// Nanoseconds in which at least one ran.
    pub time: i128,
    /// Nanoseconds of these in which a computing kernel ran too.
    pub hidden: i128,
    /// Whether annotations tell it, because no kernel of a collective library ran.
    pub from_annotations: bool,
}

impl Device {
    pub(super) fn new(process: Id<'static>, ordinal: Option<i64>) -> Self {
        Self { process, ordinal, ..Self::default() }
    }

    /// Adds a piece of work; says whether it takes room of its own.
    pub(super) fn insert(&mut self, stream: usize, work: Work, mut interval: Interval) -> bool {
        if work != Work::Annotated {
            let (first, last) = (Timestamp(interval.start), Timestamp(interval.end));
            self.span = Some(self.span.map_or((first, last), |(earliest, latest)| {
                (earliest.min(first), latest.max(last))
            }));
        }
        if let Some(settled) = self.settled.filter(|settled| interval.start < *settled) {
            self.late.0 += 1;
            self.late.1 += i128::from(interval.end.min(settled)) - i128::from(interval.start);
            if interval.end <= settled {
                return false;
            }
            interval.start = settled;
        }
        let Some(stream) = self.streams.get_mut(stream) else { return false };
        let place = work.bit().ilog2() as usize;
        stream.intervals.get_mut(place).is_some_and(|intervals| intervals.insert(interval))
    }

    /// Sums up what lies before `until`, and forgets it.
    pub(super) fn settle(&mut self, until: i64) {
        let mut lists = vec![];
        for stream in &mut self.streams {
            let taken = stream.intervals.iter_mut().map(|intervals| intervals.take_before(until));
            let taken: Vec<_> = Work::ALL.into_iter().zip(taken).collect();
            stream.settle(&taken);
            lists.extend(taken.into_iter().filter(|(_, list)| !list.is_empty()));
        }
        self.together.add(&lists);
        self.settled = Some(until);
    }

    /// Sorts in what has come, so that it takes the least room; says how much that is.
    pub(super) fn compact(&mut self) -> usize {
        let all = self.streams.iter_mut().flat_map(|stream| &mut stream.intervals);
        all.map(|intervals| {
            intervals.merge();
            intervals.len()
        })
        .sum()
    }

    /// When what is held starts.
    pub(super) fn starts(&self) -> impl Iterator<Item = i64> {
        let all = self.streams.iter().flat_map(|stream| &stream.intervals);
        all.flat_map(Intervals::starts)
    }

    /// Nanoseconds from the first to the last piece of work or wait.
    #[must_use]
    pub fn length(&self) -> i128 {
        self.span.map_or(0, |(first, last)| i128::from(last.0) - i128::from(first.0))
    }

    /// Nanoseconds in which a kernel, a copy or a fill ran.
    #[must_use]
    pub fn busy(&self) -> i128 {
        self.together.time(Running::is_busy)
    }

    /// Nanoseconds in which nothing ran and a stream waited.
    #[must_use]
    pub fn waiting(&self) -> i128 {
        self.together.time(|running| !running.is_busy() && running.has(Work::Wait))
    }

    /// Nanoseconds of its length in which nothing ran and no stream waited.
    #[must_use]
    pub fn idle(&self) -> i128 {
        self.length() - self.busy() - self.waiting()
    }

    /// Nanoseconds in which a computing kernel ran.
    #[must_use]
    pub fn compute(&self) -> i128 {
        self.together.time(|running| running.has(Work::Compute))
    }

    /// Nanoseconds of its length in which something ran or waited and no kernel computed.
    #[must_use]
    pub fn non_compute(&self) -> i128 {
        self.length() - self.compute() - self.idle()
    }

    /// Nanoseconds in which a copy or a fill ran.
    #[must_use]
    pub fn memory(&self) -> i128 {
        self.together.time(|running| running.has(Work::Memory))
    }

    /// Time in collective operations; none where there were none.
    #[must_use]
    pub fn communication(&self) -> Option<Communication> {
        let of = |work| {
            let time = self.together.time(|running| running.has(work));
            let both = |running: Running| running.has(work) && running.has(Work::Compute);
            (time > 0).then(|| (time, self.together.time(both)))
        };
        let kernels = of(Work::Communication);
        let (time, hidden) = kernels.or_else(|| of(Work::Annotated))?;
        Some(Communication { time, hidden, from_annotations: kernels.is_none() })
    }
}

impl Stream {
    pub(super) fn new(row: Id<'static>) -> Self {
        Self { row, ..Self::default() }
    }

    fn settle(&mut self, lists: &[(Work, Vec<Interval>)]) {
        let busy = lists.iter().filter(|(work, _)| work.is_busy());
        let mut busy: Vec<_> = busy.flat_map(|(_, list)| list).copied().collect();
        busy.sort();
        for Interval { start, asked, end } in busy {
            let from = match self.behind {
                Some(behind) if behind < start => {
                    self.idle.note(behind, start, asked);
                    start
                }
                Some(behind) => behind,
                None => start,
            };
            self.busy += (i128::from(end) - i128::from(from)).max(0);
            self.behind = self.behind.max(Some(end));
        }
    }
}

impl Idle {
    /// Counts a gap before a piece of work that the host asked for at `asked`.
    fn note(&mut self, from: i64, to: i64, asked: i64) {
        let gap = i128::from(to) - i128::from(from);
        let is_known = asked != Interval::UNASKED;
        match () {
            () if is_known && asked > from => self.host_wait += gap,
            () if gap < i128::from(KERNEL_WAIT) => self.kernel_wait += gap,
            () => self.other += gap,
        }
    }
}
