//! A reader of Perfetto's packets that is not the writer's, and what a trace processor makes of them.

use std::collections::{BTreeMap, HashMap};

/// One field of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// The fields of a message, by their numbers.
pub(crate) fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = vec![];
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (eight, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(eight.try_into().unwrap()))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (message, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(message)
            }
            kind => panic!("wire type {kind}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn number(fields: &[(u64, Field<'_>)], wanted: u64) -> Option<u64> {
    fields.iter().find_map(|(field, value)| match value {
        Field::Number(number) if *field == wanted => Some(*number),
        _ => None,
    })
}

fn message<'a>(fields: &[(u64, Field<'a>)], wanted: u64) -> Option<&'a [u8]> {
    fields.iter().find_map(|(field, value)| match value {
        Field::Bytes(bytes) if *field == wanted => Some(*bytes),
        _ => None,
    })
}

fn text(fields: &[(u64, Field<'_>)], wanted: u64) -> Option<String> {
    message(fields, wanted).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

/// A slice as it is drawn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Drawn {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: String,
    /// The arrows that start or pass here, and those that end here.
    pub(crate) flows: (Vec<u64>, Vec<u64>),
    /// The track's name; empty for a thread's own.
    pub(crate) track: String,
}

/// A counter's unit, and its values by their times.
pub(crate) type Counter = (Option<String>, Vec<(u64, i64)>);

/// A trace as it is drawn.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) slices: Vec<Drawn>,
    /// By name; a unit that is one of the format's own is `#` and its number.
    pub(crate) counters: BTreeMap<String, Counter>,
    /// Pid and name of each process, pid and tid and name of each thread.
    pub(crate) processes: Vec<(u64, Option<String>)>,
    pub(crate) threads: Vec<(u64, u64, Option<String>)>,
    /// What is said of the trace as a whole: names and JSON.
    pub(crate) words: Vec<(String, String)>,
}

/// Reads packets as a trace processor does: descriptors and numbers of texts first, then events in
/// the order of their times, those of one time in the order of the file.
pub(crate) fn draw(packets: &[u8]) -> Trace {
    let mut trace = Trace::default();
    let (mut names, mut tracks) = (HashMap::new(), HashMap::new());
    let mut events = vec![];
    for (field, packet) in fields(packets) {
        let Field::Bytes(packet) = packet else { panic!("a number among packets") };
        assert_eq!(field, 1, "packets and nothing else");
        let packet = fields(packet);
        assert_eq!(number(&packet, 10), Some(1), "of one sequence");
        if let Some(interned) = message(&packet, 12) {
            for (list, entry) in fields(interned) {
                let Field::Bytes(entry) = entry else { panic!("a number") };
                let entry = fields(entry);
                let known = names.insert((list, number(&entry, 1).unwrap()), text(&entry, 2));
                assert_eq!(known, None, "a number is given once");
            }
        }
        if let Some(bundle) = message(&packet, 5) {
            let metadata = fields(message(&fields(bundle), 2).unwrap());
            trace.words.push((text(&metadata, 1).unwrap(), text(&metadata, 5).unwrap()));
        }
        if let Some(descriptor) = message(&packet, 60) {
            let descriptor = fields(descriptor);
            let track = number(&descriptor, 1).unwrap();
            if let Some(parent) = number(&descriptor, 5) {
                assert!(tracks.contains_key(&parent), "a parent comes first");
            }
            if let Some(process) = message(&descriptor, 3) {
                let process = fields(process);
                trace.processes.push((number(&process, 1).unwrap(), text(&process, 6)));
            }
            if let Some(thread) = message(&descriptor, 4) {
                let thread = fields(thread);
                let ids = (number(&thread, 1).unwrap(), number(&thread, 2).unwrap());
                trace.threads.push((ids.0, ids.1, text(&thread, 5)));
            }
            let name = text(&descriptor, 2).unwrap_or_default();
            if let Some(counter) = message(&descriptor, 8) {
                let counter = fields(counter);
                let unit = number(&counter, 3).map(|unit| format!("#{unit}"));
                let unit = text(&counter, 6).or(unit);
                trace.counters.insert(name.clone(), (unit, vec![]));
            }
            tracks.insert(track, name);
        }
        if let Some(event) = message(&packet, 11) {
            let event = fields(event);
            if let Some(name) = number(&event, 10) {
                assert!(names.contains_key(&(2, name)), "a number is explained before it is used");
            }
            assert!(tracks.contains_key(&number(&event, 11).unwrap()), "so is a track");
            events.push((number(&packet, 8).unwrap(), event));
        }
    }
    events.sort_by_key(|(time, _)| *time);
    let mut open = HashMap::<u64, Vec<Drawn>>::new();
    for (time, event) in events {
        let track = number(&event, 11).unwrap();
        let numbers = |wanted: u64| {
            let found = event.iter().filter_map(|(field, value)| match value {
                Field::Number(number) if *field == wanted => Some(*number),
                _ => None,
            });
            found.collect()
        };
        let drawn = || Drawn {
            start: time,
            end: time,
            name: names[&(2, number(&event, 10).unwrap())].clone().unwrap(),
            flows: (numbers(47), numbers(48)),
            track: tracks[&track].clone(),
        };
        match number(&event, 9).unwrap() {
            1 => open.entry(track).or_default().push(drawn()),
            2 => {
                assert_eq!(number(&event, 10), None, "an end with a name ends only its like");
                let slice = open.get_mut(&track).and_then(Vec::pop).expect("something is open");
                trace.slices.push(Drawn { end: time, ..slice });
            }
            3 => trace.slices.push(drawn()),
            4 => {
                let value = number(&event, 30).unwrap().cast_signed();
                trace.counters.get_mut(&tracks[&track]).unwrap().1.push((time, value));
            }
            kind => panic!("event type {kind}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends");
    trace.slices.sort();
    trace
}
