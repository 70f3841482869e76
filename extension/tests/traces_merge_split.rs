//! Traces of several ranks made one, and one made several.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "support/event_logs.rs"]
#[allow(dead_code, reason = "not every test file needs all of it")]
mod event_logs;
#[path = "support/traces.rs"]
#[allow(dead_code, reason = "not every test file needs all of it")]
mod traces;

use std::collections::BTreeSet;
use std::path::Path;

use event_logs::{Ran, events_in, fixture, folder, names, write};
use proptest::prelude::*;
use serde_json::{Value, json};
use traces::{document, events_of, micros, names_of, rank_trace, read, slice};

fn convert(folder: &Path, arguments: &[&str]) -> Ran {
    events_in(folder, &[&["convert", "--to", "kineto", "--force"], arguments].concat())
}

fn converted(folder: &Path, arguments: &[&str]) -> Ran {
    let ran = convert(folder, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    ran
}

const BASE: i64 = 1_700_000_000_000_000_000;

/// Three ranks in files, the bases of which differ.
fn ranks(folder: &Path, steps: i64) -> [String; 3] {
    [(2, 1_999), (0, 1_000_000_007), (1, 0)].map(|(rank, later)| {
        let name = format!("r{rank}.json");
        write(folder, &name, rank_trace(rank, BASE + later, steps));
        name
    })
}

/// The events of a phase.
fn of_phase<'t>(trace: &'t Value, phase: &str) -> Vec<&'t Value> {
    let events = trace["traceEvents"].as_array().unwrap();
    events.iter().filter(|event| event["ph"] == phase).collect()
}

#[test]
fn ranks_stand_on_one_clock_to_the_nanosecond() {
    let (_kept, folder) = folder();
    let files = ranks(&folder, 1);
    converted(&folder, &["--merge", "-o", "all.json", &files[0], &files[1], &files[2]]);
    let text = std::fs::read_to_string(folder.join("all.json")).unwrap();
    let trace = read(&folder.join("all.json"));
    assert_eq!(trace["baseTimeNanoseconds"], json!(BASE));
    for later in [0, 1_999, 1_000_000_007] {
        let launch = format!("\"ts\":{},\"dur\":0.500", micros(1_000 + later));
        assert_eq!(text.matches(&launch).count(), 1, "{launch}");
        let kernel = format!("\"ts\":{},\"dur\":4.000", micros(11_000 + later));
        assert_eq!(text.matches(&kernel).count(), 1, "{kernel}");
    }
}

#[test]
fn processes_of_ranks_are_apart_and_named_and_sorted_by_rank() {
    let (_kept, folder) = folder();
    let files = ranks(&folder, 2);
    converted(&folder, &["--merge", "-o", "all.json", &files[0], &files[1], &files[2]]);
    let trace = read(&folder.join("all.json"));
    let of = |name: &str| -> BTreeSet<i64> {
        let events = of_phase(&trace, "X").into_iter();
        let events = events.filter(|event| event["name"].as_str().unwrap().starts_with(name));
        events.map(|event| event["pid"].as_i64().unwrap()).collect()
    };
    let (hosts, devices) = (of("aten"), of("gemm"));
    assert_eq!((hosts.len(), devices.len(), hosts.intersection(&devices).count()), (3, 3, 0));
    let labels = of_phase(&trace, "M");
    let said = |name: &str, pid: i64| -> Vec<&Value> {
        let about = labels.iter().filter(|label| label["name"] == name && label["pid"] == pid);
        about.map(|label| label["args"].as_object().unwrap().values().next().unwrap()).collect()
    };
    let mut rows = vec![];
    for pid in hosts.union(&devices) {
        let (name, order) = (said("process_name", *pid), said("process_sort_index", *pid));
        assert_eq!((name.len(), order.len()), (1, 1), "{pid}: {name:?} {order:?}");
        rows.push((order[0].as_i64().unwrap(), name[0].as_str().unwrap().to_owned()));
    }
    rows.sort();
    let names: Vec<_> = rows.iter().map(|(_, name)| name.as_str()).collect();
    let expected =
        ["rank 0", "rank 0: python", "rank 1", "rank 1: python", "rank 2", "rank 2: python"];
    assert_eq!(names, expected);
}

