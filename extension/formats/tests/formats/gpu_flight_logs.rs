//! GPU Flight logs at their edges: order, damage, strange columns, ids that nobody explains.

use warpgauge_formats::event::{Event, What};
use warpgauge_formats::gpu_flight::Reader;
use warpgauge_formats::join::KernelDetailsJoin;
use warpgauge_formats::time::{Span, Timestamp};

use crate::collect::{Collected, fixture, gpu_flight, read_gpu_flight};

fn edge(name: &str) -> Collected {
    gpu_flight([fixture(&format!("gpuflight/edge/{name}.ndjson")).as_slice()])
}

fn joined(name: &str) -> Collected {
    let mut collected = Collected::default();
    let mut join = KernelDetailsJoin::new(&mut collected);
    read_gpu_flight([fixture(&format!("gpuflight/edge/{name}.ndjson")).as_slice()], &mut join);
    join.end();
    collected
}

const COLUMNS: &str = r#""columns":["dt_ns","kernel_id","stream_id","duration_ns","corr_id","dyn_shared","num_regs","has_details"]"#;

fn batch(session: &str, number: i64, rows: &str) -> String {
    format!(
        r#"{{"type":"kernel_event_batch","session_id":"{session}","batch_id":{number},"base_time_ns":1000,{COLUMNS},"rows":[{rows}]}}"#
    )
}

fn dictionary(session: &str, kernels: &str) -> String {
    format!(
        r#"{{"type":"dictionary_update","session_id":"{session}","kernel_dict":{{{kernels}}}}}"#
    )
}

fn read(lines: &[&str]) -> Collected {
    gpu_flight([lines.join("\n").as_bytes()])
}

#[test]
fn the_original_documents_examples_are_read_in_both_forms() {
    let read = gpu_flight([fixture("gpuflight/examples.ndjson").as_slice()]);
    assert_eq!((read.said(), read.unknown_names()), (vec![], vec![]));
    let kernels = read.kernels();
    assert_eq!(kernels.len(), 4);
    let details = kernels[0].details.as_ref().unwrap();
    assert_eq!((details.occupancy, details.register_occupancy), (Some(0.75), Some(0.8)));
    assert_eq!(details.scope_path.as_deref(), Some("Training|Forward"));
    assert_eq!((kernels[0].grid, kernels[0].stream), (Some([64, 1, 1]), Some(140_234_567_890)));
    assert_eq!(kernels[1].start, Timestamp(1_706_800_123_456_789));
    assert_eq!(kernels[0].start, kernels[1].start, "both forms tell the same kernel");
    assert_eq!((kernels[0].duration, &kernels[0].name), (kernels[1].duration, &kernels[1].name));
    assert_eq!(kernels[3].name, "void volta_gemm_fp16_128x128_ldg8_nn_kernel()");
}

#[test]
fn details_find_their_kernel_before_its_batch_and_behind_it() {
    for (name, count) in [("01_detail_before_batch", 1), ("15_graph_shared_corr_id", 2)] {
        let read = joined(name);
        assert_eq!(read.said(), [""; 0], "{name}");
        assert_eq!(read.events.len(), count, "{name}: no details are left alone");
        for kernel in read.kernels() {
            assert_eq!(kernel.grid, Some([64, 1, 1]), "{name}");
            assert_eq!(
                kernel.details.unwrap().limiting_resource.as_deref(),
                Some("REGISTERS"),
                "{name}"
            );
        }
    }
}

#[test]
fn the_nodes_of_a_graph_share_one_line_of_details() {
    let names: Vec<_> =
        joined("15_graph_shared_corr_id").kernels().into_iter().map(|kernel| kernel.name).collect();
    assert_eq!(names, ["k1", "k2"]);
}

#[test]
fn columns_are_found_by_name_and_unknown_ones_are_counted() {
    let read = edge("03_columns_reordered_unknown");
    let kernel = &read.kernels()[0];
    assert_eq!((kernel.name.as_ref(), kernel.start), ("k1", Timestamp(1_706_800_123_000_000_000)));
    assert_eq!((kernel.stream, kernel.correlation, kernel.registers), (Some(5), Some(3), Some(32)));
    assert_eq!(read.unknown_names(), ["kernel_event_batch.future_col"]);
}

