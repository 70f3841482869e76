//! Processes, threads, streams, lanes and counters: each a track with a number and a descriptor.

use foldhash::fast::RandomState;

use super::{packets, wire};
use crate::trace::lanes::Lanes;
use crate::trace::{Id, Labelled, Track};

type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

/// `SIBLING_MERGE_BEHAVIOR_NONE`: tracks of one name stay apart.
const APART: u64 = 2;

/// A thread or a stream, with its lanes.
#[derive(Debug)]
pub(super) struct Row {
    track: Track<'static>,
    /// Whether it is a thread of a process of the host.
    is_thread: bool,
    process: usize,
    number: u64,
    announced: bool,
    /// How many labels its descriptor knew.
    heard: u64,
    pub(super) lanes: Lanes,
    /// Numbers of the lanes behind the first, and whether they have been announced.
    lane_numbers: Vec<u64>,
    /// The track of ranges whose beginning and end are events of their own.
    ranges: Option<u64>,
}

#[derive(Debug)]
struct Process {
    id: Id<'static>,
    is_host: bool,
    number: u64,
    announced: bool,
    /// How many labels its descriptor knew.
    heard: u64,
}

/// What labels say of a process or of a row.
#[derive(Debug, Default)]
struct Words {
    name: Option<String>,
    labels: Option<String>,
    order: Option<i64>,
    /// How many labels have said something.
    said: u64,
}

/// The rows of a track: it may stand for a thread and, elsewhere in the trace, for a stream.
#[derive(Debug, Default, Clone, Copy)]
struct Places {
    thread: Option<usize>,
    stream: Option<usize>,
}

impl Places {
    fn of(&mut self, is_thread: bool) -> &mut Option<usize> {
        if is_thread { &mut self.thread } else { &mut self.stream }
    }
}

/// All tracks of a trace.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    last: u64,
    processes: Vec<Process>,
    process_places: HashMap<(Id<'static>, bool), usize>,
    pub(super) rows: Vec<Row>,
    row_places: HashMap<Track<'static>, Places>,
    process_words: HashMap<Id<'static>, Words>,
    row_words: HashMap<Track<'static>, Words>,
    counters: HashMap<(usize, String), u64>,
}

impl Tracks {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn places(&self, track: &Track<'_>) -> Places {
        // The map is shared, so that it may be asked with a key of a shorter life.
        let places: &HashMap<Track<'_>, Places> = &self.row_places;
        places.get(track).copied().unwrap_or_default()
    }

    /// The place of the row of a track.
    pub(super) fn row(&mut self, track: &Track<'_>, is_thread: bool) -> usize {
        let known = *self.places(track).of(is_thread);
        known.unwrap_or_else(|| self.new_row(track, is_thread))
    }

    /// The place of the row to which an arrow on that track is fastened: the thread's, unless only a
    /// stream is known there.
    pub(super) fn row_of_arrow(&mut self, track: &Track<'_>) -> usize {
        let Places { thread, stream } = self.places(track);
        let is_positive = track.row.number().is_some_and(|row| row > 0);
        thread.or(stream).unwrap_or_else(|| self.new_row(track, is_positive))
    }

    fn new_row(&mut self, track: &Track<'_>, is_thread: bool) -> usize {
        let track = track.clone().into_owned();
        let process = self.process(&track.process, is_thread);
        let (number, place) = (self.next(), self.rows.len());
        self.rows.push(Row {
            track: track.clone(),
            is_thread,
            process,
            number,
            announced: false,
            heard: 0,
            lanes: Lanes::default(),
            lane_numbers: vec![],
            ranges: None,
        });
        *self.row_places.entry(track).or_default().of(is_thread) = Some(place);
        place
    }