#[test]
fn ids_of_ranks_are_apart_and_arrows_still_join_call_and_kernel() {
    let (_kept, folder) = folder();
    let files = ranks(&folder, 3);
    converted(&folder, &["--merge", "-o", "all.json", &files[0], &files[1], &files[2]]);
    let trace = read(&folder.join("all.json"));
    let mut kernels = BTreeSet::new();
    for event in of_phase(&trace, "X") {
        if event["cat"] == "kernel" {
            let args = &event["args"];
            assert_eq!(args["correlation"], args["External id"]);
            kernels.insert((args["correlation"].as_i64().unwrap(), event["pid"].as_i64().unwrap()));
        }
    }
    let ends: BTreeSet<_> = of_phase(&trace, "f")
        .into_iter()
        .map(|end| (end["id"].as_i64().unwrap(), end["pid"].as_i64().unwrap()))
        .collect();
    assert_eq!(kernels, ends);
    let ids: BTreeSet<_> = kernels.iter().map(|(id, _)| *id).collect();
    let starts: BTreeSet<_> =
        of_phase(&trace, "s").into_iter().map(|start| start["id"].as_i64().unwrap()).collect();
    assert_eq!((ids.len(), ids), (9, starts));
}

#[test]
fn ids_of_two_traces_of_one_rank_are_apart_and_its_processes_are_not() {
    let (_kept, folder) = folder();
    write(&folder, "a.json", rank_trace(0, BASE, 2));
    write(&folder, "b.json", rank_trace(0, BASE + 1_000_000, 2).replace("\"r0\"", "\"later\""));
    converted(&folder, &["--merge", "-o", "all.json", "a.json", "b.json"]);
    let trace = read(&folder.join("all.json"));
    let kernels = of_phase(&trace, "f").into_iter();
    let ids: BTreeSet<_> = kernels.map(|end| end["id"].as_i64().unwrap()).collect();
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
    let pids: BTreeSet<_> =
        of_phase(&trace, "X").iter().map(|x| x["pid"].as_i64().unwrap()).collect();
    assert_eq!(pids.into_iter().collect::<Vec<_>>(), [0, 40]);
    // Both names of the trace are kept.
    assert_eq!((&trace["traceName"], &trace["traceName (2)"]), (&json!("r0"), &json!("later")));
}

