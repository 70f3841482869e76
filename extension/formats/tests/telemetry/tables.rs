//! Events go through a table and come back as the same events.

use std::io::Cursor;

use bytes::Bytes;
use proptest::prelude::*;
use warpgauge_formats::loss::Losses;
use warpgauge_formats::tables::{Files, Table, Tables, Writer, read_telemetry};
use warpgauge_formats::telemetry::{Fault, Options, Place, Sink, TelemetryEvent};

use crate::records::version_2;

struct Memory;

impl Files for Memory {
    type File = Cursor<Vec<u8>>;

    fn create(&mut self, _: Table) -> std::io::Result<Self::File> {
        Ok(Cursor::default())
    }
}

struct Stored(Option<Bytes>);

impl Tables for Stored {
    type File = Bytes;

    fn open(&mut self, table: Table) -> std::io::Result<Option<Bytes>> {
        Ok(self.0.clone().filter(|_| table == Table::Telemetry))
    }
}

#[derive(Default)]
struct Collected(Vec<Result<TelemetryEvent<'static>, String>>);

impl Sink for Collected {
    fn event(&mut self, _: Place, event: &TelemetryEvent<'_>) {
        self.0.push(Ok(event.clone().into_owned()));
    }

    fn refused(&mut self, place: Place, fault: Fault) {
        self.0.push(Err(format!("{place}: {fault}")));
    }
}

fn through_a_table(events: &[TelemetryEvent<'_>]) -> (Collected, Losses) {
    let (mut writer, mut losses) = (Writer::new(Memory), Losses::default());
    for event in events {
        writer.write_telemetry(event, &mut losses).unwrap();
    }
    let files = writer.finish().unwrap();
    let mut tables = Stored(files.into_iter().next().map(|(_, file)| file.into_inner().into()));
    let mut collected = Collected::default();
    read_telemetry(&mut tables, &mut collected).unwrap();
    (collected, losses)
}

proptest! {
    #[test]
    fn a_table_holds_all_that_an_event_says(
        records in prop::collection::vec((version_2(), prop::option::of(0..5_i64)), 0..6),
    ) {
        let options = Options { accept_distributed: true, ..Options::default() };
        let texts: Vec<String> = records
            .into_iter()
            .map(|(mut record, rank)| {
                if let Some(rank) = rank {
                    record.insert("rank".to_owned(), rank.into());
                    record.insert("local_rank".to_owned(), 0.into());
                    record.insert("world_size".to_owned(), 5.into());
                }
                serde_json::Value::Object(record).to_string()
            })
            .collect();
        let events: Vec<_> = texts
            .iter()
            .filter_map(|text| TelemetryEvent::from_json(text, &options).ok())
            .collect();
        let (read, losses) = through_a_table(&events);
        prop_assert!(losses.is_empty());
        let read: Result<Vec<_>, _> = read.0.into_iter().collect();
        prop_assert_eq!(read, Ok(events));
    }
}

#[test]
fn an_event_beyond_64_bits_is_lost_by_name_and_the_others_stand() {
    let text = |pid: &str| format!(r#"{{"timestamp":1,"pid":{pid}}}"#);
    let texts = [text("7"), text("9223372036854775808"), text("8")];
    let options = Options::default();
    let events: Vec<_> =
        texts.iter().map(|text| TelemetryEvent::from_json(text, &options).unwrap()).collect();
    let (read, losses) = through_a_table(&events);
    let pids: Vec<_> = read.0.into_iter().map(|event| event.unwrap().pid).collect();
    assert_eq!(pids, [7, 8]);
    assert_eq!(losses.iter().collect::<Vec<_>>(), [("event with a number beyond 64 bits", 1)]);
}
