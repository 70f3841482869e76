//! The processes of a timeline: one for each session, and one for each of its devices.

use std::collections::{HashMap, HashSet};

use crate::event::{Source, Text};
use crate::trace::{Id, Label, Labelled, Record, Sink, Track};

/// Linux gives no process a number from here on (`PID_MAX_LIMIT`, 2^22). Processes whose own number
/// another has already count from here.
const NO_PID: i64 = 1 << 22;
/// Kineto draws devices below all processes of the host.
const DEVICES_LAST: i64 = 5_000_000;

/// Most sessions that are processes of their own, most bytes of the texts that name one, and most
/// devices of each. What goes beyond is drawn in one process, or on one device, together.
const MOST: usize = 4_096;
const LONGEST_NAMES: usize = 4_096;
const MOST_DEVICES: usize = 256;

/// The place of a session among all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place(usize);

impl Place {
    /// A number for an arrow within the trace: correlation ids count within a session.
    pub(super) fn arrow(self, correlation: i64) -> i64 {
        let session = i64::try_from(self.0).unwrap_or(i64::MAX);
        correlation ^ session.wrapping_shl(40)
    }
}

#[derive(Debug)]
struct Process {
    name: String,
    process: i64,
    /// Devices by their ordinal; none where the log does not tell the device.
    devices: HashMap<Option<i64>, i64>,
    /// Devices whose name and bus have been told.
    told: HashSet<i64>,
}

/// All processes.
#[derive(Debug, Default)]
pub(super) struct Processes {
    sources: HashMap<Source<'static>, Place>,
    /// The source of the last event, which is mostly that of the next.
    last: Option<(Source<'static>, Place)>,
    processes: Vec<Process>,
    taken: HashSet<i64>,
    /// How many numbers behind [`NO_PID`] have been given.
    further: i64,
}

impl Processes {
    /// The place of an event's source; one that is new is given its name in the trace.
    pub(super) fn source(&mut self, source: &Source<'_>, line: u64, next: &mut dyn Sink) -> Place {
        if let Some((last, place)) = &self.last
            && last == source
        {
            return *place;
        }
        let texts = [&source.session, &source.app].into_iter().flatten();
        let is_long = texts.map(|text| text.len()).sum::<usize>() > LONGEST_NAMES;
        let is_beyond = self.sources.len() >= MOST && !self.sources.contains_key(source);
        let source = match is_long || is_beyond {
            true => Source { app: Some("further sessions".into()), ..Source::default() },
            false => source.clone().into_owned(),
        };
        let place = match self.sources.get(&source) {
            Some(place) => *place,
            None => {
                let place = self.announce(&source, line, next);
                self.sources.insert(source.clone(), place);
                place
            }
        };
        self.last = Some((source, place));
        place
    }

    fn announce(&mut self, source: &Source<'_>, line: u64, next: &mut dyn Sink) -> Place {
        let Source { session, pid, app } = source;
        let place = Place(self.processes.len());
        let name = app.as_deref().or(session.as_deref()).unwrap_or("process").to_owned();
        let process = self.take(pid.filter(|pid| (1..NO_PID).contains(pid)));
        let mut labels = vec![];
        if let Some(session) = session {
            labels.push(format!("session {session}"));
        }
        if let Some(pid) = pid.filter(|pid| *pid != process) {
            labels.push(format!("pid {pid}"));
        }
        let order = i64::try_from(place.0).unwrap_or(i64::MAX);
        let mut say = |row, says| {
            let track = Track { process: Id::Number(process), row };
            next.record(line, &Record::Label(Label { timestamp: None, track, says }));
        };
        say(Id::None, Labelled::ProcessName(Text::Borrowed(&name)));
        if !labels.is_empty() {
            say(Id::None, Labelled::ProcessLabels(labels.join(", ").into()));
        }
        say(Id::None, Labelled::ProcessSortIndex(order));
        say(Id::Number(process), Labelled::ThreadName("scopes and calls".into()));
        self.processes.push(Process {
            name,
            process,
            devices: HashMap::new(),
            told: HashSet::new(),
        });
        place
    }

    /// A number that no other process has: that one if it is free.
    fn take(&mut self, wanted: Option<i64>) -> i64 {
        let number = wanted.filter(|number| !self.taken.contains(number)).unwrap_or_else(|| {
            self.further += 1;
            NO_PID + self.further
        });
        self.taken.insert(number);
        number
    }

    /// The row of a session's scopes and calls. A log does not tell their threads; the row bears the
    /// number of the process, as its first thread does.
    pub(super) fn host(&self, place: Place) -> (Track<'static>, Option<i64>) {
        let process = self.processes.get(place.0).map(|process| process.process);
        let id = process.map_or(Id::None, Id::Number);
        (Track { process: id.clone(), row: id }, process)
    }

    /// Whether this is the first time that a device's name and bus are told.
    pub(super) fn is_first_told(&mut self, place: Place, device: i64) -> bool {
        self.processes
            .get_mut(place.0)
            .is_some_and(|process| process.told.len() < MOST_DEVICES && process.told.insert(device))
    }

    /// The number under which a session's device is drawn; one that is new is given its name.
    pub(super) fn device(
        &mut self,
        place: Place,
        device: Option<i64>,
        line: u64,
        next: &mut dyn Sink,
    ) -> Id<'static> {
        let is_beyond = |process: &Process| {
            process.devices.len() >= MOST_DEVICES && !process.devices.contains_key(&device)
        };
        let device = device.filter(|_| !self.processes.get(place.0).is_some_and(is_beyond));
        let known = |process: &Process| process.devices.get(&device).copied();
        if let Some(number) = self.processes.get(place.0).and_then(known) {
            return Id::Number(number);
        }
        let number = self.take(device.filter(|device| (0..NO_PID).contains(device)));
        let Some(process) = self.processes.get_mut(place.0) else { return Id::None };
        process.devices.insert(device, number);
        let labels = device.map_or("GPU".into(), |device| format!("GPU {device}"));
        let order = DEVICES_LAST.saturating_add(device.unwrap_or_default());
        let sayings = [
            Labelled::ProcessName(Text::Borrowed(&process.name)),
            Labelled::ProcessLabels(labels.into()),
            Labelled::ProcessSortIndex(order),
        ];
        for says in sayings {
            let track = Track { process: Id::Number(number), row: Id::None };
            next.record(line, &Record::Label(Label { timestamp: None, track, says }));
        }
        Id::Number(number)
    }
}
