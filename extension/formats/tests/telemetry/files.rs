//! Files of events in all their forms, and what is wrong with them.

use std::io::{self, Read};

use proptest::prelude::*;
use warpgauge_formats::telemetry::{
    Fault, Form, LoadError, Loaded, Options, Place, Sink, TelemetryEvent, load, load_all,
    load_records,
};

/// What a file gave, a line each: `place: event` or `place: fault`.
#[derive(Debug, Default)]
struct Said(Vec<String>);

impl Sink for Said {
    fn event(&mut self, place: Place, event: &TelemetryEvent<'_>) {
        self.0.push(format!("{place}: {}", event.timestamp_ns));
    }

    fn refused(&mut self, place: Place, fault: Fault) {
        self.0.push(format!("{place}: {fault}"));
    }
}

/// Gives a few bytes at a time.
struct Drip<'a>(&'a [u8], usize);

impl Read for Drip<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(into.len());
        (&mut self.0).take(count as u64).read(into)
    }
}

fn read_with(file: &[u8], key: Option<&str>) -> (Vec<String>, Result<Loaded, LoadError>) {
    let mut said = Said::default();
    let loaded = load(Drip(file, 7), key, &Options::default(), &mut said);
    (said.0, loaded)
}

fn read(file: &str) -> (Vec<String>, Result<Loaded, LoadError>) {
    read_with(file.as_bytes(), None)
}

/// The events of a file that is right in all its parts.
fn events(file: &str) -> (Form, Vec<String>) {
    let (said, loaded) = read(file);
    let loaded = loaded.unwrap();
    assert_eq!((loaded.events, loaded.refused), (said.len() as u64, 0), "{said:?}");
    (loaded.form, said)
}

/// The error for which the file as a whole gives nothing.
fn fault(file: &str) -> String {
    read(file).1.unwrap_err().to_string()
}

#[test]
fn all_forms_give_the_same_events() {
    let list = "[{\"timestamp_ns\":1},\r\n {\"timestamp_ns\":2}]\r\n";
    let places = ["event 0 (line 1, byte 1): 1", "event 1 (line 2, byte 23): 2"];
    assert_eq!(events(list), (Form::List, places.map(str::to_owned).to_vec()));

    let object =
        "{\"version\":[{}],\"events\":[{\"timestamp_ns\":1},{\"timestamp_ns\":2}],\"x\":{}}";
    let places = ["event 0 (line 1, byte 26): 1", "event 1 (line 1, byte 45): 2"];
    assert_eq!(events(object), (Form::Object, places.map(str::to_owned).to_vec()));

    let lines = "\n{\"timestamp_ns\":1}\r\n \r\n{\"timestamp_ns\":2}";
    let places = ["event 0 (line 2, byte 1): 1", "event 1 (line 4, byte 24): 2"];
    assert_eq!(events(lines), (Form::Lines, places.map(str::to_owned).to_vec()));

    let record = "\n {\n\"timestamp_ns\":\n1\n}\n\n";
    let places = ["event 0 (line 2, byte 2): 1".to_owned()];
    assert_eq!(events(record), (Form::Record, places.to_vec()));

    assert_eq!(events("[]"), (Form::List, vec![]));
    assert_eq!(events("{\"timestamp_ns\":1,\"events\":[]}"), (Form::Object, vec![]));
}

#[test]
fn a_record_that_is_the_whole_file_keeps_all_its_members() {
    let record = r#"{"metadata_pid": 7, "metadata": {"host": "h", "pid": 1}, "other": [[1]],
        "metadata_x": {"a": [ 1 ]}, "timestamp": 2.5, "timestamp": 1.5, "events": 3}"#;
    let all = load_all(record.as_bytes(), None, &Options::default()).unwrap();
    let alone = TelemetryEvent::from_json(record, &Options::default()).unwrap();
    assert_eq!(all, [alone]);
    assert_eq!((all[0].pid, all[0].timestamp_ns), (7, 1_500_000_000));

    let version_2 = "{\"schema_version\": 2, \"zeta\": 0, \"metadata_\": 1, \"alpha\": {}}";
    assert!(read(version_2).0[0].contains("Missing required telemetry fields: timestamp_ns, "));
}

#[test]
fn the_key_of_the_events_may_be_named() {
    let file = b"{\"events\":[{\"timestamp_ns\":1}],\"mine\":[{\"timestamp_ns\":2}]}";
    assert_eq!(read_with(file, Some("mine")).0, ["event 0 (line 1, byte 39): 2"]);
    for (file, key) in [(&file[..], "yours"), (b"{\"mine\":{}}", "mine")] {
        let fault = read_with(file, Some(key)).1.unwrap_err().to_string();
        assert_eq!(fault, format!("Top-level key '{key}' must contain a list of events"));
    }
    let list = read_with(b"[{\"timestamp_ns\":3}]", Some("mine"));
    assert_eq!(list.0, ["event 0 (line 1, byte 1): 3"], "a list has no keys");
}