#[test]
fn a_batch_that_comes_before_its_dictionary_waits_for_it() {
    let read = edge("04_dict_after_batch");
    assert_eq!(read.said(), [""; 0]);
    assert_eq!(
        (read.events[0].0, read.kernels()[0].name.as_ref()),
        (1, "k1"),
        "told with its own line"
    );
}

#[test]
fn a_torn_last_line_is_named_and_the_rest_holds() {
    let read = edge("05_torn_tail");
    assert_eq!(
        read.said(),
        ["line 2: expected a JSON object, found a key in double quotes was expected at byte 202"]
    );
}

#[test]
fn escapes_are_undone_and_letters_of_four_bytes_stay() {
    assert_eq!(edge("07_escapes_utf8").kernels()[0].name, "k<\"q\">\\\u{1}\té漢🚀");
}

#[test]
fn unknown_types_and_fields_are_counted_and_stop_nothing() {
    let read = edge("08_unknown_type_and_fields");
    assert_eq!(
        read.unknown_names(),
        ["perf_metric_event", "dictionary_update.new_dict", "dictionary_update.extra"]
    );
    assert_eq!((read.kernels().len(), read.findings.len()), (1, 0));
}

#[test]
fn byte_order_mark_carriage_returns_and_blank_lines_are_no_faults() {
    let read = edge("09_crlf_blank_bom");
    assert_eq!((read.said(), read.events[0].0), (vec![], 3));
}

#[test]
fn the_windows_of_a_long_scope_are_told_apart_from_its_begin_and_end() {
    use warpgauge_formats::event::Phase::{Begin, Continue, End, Suspend};
    let read = edge("17_deep_window_head_scope_v3");
    assert_eq!((read.said(), read.unknown_names()), (vec![], vec![]));
    let phases: Vec<_> = read.scopes().iter().map(|scope| (scope.phase, scope.time.0)).collect();
    assert_eq!(phases, [(Begin, 100), (Suspend, 150), (Continue, 150), (End, 170)]);
    let begin = &read.scopes()[0];
    assert_eq!(
        (begin.repeat, begin.warmup, begin.original_start),
        (Some(20), Some(5), Some(Timestamp(100)))
    );
}

