//! Whatever a trace holds: no panic; the same in any chunks; what Kineto's writer writes of it tells
//! the same again; and of what the Perfetto writer writes every packet can be read and every slice
//! ends.
#![no_main]

use std::collections::HashMap;
use std::io::Read;

use libfuzzer_sys::fuzz_target;
use warpgauge_formats::finding::Finding;
use warpgauge_formats::trace::{EventType, Record, Sink};
use warpgauge_formats::{kineto, perfetto};

#[derive(Default)]
struct Collected {
    records: Vec<(u64, Record<'static>)>,
    said: Vec<String>,
}

impl Sink for Collected {
    fn record(&mut self, line: u64, record: &Record<'_>) {
        self.records.push((line, record.clone().into_owned()));
    }

    fn finding(&mut self, finding: Finding) {
        self.said.push(finding.to_string());
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.said.push(format!("line {line}: unknown {name}"));
    }
}

/// A few bytes at once.
struct Bits<'t>(&'t [u8]);

impl Read for Bits<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = into.len().min(3);
        self.0.read(&mut into[..count])
    }
}

fn read(trace: impl Read) -> (Collected, Option<String>) {
    let mut collected = Collected::default();
    let result = kineto::read(trace, &mut collected);
    (collected, result.err().map(|error| error.to_string()))
}

/// What the events say, and what is said of the trace, each in its order.
fn parted(collected: Collected) -> (Vec<Record<'static>>, Vec<Record<'static>>) {
    let records = collected.records.into_iter().map(|(_, record)| record);
    records.partition(|it| !matches!(it, Record::Document { .. } | Record::BaseTime(_)))
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a number that ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return value;
        }
    }
    panic!("a number of more than ten bytes");
}

/// The messages and the numbers of a message, by their fields.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8], u64)> {
    let mut fields = vec![];
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let (message, number) = match key & 7 {
            0 => (&[][..], varint(&mut bytes)),
            1 => (bytes.split_off(..8).expect("eight bytes"), 0),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                (bytes.split_off(..length).expect("as many bytes as announced"), 0)
            }
            kind => panic!("wire type {kind}"),
        };
        fields.push((key >> 3, message, number));
    }
    fields
}

/// Reads all packets, and gives how many slices stay open.
fn open_slices(packets: &[u8]) -> u64 {
    let mut open = HashMap::<u64, u64>::new();
    for (_, packet, _) in fields(packets) {
        for (_, event, _) in fields(packet).into_iter().filter(|(field, ..)| *field == 11) {
            let event = fields(event);
            let number = |wanted| event.iter().find(|(field, ..)| *field == wanted).unwrap().2;
            let depth = open.entry(number(11)).or_default();
            match number(9) {
                1 => *depth += 1,
                2 => *depth = depth.checked_sub(1).expect("something is open"),
                _ => {}
            }
        }
    }
    open.values().sum()
}

fuzz_target!(|trace: &[u8]| {
    let (collected, error) = read(trace);
    let (bits, other_error) = read(Bits(trace));
    assert_eq!((&bits.records, bits.said, other_error), (&collected.records, collected.said.clone(), error));

    let ranges = bits.records.iter().any(|(_, record)| {
        matches!(record, Record::Event(event)
            if matches!(event.event_type, EventType::RangeStart | EventType::RangeEnd))
    });
    for window in [0, 300, perfetto::DEFAULT_WINDOW] {
        let (mut writer, mut packets) = (perfetto::Writer::with_window(window), vec![]);
        bits.records.iter().for_each(|(_, record)| writer.write(record, &mut packets));
        writer.finish(&mut packets);
        if !ranges {
            assert_eq!(open_slices(&packets), 0);
        }
    }

    let (mut writer, mut written) = (kineto::Writer::new(), vec![]);
    bits.records.iter().for_each(|(_, record)| writer.write(record, &mut written));
    writer.finish(&mut written);
    assert!(writer.losses().is_empty(), "what is read from Kineto's form fits it");
    let (again, error) = read(&*written);
    assert_eq!(error, None);
    assert_eq!(parted(again), parted(collected));
});