    /// Whether a process of the host has that id.
    pub(super) fn is_host(&self, process: &Id<'_>) -> bool {
        let places: &HashMap<(Id<'_>, bool), usize> = &self.process_places;
        places.contains_key(&(process.clone(), true))
    }

    fn process(&mut self, id: &Id<'_>, is_host: bool) -> usize {
        let key = (id.clone().into_owned(), is_host);
        if let Some(place) = self.process_places.get(&key) {
            return *place;
        }
        let (number, place) = (self.next(), self.processes.len());
        let id = key.0.clone();
        self.processes.push(Process { id, is_host, number, announced: false, heard: 0 });
        self.process_places.insert(key, place);
        place
    }

    /// Keeps what a label says, as far as a track can hold it.
    pub(super) fn label(&mut self, track: &Track<'_>, says: &Labelled<'_>) {
        let process = || track.process.clone().into_owned();
        let row = || track.clone().into_owned();
        match says {
            Labelled::ProcessName(name) => {
                let words = self.process_words.entry(process()).or_default();
                (words.name, words.said) = (Some(name.to_string()), words.said + 1);
            }
            Labelled::ProcessLabels(labels) => {
                let words = self.process_words.entry(process()).or_default();
                (words.labels, words.said) = (Some(labels.to_string()), words.said + 1);
            }
            Labelled::ProcessSortIndex(order) => {
                let words = self.process_words.entry(process()).or_default();
                (words.order, words.said) = (Some(*order), words.said + 1);
            }
            Labelled::ThreadName(name) => {
                let words = self.row_words.entry(row()).or_default();
                (words.name, words.said) = (Some(name.to_string()), words.said + 1);
            }
            Labelled::ThreadSortIndex(order) => {
                let words = self.row_words.entry(row()).or_default();
                (words.order, words.said) = (Some(*order), words.said + 1);
            }
            Labelled::Other { .. } => {}
        }
    }

    /// The number of the row's own track, which has a descriptor when this returns.
    pub(super) fn announced(&mut self, place: usize, out: &mut Vec<u8>) -> u64 {
        let Some(row) = self.rows.get_mut(place) else { return 0 };
        let (process, number) = (row.process, row.number);
        if !std::mem::replace(&mut row.announced, true) {
            self.announce_process(process, out);
            self.describe_row(place, out);
        }
        number
    }

    /// The number of the track of one of a row's lanes, which has a descriptor when this returns.
    pub(super) fn lane(&mut self, place: usize, lane: usize, out: &mut Vec<u8>) -> u64 {
        let parent = self.announced(place, out);
        let Some(behind_first) = lane.checked_sub(1) else { return parent };
        let known = |tracks: &Self| tracks.rows.get(place)?.lane_numbers.get(behind_first).copied();
        if let Some(number) = known(self) {
            return number;
        }
        let number = self.next();
        let name = format!("{} (lane {})", self.row_name(place), lane + 1);
        self.child(number, parent, &name, out);
        if let Some(row) = self.rows.get_mut(place) {
            row.lane_numbers.push(number);
        }
        number
    }

    /// The number of the track of a row's ranges, which has a descriptor when this returns.
    pub(super) fn ranges(&mut self, place: usize, out: &mut Vec<u8>) -> u64 {
        if let Some(number) = self.rows.get(place).and_then(|row| row.ranges) {
            return number;
        }
        let parent = self.announced(place, out);
        let number = self.next();
        let name = format!("{} (ranges)", self.row_name(place));
        self.child(number, parent, &name, out);
        if let Some(row) = self.rows.get_mut(place) {
            row.ranges = Some(number);
        }
        number
    }

    /// The number of a counter's track, which has a descriptor when this returns.
    pub(super) fn counter(
        &mut self,
        process: &Id<'_>,
        is_host: bool,
        name: &str,
        unit: Option<&str>,
        out: &mut Vec<u8>,
    ) -> u64 {
        let place = self.process(process, is_host);
        let key = (place, name.to_owned());
        if let Some(number) = self.counters.get(&key) {
            return *number;
        }
        self.announce_process(place, out);
        let parent = self.processes.get(place).map_or(0, |process| process.number);
        let number = self.next();
        let body = track(number, Some(parent), name, |body| {
            wire::message(body, 8, |counter| match unit {
                Some("ns") => wire::unsigned(counter, 3, 1),
                Some("By") => wire::unsigned(counter, 3, 3),
                Some(unit) => wire::text(counter, 6, unit),
                None => {}
            });
        });
        packets::descriptor(out, &body);
        self.counters.insert(key, number);
        number
    }

    /// Writes again the descriptors of those tracks of which labels came later. Perfetto takes the
    /// names of processes and threads from them; a stream keeps the name that it had.
    pub(super) fn describe_again(&mut self, out: &mut Vec<u8>) {
        for place in 0..self.processes.len() {
            let process = self.processes.get(place).filter(|process| process.announced);
            if process.is_some_and(|process| self.said_of_process(process) > process.heard) {
                self.describe_process(place, out);
            }
        }
        for place in 0..self.rows.len() {
            let row = self.rows.get(place).filter(|row| row.announced);
            if row.is_some_and(|row| self.said_of_row(row) > row.heard) {
                self.describe_row(place, out);
            }
        }
    }

    fn said_of_process(&self, process: &Process) -> u64 {
        self.process_words.get(&process.id).map_or(0, |words| words.said)
    }

    fn said_of_row(&self, row: &Row) -> u64 {
        self.row_words.get(&row.track).map_or(0, |words| words.said)
    }

    fn announce_process(&mut self, place: usize, out: &mut Vec<u8>) {
        let Some(process) = self.processes.get_mut(place) else { return };
        if !std::mem::replace(&mut process.announced, true) {
            self.describe_process(place, out);
        }
    }

    fn describe_process(&mut self, place: usize, out: &mut Vec<u8>) {
        let Some(process) = self.processes.get(place) else { return };
        let heard = self.said_of_process(process);
        let none = Words::default();
        let words = self.process_words.get(&process.id).unwrap_or(&none);
        let body = match positive(&process.id).filter(|_| process.is_host) {
            Some(pid) => track(process.number, None, "", |body| {
                wire::message(body, 3, |descriptor| {
                    wire::unsigned(descriptor, 1, pid);
                    if let Some(name) = &words.name {
                        wire::text(descriptor, 6, name);
                    }
                    if let Some(labels) = &words.labels {
                        wire::text(descriptor, 8, labels);
                    }
                });
                order(body, words.order);
            }),
            None => {
                let said = [&words.name, &words.labels].into_iter().flatten();
                let said = said.map(String::as_str).filter(|word| !word.is_empty());
                let said = said.collect::<Vec<_>>().join(" ");
                let name = match (said.is_empty(), &process.id) {
                    (false, _) => said,
                    (true, Id::Number(device)) => format!("device {device}"),
                    (true, Id::Text(text)) => text.to_string(),
                    (true, Id::None) => "trace".to_owned(),
                };
                track(process.number, None, &name, |body| order(body, words.order))
            }
        };
        packets::descriptor(out, &body);
        if let Some(process) = self.processes.get_mut(place) {
            process.heard = heard;
        }
    }

    fn describe_row(&mut self, place: usize, out: &mut Vec<u8>) {
        let Some(row) = self.rows.get(place) else { return };
        let heard = self.said_of_row(row);
        let parent = self.processes.get(row.process).map_or(0, |process| process.number);
        let words = self.row_words.get(&row.track);
        let sort = words.and_then(|words| words.order);
        let ids = positive(&row.track.process).zip(positive(&row.track.row));
        let body = match ids.filter(|_| row.is_thread) {
            Some((pid, tid)) => track(row.number, Some(parent), "", |body| {
                wire::message(body, 4, |descriptor| {
                    wire::unsigned(descriptor, 1, pid);
                    wire::unsigned(descriptor, 2, tid);
                    if let Some(name) = words.and_then(|words| words.name.as_ref()) {
                        wire::text(descriptor, 5, name);
                    }
                });
                order(body, sort);
            }),
            None => {
                track(row.number, Some(parent), &self.row_name(place), |body| order(body, sort))
            }
        };
        packets::descriptor(out, &body);
        if let Some(row) = self.rows.get_mut(place) {
            row.heard = heard;
        }
    }

    fn row_name(&self, place: usize) -> String {
        let Some(row) = self.rows.get(place) else { return String::new() };
        match self.row_words.get(&row.track).and_then(|words| words.name.clone()) {
            Some(name) => name,
            None if row.is_thread => format!("thread {}", row.track.row),
            None => match &row.track.row {
                Id::Number(stream) => format!("stream {stream}"),
                Id::Text(text) => text.to_string(),
                Id::None => "process".to_owned(),
            },
        }
    }

    fn child(&self, number: u64, parent: u64, name: &str, out: &mut Vec<u8>) {
        let body = track(number, Some(parent), name, |_| ());
        packets::descriptor(out, &body);
    }
}

/// An id that Perfetto takes for a process or a thread: 0 is its idle task.
fn positive(id: &Id<'_>) -> Option<u64> {
    let number = i32::try_from(id.number()?).ok().filter(|number| *number > 0)?;
    u64::try_from(number).ok()
}

/// The body of a `TrackDescriptor`.
fn track(number: u64, parent: Option<u64>, name: &str, rest: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = vec![];
    wire::unsigned(&mut body, 1, number);
    if let Some(parent) = parent {
        wire::unsigned(&mut body, 5, parent);
    }
    if !name.is_empty() {
        wire::text(&mut body, 2, name);
        wire::unsigned(&mut body, 15, APART);
    }
    rest(&mut body);
    body
}

fn order(body: &mut Vec<u8>, order: Option<i64>) {
    if let Some(order) = order.and_then(|order| i32::try_from(order).ok()) {
        wire::signed(body, 12, order.into());
    }
}