#[test]
fn what_is_wrong_with_one_record_is_said_and_the_others_stand() {
    let (said, loaded) =
        read("[{\"timestamp_ns\":1},5,{\"timestamp\":\"x\"},[[{}]],{\"timestamp_ns\":2}]");
    assert_eq!(
        said,
        [
            "event 0 (line 1, byte 1): 1",
            "event 1 (line 1, byte 20): Event at index 1 must be an object",
            "event 2 (line 1, byte 22): Legacy record is missing a valid timestamp",
            "event 3 (line 1, byte 40): Event at index 3 must be an object",
            "event 4 (line 1, byte 47): 2",
        ]
    );
    assert_eq!(loaded.unwrap(), Loaded { form: Form::List, events: 2, refused: 3 });

    let lines =
        b"{\"timestamp_ns\":1}\n{\"timestamp_ns\":NaN}\n\xff\n7\n{\"timestamp_ns\":2}\n{\"times";
    assert_eq!(
        read_with(lines, None).0,
        [
            "event 0 (line 1, byte 0): 1",
            "event 1 (line 2, byte 19): a value was expected at byte 16",
            "event 2 (line 3, byte 40): the line is not UTF-8 behind byte 0",
            "event 3 (line 4, byte 42): record must be a mapping",
            "event 4 (line 5, byte 44): 2",
            "event 5 (line 6, byte 63): the string does not end at byte 7",
        ]
    );
}

