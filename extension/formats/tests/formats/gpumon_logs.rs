//! Logs of gpumon's producers, and logs that are wrong.

use warpgauge_formats::event::{Phase, What};
use warpgauge_formats::gpumon::Mode;
use warpgauge_formats::time::{Span, Timestamp};

use crate::collect::{fixture, gpumon};

#[test]
fn every_invalid_line_gets_its_reason() {
    let log = fixture("gpumon/invalid.ndjson");
    let reasons = String::from_utf8(fixture("gpumon/invalid.reasons.txt")).unwrap();
    let strict = gpumon(Mode::Strict, &log);
    assert!(strict.events.is_empty());
    let said = strict.said();
    for (line, (reason, expected)) in (1..).zip(reasons.lines().zip([
        vec!["app: expected a string that is not empty, found \"\""],
        vec!["grid: expected an array of three integers >= 0, found [1,1]"],
        vec![
            "kernel: expected a string that is not empty, found nothing",
            "grid: expected an array of three integers >= 0, found a string",
            "block: expected an array of three integers >= 0, found a string",
            "shared_mem_bytes: expected an integer >= 0, found nothing",
        ],
        vec!["type: expected init, scope_begin, scope_sample, scope_end, kernel or shutdown, found system_sample"],
        vec![
            "ts_start_ns: expected an integer >= 0, found nothing",
            "ts_end_ns: expected an integer >= 0, found nothing",
            "duration_ns: expected an integer >= 0, found nothing",
        ],
        vec!["memory[0].x: expected no further keys, found x"],
        vec!["pid: expected an integer >= 0, found a negative number"],
        vec!["type: expected init, scope_begin, scope_sample, scope_end, kernel or shutdown, found nothing"],
        vec!["expected a JSON object, found [1]"],
        vec!["expected a JSON object, found ',' or '}' was expected at byte 42"],
    ])) {
        let prefix = format!("line {line}: ");
        let said: Vec<_> = said.iter().filter_map(|said| said.strip_prefix(&prefix)).collect();
        assert_eq!(said, expected, "line {line}, {reason}");
    }
}

#[test]
fn what_later_producers_write_is_understood_where_the_schema_refuses_it() {
    let tolerant = gpumon(Mode::Tolerant, &fixture("gpumon/invalid.ndjson"));
    let lines: Vec<_> = tolerant.events.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [3, 4, 5, 6]);
    let kernel = &tolerant.kernels()[0];
    assert_eq!(
        (kernel.name.as_ref(), kernel.grid, kernel.dynamic_shared_bytes),
        ("k", Some([1; 3]), Some(0))
    );
    assert_eq!(tolerant.unknown_names(), ["scope_begin.memory.x"]);
    assert_eq!(
        tolerant.refused(),
        [(1, "app"), (2, "grid"), (7, "pid"), (8, "type"), (9, ""), (10, "")]
    );
}

#[test]
fn the_first_producers_examples_are_valid_in_both_modes() {
    let log = fixture("gpumon/examples.ndjson");
    for mode in [Mode::Strict, Mode::Tolerant] {
        let read = gpumon(mode, &log);
        assert_eq!(read.said(), [""; 0]);
        assert_eq!(read.events.len(), 6);
        let end = &read.scopes()[2];
        assert_eq!((end.phase, end.duration), (Phase::End, Some(Span(3_000_000))));
        assert_eq!(end.devices[0].used_mib, Some(1110));
    }
}

#[test]
fn a_real_log_is_valid_by_the_schema_and_tells_its_devices_only_in_tolerant_mode() {
    let log = fixture("gpumon/stress.scope.log");
    let strict = gpumon(Mode::Strict, &log);
    assert_eq!((strict.said(), strict.events.len()), (vec![], 25));
    assert!(strict.scopes().iter().all(|scope| scope.devices.is_empty()));
    assert!(
        strict.unknown_names().iter().all(|name| name.ends_with(".devices")),
        "{:?}",
        strict.unknown
    );
    assert_eq!(strict.unknown.len(), 23, "nothing is dropped in silence");
    let tolerant = gpumon(Mode::Tolerant, &log);
    assert_eq!((tolerant.said(), tolerant.unknown_names()), (vec![], vec![]));
    assert_eq!(tolerant.scopes()[0].devices[0].used_mib, Some(1204));
}

