//! Events as traces: counters for the memory, instants for what happened.
//!
//! ```text
//! every event                                    counters of its device: allocator, allocator change,
//!                                                memory, memory total
//! an event that is no sample, or says a context  an instant with all that it says
//! or metadata
//! out of memory                                  an instant across the process
//! ```
//!
//! A process of the trace is one collector in one process of a host; that, its interval and its rank
//! stand in the process' name and labels.

use std::collections::{HashMap, HashSet};

use super::{Distributed, Numbers, TelemetryEvent};
use crate::loss::Losses;
use crate::time::Timestamp;
use crate::timeline::base_before;
use crate::trace::{
    self, CounterEvent, EventType, Id, Label, Labelled, Metadata, Record, TraceEvent, Track, Value,
};

/// The unit of all counters (UCUM).
const BYTES: &str = "By";

/// A counter's name, and the names and values of its series.
type Counter<'v> = (&'static str, &'v [(&'static str, Option<i64>)]);

/// Linux gives no process a number from here on (`PID_MAX_LIMIT`, 2^22).
const NO_PID: i64 = 1 << 22;

/// Most producers that are processes of their own, and most bytes of the texts that name one.
const MOST: usize = 4_096;
const LONGEST_NAMES: usize = 4_096;

/// Where the unit and the device of a counter stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Units {
    /// In places of their own.
    #[default]
    Apart,
    /// In the counter's name only: Kineto's form has no other place for them.
    InName,
}

/// Draws events as records, on the way to a sink.
///
/// Memory: one entry for each producer, of which there are 4,096 at most; the events of further ones
/// are lost by name.
#[derive(Debug)]
pub struct Timeline {
    units: Units,
    base: Option<i64>,
    processes: HashMap<Producer<'static>, i64>,
    /// The producer of the last event, which is mostly that of the next.
    last: Option<(Producer<'static>, i64)>,
    taken: HashSet<i64>,
    /// How many numbers behind [`NO_PID`] have been given.
    further: i64,
    losses: Losses,
}

/// Whose events share their counters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Producer<'a> {
    collector: std::borrow::Cow<'a, str>,
    host: std::borrow::Cow<'a, str>,
    pid: i64,
    interval_ms: i64,
    distributed: Option<Distributed<'a>>,
}

impl Timeline {
    /// Has drawn nothing yet.
    #[must_use]
    pub fn new(units: Units) -> Self {
        Self {
            units,
            base: None,
            processes: HashMap::new(),
            last: None,
            taken: HashSet::new(),
            further: 0,
            losses: Losses::default(),
        }
    }

    /// What a trace could not hold so far.
    #[must_use]
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Draws one event, which stands in that line.
    pub fn event(&mut self, line: u64, event: &TelemetryEvent<'_>, next: &mut dyn trace::Sink) {
        let Some(numbers) = Numbers::of(event, &mut self.losses) else { return };
        // The base time stands first: readers that stream want it before the events.
        let timestamp = self.time(line, numbers.time, next);
        let Some(process) = self.process(line, event, &numbers, next) else {
            return self.losses.count("event of a process beyond those that a trace has");
        };
        self.counters(line, timestamp, process, &numbers, next);
        let is_out_of_memory = event.is_out_of_memory();
        let says_more = event.context.is_some() || !event.metadata.is_empty();
        if event.event_type != "sample" || says_more {
            let instant = instant(event, &numbers, timestamp, process, is_out_of_memory);
            next.record(line, &Record::Event(instant));
        }
    }

    /// A time of the wall clock as one that counts from the trace's base time.
    fn time(&mut self, line: u64, time: Timestamp, next: &mut dyn trace::Sink) -> Timestamp {
        if !time.is_wall_clock() {
            return time;
        }
        let base = *self.base.get_or_insert_with(|| {
            let base = base_before(time);
            next.record(line, &Record::BaseTime(base));
            base
        });
        Timestamp(time.0 - base)
    }

    fn process(
        &mut self,
        line: u64,
        event: &TelemetryEvent<'_>,
        numbers: &Numbers,
        next: &mut dyn trace::Sink,
    ) -> Option<i64> {
        let producer = Producer {
            collector: (&*event.collector).into(),
            host: (&*event.host).into(),
            pid: numbers.pid,
            interval_ms: numbers.interval_ms,
            distributed: event.distributed.clone(),
        };
        if let Some((last, process)) = &self.last
            && *last == producer
        {
            return Some(*process);
        }
        let is_new = !self.processes.contains_key(&producer);
        if is_new && (self.processes.len() >= MOST || producer.length() > LONGEST_NAMES) {
            return None;
        }
        let producer = producer.into_owned();
        let process = match self.processes.get(&producer) {
            Some(process) => *process,
            None => {
                let process = self.number(numbers.pid);
                announce(line, process, &producer, next);
                self.processes.insert(producer.clone(), process);
                process
            }
        };
        self.last = Some((producer, process));
        Some(process)
    }