#[test]
fn a_batch_that_comes_twice_is_counted_once() {
    let (texts, one) = (dictionary("s", r#""1":"k""#), batch("s", 1, "[0,1,7,100,3,0,32,0]"));
    let read = read(&[&texts, &one, &one, &batch("s", 2, "[9,1,7,100,4,0,32,0]")]);
    assert_eq!(read.kernels().len(), 2);
    assert_eq!(
        read.said(),
        ["line 3: batch_id: expected a batch that has not come yet, found 1 again"]
    );
}

#[test]
fn two_sessions_in_one_file_have_dictionaries_of_their_own() {
    let row = "[0,1,7,100,3,0,32,0]";
    let read = read(&[
        &dictionary("a", r#""1":"first""#),
        &dictionary("b", r#""1":"second""#),
        &batch("b", 1, row),
        &batch("a", 1, row),
    ]);
    let told: Vec<_> =
        read.events.iter().map(|(_, event)| event.source.session.as_deref().unwrap()).collect();
    let names: Vec<_> = read.kernels().into_iter().map(|kernel| kernel.name).collect();
    assert_eq!(
        (told, names, read.findings.len()),
        (vec!["b", "a"], vec!["second".into(), "first".into()], 0)
    );
}

#[test]
fn an_id_that_is_redefined_shows_both_texts_and_keeps_the_first() {
    let texts = [dictionary("s", r#""1":"gemm""#), dictionary("s", r#""1":"relu","2":"gemm""#)];
    let read = read(&[&texts[0], &texts[1], &batch("s", 1, "[0,1,7,100,3,0,32,0]")]);
    assert_eq!(
        read.said(),
        [r#"line 2: kernel_dict.1: expected "gemm", which it was before, found "relu""#]
    );
    assert_eq!(read.kernels()[0].name, "gemm");
}

#[test]
fn a_damaged_batch_is_refused_with_the_place_of_the_damage() {
    let texts = dictionary("s", r#""1":"k""#);
    for (rows, said) in [
        (
            "[0,1,7,100,3,0,32,0],[1,1]",
            "rows[1]: expected as many values as columns, found 2 values for 8 columns",
        ),
        ("[0,1,7,100.5,3,0,32,0]", "rows[0][3]: expected an integer of 64 bits, found 100.5"),
        ("[0,1,7,\"x\",3,0,32,0]", "rows[0][3]: expected an integer of 64 bits, found \"x\""),
        ("[0,1,7,null,3,0,32,0]", "rows[0][3]: expected an integer of 64 bits, found null"),
        (
            "[0,1,7,18446744073709551616,3,0,32,0]",
            "rows[0][3]: expected an integer of 64 bits, found 18446744073709551616",
        ),
        ("7", "rows[0]: expected an array, found 7"),
        (
            "[9223372036854775807,1,7,1,3,0,32,0]",
            "dt_ns: expected a time of 64 bits, found a later one",
        ),
    ] {
        let read = read(&[&texts, &batch("s", 1, rows), &batch("s", 2, "[0,1,7,100,3,0,32,0]")]);
        assert_eq!(read.said(), [format!("line 2: {said}")]);
        assert_eq!(read.kernels().len(), 1, "{rows}: the next batch stands");
    }
}

#[test]
fn whole_numbers_in_another_spelling_are_whole_numbers() {
    let read = read(&[&dictionary("s", r#""1":"k""#), &batch("s", 1, "[-20,1.0,7,1e2,3,0,32,1]")]);
    let kernel = &read.kernels()[0];
    assert_eq!((kernel.start, kernel.duration), (Timestamp(980), Span(100)), "and dt_ns is signed");
}

#[test]
fn a_line_that_is_no_utf_8_is_named_and_the_next_one_stands() {
    let mut log = b"{\"type\":\"dictionary_update\",\"session_id\":\"\xff\"}\n".to_vec();
    log.extend_from_slice(dictionary("s", r#""1":"k""#).as_bytes());
    log.push(b'\n');
    log.extend_from_slice(batch("s", 1, "[0,1,7,100,3,0,32,0]").as_bytes());
    let read = gpu_flight([log.as_slice()]);
    assert_eq!(read.said(), ["line 1: expected UTF-8, found other bytes behind byte 42"]);
    assert_eq!(read.kernels().len(), 1);
}

#[test]
fn an_id_that_never_gets_its_text_is_named_and_its_neighbours_are_told() {
    let read = read(&[
        &batch("s", 1, "[0,1,7,100,3,0,32,0],[1,2,7,100,4,0,32,0],[2,2,7,100,5,0,32,0]"),
        &dictionary("s", r#""1":"k""#),
    ]);
    assert_eq!(
        read.said(),
        [
            "line 1: rows: expected an id of kernel_dict, found id 2, which no dictionary_update explains"
        ]
    );
    assert_eq!(read.kernels().len(), 1, "the row whose id is known is not lost with the others");
}

#[test]
fn ids_that_are_no_ids_and_texts_that_are_no_texts_are_refused() {
    let read = read(&[
        &dictionary("s", r#""0":"k","x":"k","-1":"k","99999999999999999999":"k""#),
        &dictionary("s", r#""1":2"#),
    ]);
    assert_eq!(
        read.said(),
        [
            "line 1: kernel_dict.0: expected an id from 1, found 0",
            "line 1: kernel_dict.x: expected a whole number as id, found x",
            "line 1: kernel_dict.-1: expected an id from 1, found -1",
            "line 1: kernel_dict.99999999999999999999: expected a whole number as id, found 99999999999999999999",
            r#"line 2: kernel_dict: expected an object of strings, found {"1":2}"#,
        ]
    );
}

#[test]
fn a_sample_whose_scope_has_ended_is_marked() {
    let scopes = r#"{"type":"scope_event_batch","session_id":"s","batch_id":1,"base_time_ns":0,"columns":["dt_ns","scope_instance_id","name_id","event_type","depth"],"rows":[[10,1,1,0,0],[20,1,1,1,0]]}"#;
    let samples = r#"{"type":"profile_sample_batch","session_id":"s","batch_id":1,"base_time_ns":0,"columns":["dt_ns","metric_value","scope_name_id"],"rows":[[15,1,1],[25,2,1],[26,3,0]]}"#;
    let texts =
        r#"{"type":"dictionary_update","session_id":"s","scope_name_dict":{"1":"Forward"}}"#;
    let read = read(&[texts, scopes, samples]);
    let samples = read.events.iter().filter_map(|(_, event)| match &event.what {
        What::Profile(sample) => Some((sample.value, sample.scope.as_deref(), sample.scope_ended)),
        _ => None,
    });
    let samples: Vec<_> = samples.collect();
    assert_eq!(
        samples,
        [
            (Some(1), Some("Forward"), false),
            (Some(2), Some("Forward"), true),
            (Some(3), None, false),
        ]
    );
}

#[test]
fn a_missing_column_and_a_missing_member_are_named() {
    let no_id = r#"{"type":"kernel_event_batch","session_id":"s","base_time_ns":0,"columns":["dt_ns","duration_ns"],"rows":[[0,1]]}"#;
    let no_base =
        r#"{"type":"kernel_event_batch","session_id":"s","columns":["dt_ns"],"rows":[[0]]}"#;
    let no_end = r#"{"type":"kernel_event","session_id":"s","name":"k","start_ns":1}"#;
    let read = read(&[no_id, no_base, no_end, r#"{"session_id":"s"}"#]);
    assert_eq!(
        read.said(),
        [
            "line 1: columns: expected a column kernel_id, found none",
            "line 2: base_time_ns: expected a value, found nothing",
            "line 3: end_ns: expected an integer of 64 bits, found nothing of that type",
            "line 4: type: expected a string, found nothing",
        ]
    );
}

#[test]
fn channels_that_each_tell_a_sessions_bounds_tell_them_once() {
    let line = r#"{"type":"job_start","session_id":"s","pid":7,"app":"a","ts_ns":5}"#;
    let end = r#"{"type":"shutdown","session_id":"s","pid":7,"app":"a","ts_ns":9}"#;
    let log = [line, end].join("\n");
    let events = gpu_flight([log.as_bytes(), log.as_bytes(), log.as_bytes()]).into_events();
    assert!(matches!(
        events.as_slice(),
        [Event { what: What::Start(_), .. }, Event { what: What::End(_), .. }]
    ));
    assert_eq!(events[0].source.pid, Some(7));
}

#[test]
fn a_batch_knows_the_process_that_its_session_began_with() {
    let start = r#"{"type":"job_start","session_id":"s","pid":7,"app":"a","ts_ns":5}"#;
    let read =
        read(&[start, &dictionary("s", r#""1":"k""#), &batch("s", 1, "[0,1,7,100,3,0,32,0]")]);
    let source = &read.events[1].1.source;
    assert_eq!(
        (source.session.as_deref(), source.pid, source.app.as_deref()),
        (Some("s"), Some(7), Some("a"))
    );
}

#[test]
fn whatever_comes_the_end_has_nothing_left_to_wait_for() {
    let (mut reader, mut collected) = (Reader::new(), Collected::default());
    reader.line(1, batch("s", 1, "[0,1,7,100,3,0,32,0]").as_bytes(), &mut collected);
    assert!(collected.findings.is_empty() && collected.events.is_empty());
    reader.end(&mut collected);
    reader.end(&mut collected);
    assert_eq!(collected.findings.len(), 1);
}