#[test]
fn processes_without_a_rank_and_with_hostile_ids_are_apart() {
    let (_kept, folder) = folder();
    let of = |pid: &str| {
        format!(r#"{{"ph":"X","name":"x","pid":{pid},"tid":1,"ts":1.000,"dur":1.000,"args":{{}}}}"#)
    };
    let pids = ["9223372036854775807", "-9223372036854775808", "0", "4194304", "\"Spans\"", "\"\""];
    let events: Vec<_> = pids.iter().map(|pid| of(pid)).collect();
    write(&folder, "a.json", document("", &events, ""));
    converted(&folder, &["--merge", "-o", "all.json", "a.json", "a.json", "a.json"]);
    let trace = read(&folder.join("all.json"));
    let apart: BTreeSet<_> = of_phase(&trace, "X").iter().map(|x| x["pid"].to_string()).collect();
    assert_eq!(apart.len(), 18);
    assert!(apart.contains("\"Spans (trace 2)\"") && apart.contains("\"(trace 3)\""), "{apart:?}");
    let names = of_phase(&trace, "M").into_iter().filter(|label| label["name"] == "process_name");
    let names: Vec<_> = names.map(|label| label["args"]["name"].as_str().unwrap()).collect();
    assert_eq!((names.len(), names[0], names[17]), (18, "trace 1", "trace 3"));
    converted(&folder, &["--split", "rank", "-o", "p.json", "all.json"]);
    let parts = ["p.trace1.json", "p.trace2.json", "p.trace3.json"];
    let split: usize =
        parts.iter().map(|part| names_of(&read(&folder.join(part)), "X").len()).sum();
    assert_eq!(split, 18);
}

#[test]
fn merging_what_was_split_by_rank_gives_the_same_events() {
    let (_kept, folder) = folder();
    let files = ranks(&folder, 5);
    converted(&folder, &["--merge", "-o", "all.json.gz", &files[0], &files[1], &files[2]]);
    converted(&folder, &["--split", "rank", "-o", "part.json", "all.json.gz"]);
    let parts = ["part.rank0.json", "part.rank1.json", "part.rank2.json"];
    for (rank, part) in parts.iter().enumerate() {
        let part = read(&folder.join(part));
        assert_eq!(names_of(&part, "X").len(), 15);
        assert_eq!(part["distributedInfo"]["rank"], json!(rank));
        assert_eq!(part["traceName"], json!(format!("r{rank}")));
        assert_eq!(part["schemaVersion"], json!(1));
    }
    converted(&folder, &["--merge", "-o", "again.json", parts[2], parts[0], parts[1]]);
    let (all, again) = (read(&folder.join("all.json.gz")), read(&folder.join("again.json")));
    assert_eq!(events_of(&again), events_of(&all));
    assert_eq!(again["warpgauge_ranks"], all["warpgauge_ranks"]);
    assert_eq!(again["baseTimeNanoseconds"], all["baseTimeNanoseconds"]);
}

#[test]
fn merging_what_was_split_by_time_gives_the_same_trace() {
    let (_kept, folder) = folder();
    let files = ranks(&folder, 40);
    converted(&folder, &["--merge", "-o", "all.json", &files[0], &files[1], &files[2]]);
    let torch = fixture("kineto/torch_cpu_plain.json");
    for (origin, length) in
        [(files[0].as_str(), "time=100us"), (&torch, "time=50us"), ("all.json", "time=1ms")]
    {
        converted(&folder, &["-o", "origin.json", origin]);
        let before = names(&folder).len();
        converted(&folder, &["--split", length, "-o", "part.json", "origin.json"]);
        let parts: Vec<_> =
            names(&folder).into_iter().filter(|name| name.starts_with("part.")).collect();
        assert!(parts.len() > 3 && names(&folder).len() == before + parts.len(), "{parts:?}");
        let mut arguments = vec!["--merge", "-o", "again.json"];
        arguments.extend(parts.iter().map(String::as_str));
        converted(&folder, &arguments);
        let (origin, again) = (read(&folder.join("origin.json")), read(&folder.join("again.json")));
        assert_eq!(events_of(&again), events_of(&origin));
        let members = |trace: &Value| {
            let mut trace = trace.clone();
            trace.as_object_mut().unwrap().remove("traceEvents");
            trace
        };
        assert_eq!(members(&again), members(&origin));
        parts.iter().for_each(|part| std::fs::remove_file(folder.join(part)).unwrap());
    }
}

#[test]
fn parts_of_a_time_hold_what_begins_in_them_with_its_arrows() {
    let (_kept, folder) = folder();
    write(&folder, "a.json", rank_trace(0, 7, 40));
    converted(&folder, &["--split", "time=100us", "-o", "p.json", "a.json"]);
    let parts = names(&folder);
    assert_eq!(
        (parts.len(), parts[1].as_str(), parts[40].as_str()),
        (41, "p.0001.json", "p.0040.json")
    );
    for (step, part) in parts[1..].iter().enumerate() {
        let part = read(&folder.join(part));
        let phases = ["X", "s", "f", "M"].map(|phase| names_of(&part, phase).len());
        assert_eq!(phases, [3, 1, 1, 2]);
        assert_eq!(part["baseTimeNanoseconds"], json!(7));
        assert_eq!(part["warpgauge_part"]["part"], json!(step + 1));
    }
}

#[test]
fn stretches_without_events_have_no_file_and_too_many_parts_are_refused() {
    let (_kept, folder) = folder();
    let far = |at: i64| slice(("cpu_op", "x"), (1, 1), (at, 1), &json!({}));
    write(&folder, "a.json", document("", &[far(5), far(1_000_000_000_000)], ""));
    converted(&folder, &["--split", "time=1s", "-o", "p.json", "a.json"]);
    assert_eq!(names(&folder), ["a.json", "p.0001.json", "p.1000.json"]);
    let many: Vec<_> = (0..500).map(far).collect();
    write(&folder, "b.json", document("", &many, ""));
    let ran = convert(&folder, &["--split", "time=1ns", "-o", "q.json", "b.json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("more than 400 parts: give a longer time"), "{}", ran.err);
    assert_eq!(names(&folder).len(), 4);
}

#[test]
fn a_trace_of_one_rank_becomes_one_file_and_one_of_none_is_refused() {
    let (_kept, folder) = folder();
    write(&folder, "a.json", rank_trace(3, 0, 2));
    converted(&folder, &["--split", "rank", "-o", "p.json", "a.json"]);
    assert_eq!(names(&folder), ["a.json", "p.rank3.json"]);
    let torch = fixture("kineto/torch_cpu_plain.json");
    let ran = convert(&folder, &["--split", "rank", "-o", "q.json", &torch]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("the trace names no rank"), "{}", ran.err);
}

#[test]
fn what_cannot_be_put_on_one_clock_is_refused() {
    let (_kept, folder) = folder();
    let event = [slice(("cpu_op", "x"), (1, 1), (5, 1), &json!({}))];
    write(&folder, "none.json", document("", &event, ""));
    write(
        &folder,
        "early.json",
        document("", &event, ",\"baseTimeNanoseconds\":-9223372036854775808"),
    );
    write(
        &folder,
        "late.json",
        document("", &event, ",\"baseTimeNanoseconds\":9223372036854775807"),
    );
    for (files, words) in [
        (["none.json", "early.json"], "none.json has no base time, and others have"),
        (["late.json", "early.json"], "late.json: its times do not fit 64 bits"),
    ] {
        let ran = convert(&folder, &["--merge", "-o", "out.json", files[0], files[1]]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(words), "{}", ran.err);
    }
    // Where nobody has a base time, all times are of one clock.
    converted(&folder, &["--merge", "-o", "out.json", "none.json", "none.json"]);
    let out = read(&folder.join("out.json"));
    assert_eq!((names_of(&out, "X").len(), &out["baseTimeNanoseconds"]), (2, &Value::Null));
}

#[test]
fn nothing_is_split_into_files_that_are_there() {
    let (_kept, folder) = folder();
    write(&folder, "a.json", rank_trace(0, 0, 3));
    write(&folder, "p.0002.json", "precious");
    let arguments =
        ["convert", "--to", "kineto", "--split", "time=100us", "-o", "p.json", "a.json"];
    let ran = events_in(&folder, &arguments);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("p.0002.json: is there already; --force replaces it"), "{}", ran.err);
    assert_eq!(names(&folder), ["a.json", "p.0002.json"]);
    let ran = events_in(&folder, &["convert", "--to", "kineto", "--split", "rank", "a.json"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("--split makes several files: give -o"), "{}", ran.err);
}

#[test]
fn merged_ranks_are_filtered_and_split_on_the_way() {
    let (_kept, folder) = folder();
    let files = ranks(&folder, 4);
    let filters = ["--category", "kernel", "--window", "0s..500us"];
    let arguments = [&["--merge", "--split", "rank", "-o", "k.json"], &filters[..]].concat();
    converted(&folder, &[&arguments[..], &files.each_ref().map(String::as_str)].concat());
    let kernels = |rank: i64| names_of(&read(&folder.join(format!("k.rank{rank}.json"))), "X");
    // Rank 0 begins a second after the others.
    assert_eq!([0, 1, 2].map(|rank| kernels(rank).len()), [0, 4, 4]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn every_time_is_moved_exactly(
        bases in prop::collection::vec(0..2_000_000_000_i64, 1..4),
        times in prop::collection::vec((0..5_000_000_i64, 0..5_000_i64), 1..6),
    ) {
        let (_kept, folder) = folder();
        let mut arguments = vec!["--merge".to_owned(), "-o".to_owned(), "out.json".to_owned()];
        let mut expected = vec![];
        let earliest = bases.iter().min().unwrap();
        for (rank, base) in bases.iter().enumerate() {
            let events: Vec<_> =
                times.iter().map(|span| slice(("cpu_op", "x"), (1, 1), *span, &json!({}))).collect();
            let before = format!("\"distributedInfo\":{{\"rank\":{rank}}},\"baseTimeNanoseconds\":{base},");
            let name = format!("{rank}.json");
            write(&folder, &name, document(&before, &events, ""));
            arguments.push(name);
            expected.extend(times.iter().map(|(start, length)| {
                format!("\"ts\":{},\"dur\":{}", micros(start + base - earliest), micros(*length))
            }));
        }
        converted(&folder, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let text = std::fs::read_to_string(folder.join("out.json")).unwrap();
        let mut found: Vec<_> = text.lines().filter_map(|line| {
            let begin = line.find("\"ts\":")?;
            let end = line.find(",\"args\"")?;
            Some(line[begin..end].to_owned())
        }).collect();
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
    }
}
