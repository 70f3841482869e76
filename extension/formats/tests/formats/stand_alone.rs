//! Each file of a session stands alone: an id is explained before it is used, also after a rotation.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::Value;
use warpgauge_formats::gpu_flight::{Channel, Channels, Columnar, Details};

use crate::collect::gpu_flight;
use crate::model::events;

/// The files of each channel, the last of which is being written.
struct Files([Vec<Vec<u8>>; 3]);

impl Channels for Files {
    fn write(&mut self, channel: Channel, lines: &[u8]) {
        assert!(lines.ends_with(b"\n"), "whole lines");
        self.0[channel as usize].last_mut().unwrap().extend_from_slice(lines);
    }
}

/// The columns that hold ids, with their dictionaries.
const IDS: [(&str, &str); 6] = [
    ("kernel_id", "kernel_dict"),
    ("name_id", "scope_name_dict"),
    ("function_id", "function_dict"),
    ("metric_id", "metric_dict"),
    ("scope_name_id", "scope_name_dict"),
    ("source_file_id", "source_file_dict"),
];

/// Goes through a file without our reader, and finds an id that no line before its own explains.
fn unexplained(file: &[u8]) -> Option<String> {
    let mut known = HashSet::new();
    for line in std::str::from_utf8(file).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let session = line["session_id"].as_str().unwrap().to_owned();
        for (_, dictionary) in IDS {
            let ids = line
                .get(dictionary)
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(|ids| ids.keys());
            known.extend(ids.map(|id| (session.clone(), dictionary, id.parse::<i64>().unwrap())));
        }
        let Some(columns) = line.get("columns").and_then(Value::as_array) else { continue };
        for (place, column) in columns.iter().enumerate() {
            let Some((_, dictionary)) = IDS.iter().find(|(name, _)| column == name) else {
                continue;
            };
            for row in line["rows"].as_array().unwrap() {
                let id = row[place].as_i64().unwrap();
                if id != 0 && !known.contains(&(session.clone(), *dictionary, id)) {
                    return Some(format!("{column} {id} in {line}"));
                }
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_id_is_explained_before_it_is_used_in_every_file_of_every_channel(
        events in events(), interruptions in prop::collection::vec(0..12_usize, 0..60),
    ) {
        let mut files = Files([vec![vec![]], vec![vec![]], vec![vec![]]]);
        let mut writer = Columnar::new(Details::First);
        let mut interruptions = interruptions.into_iter();
        for event in &events {
            writer.write(event, &mut files);
            match interruptions.next() {
                Some(0) => writer.flush(&mut files),
                Some(place @ 1..4) => {
                    let channel = Channel::ALL[place - 1];
                    files.0[channel as usize].push(vec![]);
                    writer.rotated(channel);
                }
                _ => {}
            }
        }
        writer.flush(&mut files);
        for file in files.0.iter().flatten() {
            prop_assert_eq!(unexplained(file), None);
            prop_assert_eq!(gpu_flight([file.as_slice()]).said(), [""; 0]);
        }
    }
}
