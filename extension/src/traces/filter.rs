//! Which records of a trace are wanted.
//!
//! What is asked of times, places, categories, names and lengths must all hold; of several windows,
//! categories or names one is enough. Places are devices, streams and threads: an event is wanted
//! where it ran on one of the devices and one of the streams, or on one of the threads. Names of
//! processes and threads, the base time and what is said of the trace as a whole always stay.

mod time;

use regex::RegexSet;
use warpgauge_formats::loss::Losses;
use warpgauge_formats::trace::{
    CounterEvent, FlowPoint, Id, MemoryEvent, Record, TraceEvent, Track,
};

pub use self::time::{Length, Moment, TimeFault, Window};
use super::fasten::Fastened;

/// What is wanted; an empty list asks for nothing.
#[derive(Debug, Clone)]
pub struct Filter {
    /// Events that run within one of these, if only in part.
    pub windows: Vec<Window>,
    /// Events on one of these devices.
    pub devices: Vec<i64>,
    /// Events on one of these streams.
    pub streams: Vec<i64>,
    /// Events on one of these threads, numbers or texts.
    pub threads: Vec<Id<'static>>,
    /// Events of one of the producer's categories.
    pub categories: Vec<String>,
    /// Events whose name matches one of these.
    pub names: RegexSet,
    /// Slices that ran so long; instants and ranges are not asked.
    pub min_duration: Option<Length>,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            windows: vec![],
            devices: vec![],
            streams: vec![],
            threads: vec![],
            categories: vec![],
            names: RegexSet::empty(),
            min_duration: None,
        }
    }
}

impl Filter {
    /// Whether everything is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
            && self.devices.is_empty()
            && self.streams.is_empty()
            && self.threads.is_empty()
            && self.asks_only_time_and_place()
    }

    fn asks_only_time_and_place(&self) -> bool {
        self.categories.is_empty() && self.names.is_empty() && self.min_duration.is_none()
    }

    /// Whether a moment has to be counted from the trace's beginning or base time, which may stand
    /// at its end.
    #[must_use]
    pub fn needs_times(&self) -> bool {
        !self.windows.is_empty()
    }

    fn is_place(&self, device: Option<i64>, stream: Option<i64>, thread: &Id<'_>) -> bool {
        let of_device = !self.devices.is_empty() || !self.streams.is_empty();
        if !of_device && self.threads.is_empty() {
            return true;
        }
        let among = |wanted: &[i64], number: Option<i64>| {
            wanted.is_empty() || number.is_some_and(|number| wanted.contains(&number))
        };
        of_device && among(&self.devices, device) && among(&self.streams, stream)
            || self.threads.iter().any(|wanted| wanted == thread)
    }

    fn is_category(&self, category: Option<&str>) -> bool {
        let among = |category: &str| self.categories.iter().any(|wanted| wanted == category);
        self.categories.is_empty() || category.is_some_and(among)
    }

    fn is_name(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.is_match(name)
    }
}

/// Passes on what a filter wants, in the order of a trace.
#[derive(Debug)]
pub struct Sieve<'f> {
    filter: &'f Filter,
    /// In the times of the trace.
    windows: Vec<(i64, i64)>,
    slices: Fastened<bool>,
    left_out: Losses,
}

impl<'f> Sieve<'f> {
    /// A sieve for a trace that begins at `first` and whose times count from `base`.
    #[must_use]
    pub fn new(filter: &'f Filter, first: i64, base: Option<i64>) -> Self {
        let moment = |moment| match moment {
            Moment::Relative(time) => first.saturating_add(time),
            Moment::Epoch(time) => time.saturating_sub(base.unwrap_or_default()),
        };
        let window = |window: &Window| {
            (window.from.map_or(i64::MIN, moment), window.to.map_or(i64::MAX, moment))
        };
        let windows = filter.windows.iter().map(window).collect();
        Self { filter, windows, slices: Fastened::default(), left_out: Losses::default() }
    }

    /// What was left out so far, by kind.
    #[must_use]
    pub fn left_out(&self) -> &Losses {
        &self.left_out
    }

    /// Whether a record is wanted. Asked once for each record, in their order.
    pub fn wants(&mut self, record: &Record<'_>) -> bool {
        let (kind, wanted) = match record {
            Record::Event(event) => {
                let wanted = self.wants_event(event);
                ("event", self.slices.event(event, wanted))
            }
            Record::Flow(point) => ("end of an arrow", self.wants_flow(point)),
            Record::Memory(event) => ("memory event", self.wants_memory(event)),
            Record::Counter(event) => ("counter", self.wants_counter(event)),
            Record::Other(_) => ("record of an unknown kind", false),
            Record::Label(_) | Record::BaseTime(_) | Record::Document { .. } => return true,
        };
        if !wanted {
            self.left_out.count(kind);
        }
        wanted
    }

    fn is_time(&self, start: i64, end: i64) -> bool {
        let within = |(from, to): &(i64, i64)| start < *to && (end > *from || start >= *from);
        self.windows.is_empty() || self.windows.iter().any(within)
    }

    fn wants_event(&self, event: &TraceEvent<'_>) -> bool {
        let (device, stream) = on_device(event);
        let thread = event.thread.map_or_else(|| text_of(&event.track), Id::Number);
        let is_long = |least: Length| event.duration.is_none_or(|length| length.0 >= least.0);
        self.is_time(event.timestamp.0, event.end().0)
            && self.filter.is_place(device, stream, &thread)
            && self.filter.is_category(event.category.as_deref())
            && self.filter.is_name(&event.name)
            && self.filter.min_duration.is_none_or(is_long)
    }

    /// An arrow's end is wanted where its slice is. One without a slice is asked for itself.
    fn wants_flow(&self, point: &FlowPoint<'_>) -> bool {
        self.slices.arrow(&point.track, point.timestamp.0).unwrap_or_else(|| {
            let (process, row) = (point.track.process.number(), point.track.row.number());
            self.filter.asks_only_time_and_place()
                && self.is_time(point.timestamp.0, point.timestamp.0)
                && self.filter.is_place(process, row, &point.track.row)
        })
    }

    fn wants_memory(&self, event: &MemoryEvent<'_>) -> bool {
        let thread = event.thread.map_or_else(|| text_of(&event.track), Id::Number);
        self.is_time(event.timestamp.0, event.timestamp.0)
            && self.filter.is_place(event.device, None, &thread)
            && self.filter.is_category(Some("cpu_instant_event"))
            && self.filter.is_name("[memory]")
    }

    fn wants_counter(&self, event: &CounterEvent<'_>) -> bool {
        self.is_time(event.timestamp.0, event.timestamp.0)
            && self.filter.is_place(event.device, None, &event.track.row)
            && self.filter.is_category(event.category.as_deref())
            && self.filter.is_name(&event.name)
    }
}

/// The device and the stream of an event. What has no thread and a number for its row is drawn on a
/// stream, and its process is the device.
fn on_device(event: &TraceEvent<'_>) -> (Option<i64>, Option<i64>) {
    let is_drawn = event.thread.is_none();
    let drawn = |id: &Id<'_>| id.number().filter(|_| is_drawn);
    let device = event.device.or_else(|| drawn(&event.track.process));
    (device, event.stream.or_else(|| drawn(&event.track.row)))
}

/// The row where it is a text.
fn text_of<'t>(track: &'t Track<'_>) -> Id<'t> {
    match &track.row {
        Id::Text(_) => track.row.borrowed(),
        Id::Number(_) | Id::None => Id::None,
    }
}