#[test]
fn logs_of_the_later_producer_are_read_whole_in_tolerant_mode() {
    for (name, events) in [("kernel", 2), ("scope", 6), ("system", 49)] {
        let log = fixture(&format!("gpumon/gpufl_basic.{name}.0.log"));
        let tolerant = gpumon(Mode::Tolerant, &log);
        assert_eq!(tolerant.said(), [""; 0], "{name}");
        assert_eq!(tolerant.unknown_names(), [""; 0], "{name}");
        assert_eq!(tolerant.events.len(), events, "{name}");
    }
    let scopes = gpumon(Mode::Tolerant, &fixture("gpumon/gpufl_basic.scope.0.log"));
    let end = &scopes.scopes()[1];
    assert_eq!(end.began, Some(Timestamp(444_252_771_368_100)), "its begin says when");
    assert_eq!(end.duration, Some(Span(444_253_288_235_300 - 444_252_771_368_100)));
    assert_eq!(end.host.unwrap().cpu_centipercent, Some(680));
}

#[test]
fn of_the_later_producers_logs_the_schema_refuses_what_it_does_not_have() {
    let strict = gpumon(Mode::Strict, &fixture("gpumon/gpufl_basic.system.0.log"));
    assert_eq!((strict.events.len(), strict.refused().len()), (2, 47), "init and shutdown stay");
    let strict = gpumon(Mode::Strict, &fixture("gpumon/gpufl_basic.scope.0.log"));
    assert_eq!(strict.events.len(), 4);
    let fields = ["ts_start_ns", "ts_end_ns", "duration_ns"];
    assert!(strict.refused().iter().all(|(_, field)| fields.contains(field)));
}

#[test]
fn what_does_not_add_up_is_said_and_taken_all_the_same() {
    let log = br#"{"type":"init","pid":1,"app":"a","ts_ns":1}
{"type":"init","pid":1,"app":"a","ts_ns":2}
{"type":"scope_begin","pid":1,"app":"a","name":"s","ts_ns":5,"memory":[{"device":0,"used_mib":1,"free_mib":1,"total_mib":3}]}
{"type":"scope_end","pid":1,"app":"a","name":"other","ts_start_ns":5,"ts_end_ns":9,"duration_ns":3}
{"type":"scope_end","pid":1,"app":"a","name":"s","ts_start_ns":9,"ts_end_ns":5,"duration_ns":4}
{"type":"shutdown","pid":1,"app":"a","ts_ns":2}
{"type":"shutdown","pid":1,"app":"a","ts_ns":2}
"#;
    let read = gpumon(Mode::Strict, log);
    assert_eq!(read.events.len(), 7);
    assert_eq!(
        read.said(),
        [
            "line 2: pid: expected one init for a process, found another one for pid 1",
            "line 3: memory[0].total_mib: expected used_mib + free_mib, found 1 + 1 != 3",
            "line 4: name: expected a scope that has begun, found other",
            "line 4: duration_ns: expected ts_end_ns - ts_start_ns, found 3",
            "line 5: duration_ns: expected ts_end_ns - ts_start_ns, found 4",
            "line 5: ts_end_ns: expected not before ts_start_ns, found 5",
            "line 7: pid: expected one shutdown for a process, found another one for pid 1",
        ]
    );
}

#[test]
fn nested_scopes_of_one_name_are_paired_innermost_first() {
    let line = |kind: &str, time: i64| {
        format!(r#"{{"type":"{kind}","pid":1,"app":"a","name":"s","ts_ns":{time}}}"#)
    };
    let log = [("scope_begin", 1), ("scope_begin", 2), ("scope_end", 3), ("scope_end", 4)];
    let log = log.map(|(kind, time)| line(kind, time)).join("\n");
    let read = gpumon(Mode::Tolerant, log.as_bytes());
    let began: Vec<_> = read.scopes()[2..].iter().map(|scope| scope.began.unwrap().0).collect();
    assert_eq!(began, [2, 1]);
}

#[test]
fn an_unknown_type_is_set_aside_and_the_rest_stands() {
    let log = b"{\"type\":\"power\",\"pid\":1}\n\xff\xfe\n\n{\"type\":\"shutdown\",\"pid\":1,\"app\":\"a\",\"ts_ns\":3}";
    let read = gpumon(Mode::Tolerant, log);
    assert_eq!(read.unknown, [(1, "power".to_owned())]);
    assert_eq!(read.said(), ["line 2: expected UTF-8, found other bytes behind byte 0"]);
    assert!(matches!(read.events[0], (4, ref event) if event.what == What::End(Timestamp(3))));
}

#[test]
fn a_number_beyond_64_bits_is_valid_by_the_schema_and_gives_no_event() {
    let log = br#"{"type":"init","pid":99999999999999999999,"app":"a","ts_ns":1.0}"#;
    for (mode, refused) in [(Mode::Strict, vec![]), (Mode::Tolerant, vec![(1, "pid")])] {
        let read = gpumon(mode, log);
        assert_eq!(read.events.len(), 0, "there is no such pid, and none is invented");
        assert_eq!(
            read.said(),
            ["line 1: pid: expected less than 2^63, found 99999999999999999999"]
        );
        assert_eq!(read.refused(), refused);
    }
}