#[test]
fn of_records_a_line_every_line_has_its_verdict() {
    let mut said = Said::default();
    let file = "\u{feff}{}\n\n{\"timestamp_ns\":1}\r\n5\n{\"timestamp_ns\":2}";
    let input = Drip(file.as_bytes(), 2);
    let loaded = load_records(input, &Options::default(), &mut said).unwrap();
    assert_eq!((loaded.form, loaded.events, loaded.refused), (Form::Lines, 2, 3));
    let expected = [
        "event 0 (line 1, byte 0): a UTF-8 byte order mark; JSON begins without one, save the file as plain UTF-8",
        "event 1 (line 2, byte 6): a value was expected at byte 0",
        "event 2 (line 3, byte 7): 1",
        "event 3 (line 4, byte 27): record must be a mapping",
        "event 4 (line 5, byte 29): 2",
    ];
    assert_eq!(said.0, expected);
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_one_stands() {
    let long = "x".repeat(5 << 20);
    let lines =
        format!("{{\"timestamp_ns\":1}}\n{{\"context\":\"{long}\"}}\n{{\"timestamp_ns\":2}}\n");
    let mut said = Said::default();
    load(lines.as_bytes(), None, &Options::default(), &mut said).unwrap();
    assert_eq!(said.0[1], "event 1 (line 2, byte 19): the line is longer than 4 MiB");
    assert!(said.0[2].starts_with("event 2 (line 3,") && said.0.len() == 3);
}

#[test]
fn a_file_that_is_no_json_is_refused_with_its_place() {
    let deep = format!("[\n{}", "[".repeat(200));
    for (file, said) in [
        ("", "line 1, column 1 (byte 0): the document ends here, but a value was expected"),
        (" \n ", "line 2, column 2 (byte 3): the document ends here, but a value was expected"),
        (
            "[{\"timestamp_ns\":1}",
            "line 1, column 20 (byte 19): the document ends here, but ',' or ']' was expected",
        ),
        (
            "[{\"timestamp_ns\":1,",
            "line 1, column 20 (byte 19): the document ends here, but a key in double quotes was expected",
        ),
        ("[\n{\"timestamp_ns\":NaN}]", "line 2, column 17 (byte 18): a value was expected"),
        ("[\n{\"a\":-Infinity}]", "line 2, column 7 (byte 8): a number was expected"),
        ("[{}] []", "line 1, column 6 (byte 5): something stands behind the value"),
        (&deep, "line 2, column 128 (byte 129): nested more than 128 deep"),
        (
            "\u{feff}[]",
            "byte 0: a UTF-8 byte order mark; JSON begins without one, save the file as plain UTF-8",
        ),
        ("5", "Telemetry payload must be a JSON object or array"),
        ("\"[]\"", "Telemetry payload must be a JSON object or array"),
        ("{}", "JSON payload does not contain telemetry events"),
        ("{\"events\":{},\"host\":\"a\"}", "JSON payload does not contain telemetry events"),
        (
            "{\"events\":[],\n\"events\":[]}",
            "line 2, column 10 (byte 23): the key 'events' comes twice; keep one list of events",
        ),
    ] {
        assert_eq!(fault(file), said, "{file}");
    }
    let not_utf8 = read_with(b"[{\"timestamp_ns\":1},\n\xff]", None);
    assert_eq!(not_utf8.0, ["event 0 (line 1, byte 1): 1"], "what came before stands");
    let fault = not_utf8.1.unwrap_err().to_string();
    assert_eq!(fault, "line 2, column 1 (byte 21): the text is not UTF-8");
}

#[test]
fn all_or_nothing_names_a_fault_of_the_file_before_that_of_a_record() {
    let all = |file: &str| load_all(file.as_bytes(), None, &Options::default());
    let times =
        |file: &str| all(file).unwrap().iter().map(|event| event.timestamp_ns).collect::<Vec<_>>();
    assert_eq!(times("[{\"timestamp_ns\":1},{\"timestamp_ns\":2}]"), [1, 2]);
    assert_eq!(times("{\"timestamp_ns\":1}\n{\"timestamp_ns\":2}"), [1, 2]);
    let refused = "[{\"timestamp_ns\":1},{},7";
    let fault = all(&format!("{refused}]")).unwrap_err().to_string();
    assert_eq!(fault, "event 1 (line 1, byte 20): Legacy record is missing a valid timestamp");
    assert!(matches!(all(refused), Err(LoadError::Document(_))));
}

#[test]
fn an_input_that_fails_is_named_with_its_line() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("unplugged"))
        }
    }
    let start = |bytes: usize| io::repeat(b' ').take(bytes as u64);
    let fault = |input: &mut dyn Read| {
        load(input, None, &Options::default(), &mut Said::default()).unwrap_err().to_string()
    };
    assert_eq!(fault(&mut Failing), "line 1: reading on failed: unplugged");
    let lines = "{\"timestamp_ns\":1}\n{\"timestamp_ns\":2}\n".as_bytes();
    assert_eq!(
        fault(&mut lines.chain(start(64 << 10)).chain(Failing)),
        "line 3: reading on failed: unplugged"
    );
    let list = "[{\"timestamp_ns\":1},".as_bytes();
    let said = fault(&mut list.chain(start(64 << 10)).chain(Failing));
    assert!(said.starts_with("line 1, column") && said.ends_with("unplugged"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn however_the_bytes_come_the_events_are_the_same(
        times in prop::collection::vec(0..1_000_000_i64, 0..200), drip in 1..5000_usize,
        blank in "[ \n]{0,3}", notes in "[a-zé\u{10000}\\\\\"]{0,30}",
    ) {
        let context = serde_json::Value::from(notes);
        let record = |time: &i64| format!("{{\"timestamp_ns\":{time},{blank}\"context\":{context}}}");
        let records: Vec<_> = times.iter().map(record).collect();
        let expected: Vec<i128> = times.iter().map(|time| i128::from(*time)).collect();
        let list = format!("[{}]", records.join(&format!(",{blank}")));
        let object = format!("{{\"a\":{{\"b\":[1.5]}},{blank}\"events\":{list}}}");
        let mut forms = vec![list, object];
        if !blank.contains('\n') && !times.is_empty() {
            forms.push(records.join("\n"));
        }
        for file in forms {
            let events = load_all(Drip(file.as_bytes(), drip), None, &Options::default()).unwrap();
            let times: Vec<_> = events.iter().map(|event| event.timestamp_ns).collect();
            prop_assert_eq!(&times, &expected);
            prop_assert!(events.iter().all(|event| event.context.as_deref() == context.as_str()));
        }
    }

    #[test]
    fn a_file_that_is_cut_off_gives_its_whole_records_and_says_that_it_was(
        times in prop::collection::vec(0..1_000_000_i64, 1..20), at in any::<prop::sample::Index>(),
    ) {
        let records: Vec<_> = times.iter().map(|time| format!("{{\"timestamp_ns\":{time}}}")).collect();
        let list = format!("[{}]", records.join(",\n"));
        let cut = &list[..at.index(list.len())];
        let (said, loaded) = read(cut);
        let is_cut_off =
            matches!(loaded, Err(LoadError::Document(warpgauge_formats::json::stream::Error::CutOff { .. })));
        prop_assert!(is_cut_off, "{cut}: {loaded:?}");
        prop_assert_eq!(said.len(), cut.matches('}').count());
    }

    #[test]
    fn whatever_the_bytes_reading_ends(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_with(&bytes, None);
    }
}