    /// A number that no other process of the trace has: the pid if it is free.
    fn number(&mut self, pid: i64) -> i64 {
        if (1..NO_PID).contains(&pid) && self.taken.insert(pid) {
            return pid;
        }
        self.further += 1;
        NO_PID + self.further - 1
    }

    fn counters(
        &self,
        line: u64,
        timestamp: Timestamp,
        process: i64,
        numbers: &Numbers,
        next: &mut dyn trace::Sink,
    ) {
        let Numbers { allocated, reserved, active, inactive, change, used, free, total, .. } =
            *numbers;
        let allocator = [
            ("allocated", Some(allocated)),
            ("reserved", Some(reserved)),
            ("active", active),
            ("inactive", inactive),
        ];
        let counters: [Counter<'_>; 4] = [
            ("allocator", &allocator),
            ("allocator change", &[("change", Some(change))]),
            ("memory", &[("used", Some(used)), ("free", free)]),
            ("memory total", &[("total", total)]),
        ];
        let device = device_name(numbers.device);
        for (name, series) in counters {
            let told = series
                .iter()
                .filter_map(|(series, value)| Some(((*series).into(), Value::Integer((*value)?))));
            let values: Metadata<'_> = told.collect();
            if values.is_empty() {
                continue;
            }
            let (name, unit, number) = match self.units {
                Units::Apart => (format!("{device} {name}"), Some(BYTES.into()), numbers.device),
                Units::InName => (format!("{device} {name} [{BYTES}]"), None, -1),
            };
            let counter = CounterEvent {
                timestamp,
                track: Track { process: Id::Number(process), row: Id::None },
                device: Some(number).filter(|number| *number >= 0),
                category: None,
                name: name.into(),
                values,
                unit,
            };
            next.record(line, &Record::Counter(counter));
        }
    }
}

impl Producer<'_> {
    /// Bytes of its texts.
    fn length(&self) -> usize {
        let job = self.distributed.as_ref().and_then(|process| process.job_id.as_deref());
        self.collector.len() + self.host.len() + job.map_or(0, str::len)
    }

    fn into_owned(self) -> Producer<'static> {
        Producer {
            collector: self.collector.into_owned().into(),
            host: self.host.into_owned().into(),
            distributed: self.distributed.map(Distributed::into_owned),
            ..self
        }
    }
}

/// Names a process of the trace.
fn announce(line: u64, process: i64, producer: &Producer<'_>, next: &mut dyn trace::Sink) {
    let Producer { collector, host, pid, interval_ms, distributed } = producer;
    let mut labels = vec![format!("host {host}"), format!("pid {pid}")];
    labels.push(format!("every {interval_ms} ms"));
    if let Some(Distributed { job_id, rank, local_rank, world_size }) = distributed {
        labels.extend(job_id.as_ref().map(|job| format!("job {job}")));
        labels.push(format!("rank {rank} of {world_size}"));
        labels.push(format!("local rank {local_rank}"));
    }
    let mut say = |row, says| {
        let track = Track { process: Id::Number(process), row };
        next.record(line, &Record::Label(Label { timestamp: None, track, says }));
    };
    say(Id::None, Labelled::ProcessName((&**collector).into()));
    say(Id::None, Labelled::ProcessLabels(labels.join(", ").into()));
    say(Id::Number(process), Labelled::ThreadName("memory events".into()));
}

fn instant<'e>(
    event: &'e TelemetryEvent<'_>,
    numbers: &Numbers,
    timestamp: Timestamp,
    process: i64,
    is_out_of_memory: bool,
) -> TraceEvent<'e> {
    let mut metadata = Metadata::new();
    if is_out_of_memory {
        metadata.push(("event type".into(), Value::Text((&*event.event_type).into())));
    }
    metadata.push(("device id".into(), Value::Integer(numbers.device)));
    if let Some(context) = &event.context {
        metadata.push(("context".into(), Value::Text((&**context).into())));
    }
    if !event.metadata.is_empty() {
        let mut json = vec![];
        event.metadata.write(&mut json);
        let json = String::from_utf8_lossy(&json).into_owned();
        metadata.push(("metadata".into(), Value::Json(json.into())));
    }
    let (category, name, across) = match is_out_of_memory {
        true => ("out_of_memory", "out of memory", "p"),
        false => ("memory_event", &*event.event_type, "t"),
    };
    TraceEvent {
        event_type: EventType::Marker,
        category: Some(category.into()),
        name: name.into(),
        timestamp,
        track: Track { process: Id::Number(process), row: Id::Number(process) },
        device: Some(numbers.device).filter(|device| *device >= 0),
        thread: Some(process),
        resource: Some(process),
        metadata,
        // Chrome's scope of an instant: its row, or the whole process.
        extra: vec![("s".into(), Value::Text(across.into()))],
        ..TraceEvent::default()
    }
}

fn device_name(device: i64) -> String {
    match device {
        -1 => "host or unknown device".to_owned(),
        device => format!("GPU {device}"),
    }
}
