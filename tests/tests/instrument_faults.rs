//! Whatever CUPTI does wrong, the host program runs as if nobody were there, and the log has one
//! line that says why nothing is measured.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::io::Write;
use std::path::Path;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use warpgauge_tests::{Host, World};

/// The arguments of every host program here.
const ARGUMENTS: [&str; 5] =
    ["--pause-before", "init", "--launches=20", "--kernel=tiled=4:64", "--exit-code=9"];

/// Runs a host program and compares it with a run without us: but for the pid, nothing differs.
fn run_unharmed(host: Host<'_>) -> u32 {
    let alone = World::new().unwrap();
    let alone = alone.host(&ARGUMENTS).without("CUDA_INJECTION64_PATH");
    let alone = alone.start_listed("1").unwrap().finish().unwrap();
    let outcome = host.start_listed("1").unwrap().finish().unwrap();
    let pid = |pid: u32| format!("\"pid\":{pid}");
    let lines: Vec<String> =
        outcome.lines.iter().map(|line| line.replace(&pid(outcome.pid), &pid(alone.pid))).collect();
    assert_eq!(lines, alone.lines);
    assert_eq!(outcome.status, alone.status);
    assert_eq!(outcome.errors, "");
    outcome.pid
}

/// Nothing is published, and the log's only line says why.
fn measures_nothing_because(world: &World, pid: u32, why: &str) {
    assert_eq!(world.published_by(pid).unwrap().files, 0);
    let log = world.log().unwrap();
    assert_eq!(log.len(), 1, "{log:?}");
    assert!(log[0].contains("measuring nothing") && log[0].contains(why), "{log:?}");
}

#[test]
fn a_call_that_fails_disables_measuring_for_the_life_of_the_process() {
    for (fault, why) in [
        ("subscribe=35", "cuptiSubscribe failed with 35"),
        ("subscribe=8", "cuptiSubscribe failed with 8"),
        ("subscribe=4711", "cuptiSubscribe failed with 4711"),
        ("enable=8", "cuptiEnableCallback failed with 8"),
        ("version=14", "has CUPTI API version 14"),
    ] {
        let world = World::new().unwrap();
        let pid = run_unharmed(world.host(&ARGUMENTS).env("STANDIN_CUPTI_FAULT", fault));
        measures_nothing_because(&world, pid, why);
    }
}

/// Each call that a window needs, failing each in its own way.
#[test]
fn a_failing_call_of_the_sass_metrics_ends_counting_and_nothing_else() {
    let calls = [
        "profiler-initialize",
        "device-supported",
        "chip-name",
        "properties",
        "set-config",
        "sass-enable",
        "data-properties",
        "flush-data",
        "sass-disable",
        "unset-config",
    ];
    for (call, code) in calls.into_iter().zip([8, 35, 14].into_iter().cycle()) {
        let world = World::new().unwrap();
        let fault = format!("{call}={code}");
        let host = world.host(&COUNTED).env("STANDIN_CUPTI_FAULT", &fault);
        let host = host.env("WARPGAUGE_WINDOW_INTERVAL", "0.01");
        let outcome = host.start_listed("0,1,2,3").unwrap().finish().unwrap();
        assert_eq!((outcome.status.code(), outcome.errors.as_str()), (Some(9), ""), "{fault}");
        let published = world.published_by(outcome.pid).unwrap();
        assert_eq!(published.launches, outcome.launches(), "{fault}: every launch is counted");
        assert_eq!(published.rounded().get("75"), Some(&outcome.launches()), "{fault}");
        assert_eq!(published.instructions, None, "{fault}: never a zero");
        let log = world.log().unwrap();
        let said = log.iter().filter(|line| line.contains("cannot be measured"));
        assert!((1..=3).contains(&said.count()), "{fault}: {log:?}");
    }
}

/// As [`ARGUMENTS`], with time for windows.
const COUNTED: [&str; 6] = [
    "--pause-before",
    "init",
    "--seconds=0.8",
    "--rate=500",
    "--kernel=tiled=4:128",
    "--exit-code=9",
];

/// Names that are no addresses, constants, twice the same or within a block: none is freed wrongly.
#[test]
fn names_of_records_that_are_not_what_they_should_be_harm_nobody() {
    for names in 1..=4 {
        let world = World::new().unwrap();
        let fault = format!("record-names={names}");
        let host = world.host(&COUNTED).env("STANDIN_CUPTI_FAULT", &fault);
        let host = host.env("WARPGAUGE_WINDOW_INTERVAL", "0.01");
        let outcome = host.start_listed("0,2").unwrap().finish().unwrap();
        assert_eq!((outcome.status.code(), outcome.errors.as_str()), (Some(9), ""), "{fault}");
        let published = world.published_by(outcome.pid).unwrap();
        assert_eq!(published.instructions, Some(outcome.instructions()), "{fault}");
    }
}

#[test]
fn records_that_are_none_or_too_many_or_garbage_are_never_published() {
    for (fault, why) in [
        ("no-records", "counted nothing"),
        ("many-records", "counted nothing"),
        ("garbage=1", "counted nothing"),
        ("garbage=2", "cuptiSassMetricsFlushData failed with 999"),
    ] {
        let world = World::new().unwrap();
        let host = world.host(&COUNTED).env("STANDIN_CUPTI_FAULT", fault);
        let host = host.env("WARPGAUGE_WINDOW_INTERVAL", "0.01");
        let outcome = host.start_listed("0,1,2,3").unwrap().finish().unwrap();
        assert_eq!((outcome.status.code(), outcome.errors.as_str()), (Some(9), ""), "{fault}");
        let published = world.published_by(outcome.pid).unwrap();
        assert_eq!((published.instructions, published.launches), (None, outcome.launches()));
        let log = world.log().unwrap();
        assert_eq!(log.iter().filter(|line| line.contains(why)).count(), 1, "{fault}: {log:?}");
    }
}

#[test]
fn a_window_over_the_limit_is_the_last_one() {
    let world = World::new().unwrap();
    let arguments = ["--pause-before", "init", "--seconds=5", "--rate=100"];
    let host = world.host(&arguments).env("STANDIN_CUPTI_FAULT", "slow-window=2500");
    let host = host.env("WARPGAUGE_WINDOW_BUDGET_PERCENT", "100");
    let outcome = host.start_listed("0").unwrap().finish().unwrap();
    assert!(outcome.status.success() && outcome.errors.is_empty(), "{outcome:?}");
    let log = world.log().unwrap();
    let said = log.iter().filter(|line| line.contains("cannot be measured any more"));
    assert_eq!(said.count(), 1, "{log:?}");
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, outcome.launches());
}

/// Nothing more is asked of CUPTI about a context that is gone.
#[test]
fn a_context_that_is_destroyed_inside_a_window_is_left_alone() {
    let world = World::new().unwrap();
    let host = world.host(&COUNTED).env("STANDIN_CUPTI_FAULT", "context-gone");
    let host = host.env("WARPGAUGE_WINDOW_INTERVAL", "0.01");
    let outcome = host.start_listed("0,1").unwrap().finish().unwrap();
    assert_eq!((outcome.status.code(), outcome.errors.as_str()), (Some(9), ""));
    let published = world.published_by(outcome.pid).unwrap();
    assert_eq!((published.instructions, published.launches), (None, outcome.launches()));
    assert_eq!(world.cupti_log().unwrap(), ["subscribe"], "no call is out of order");
}

#[test]
fn a_metric_that_a_device_lacks_ends_its_function_alone() {
    let world = World::new().unwrap();
    let host = world.host(&COUNTED).env("STANDIN_CUPTI_FAULT", "lacks=4");
    let host = host.env("WARPGAUGE_WINDOW_INTERVAL", "0.01");
    let outcome = host.start_listed("0,3").unwrap().finish().unwrap();
    let published = world.published_by(outcome.pid).unwrap();
    assert_eq!(published.instructions, Some(outcome.instructions()));
    assert_eq!(published.divergence.get(), None);
    let log = world.log().unwrap();
    let said = log.iter().filter(|line| line.contains("branch_targets_threads_divergent"));
    assert_eq!(said.count(), 1, "{log:?}");
}

#[test]
fn under_mps_no_window_is_opened() {
    let world = World::new().unwrap();
    std::fs::File::create(world.path("control")).unwrap();
    let host = world.host(&COUNTED).env("CUDA_MPS_PIPE_DIRECTORY", world.path("."));
    let outcome = host.start_listed("0,1").unwrap().finish().unwrap();
    let published = world.published_by(outcome.pid).unwrap();
    assert_eq!((published.instructions, published.launches), (None, outcome.launches()));
    let log = world.log().unwrap();
    assert!(log.iter().any(|line| line.contains("MPS")), "{log:?}");
}

#[test]
fn a_slot_that_was_taken_in_vain_is_given_back() {
    let world = World::new().unwrap();
    run_unharmed(world.host(&ARGUMENTS).env("STANDIN_CUPTI_FAULT", "enable=35"));
    let calls = world.cupti_log().unwrap();
    assert_eq!(calls, ["subscribe", "enable refused with 35", "unsubscribe"]);
}

#[test]
fn a_function_that_is_missing_is_named() {
    for function in ["cuptiGetVersion", "cuptiSubscribe", "cuptiEnableCallback", "cuptiUnsubscribe"]
    {
        let world = World::new().unwrap();
        world.hide_from_cupti(function).unwrap();
        let pid = run_unharmed(world.host(&ARGUMENTS));
        measures_nothing_because(&world, pid, &format!("symbol {function} is missing"));
    }
}

#[test]
fn a_libcupti_that_is_not_there_is_said_with_what_to_do() {
    let world = World::new().unwrap();
    std::fs::remove_file(world.libcupti()).unwrap();
    let pid = run_unharmed(world.host(&ARGUMENTS).env("WARPGAUGE_CUPTI_PATH", "/nowhere/libcupti"));
    measures_nothing_because(&world, pid, "set cupti_path");
}

#[test]
fn a_libcupti_at_another_place_is_found_where_the_settings_say() {
    let world = World::new().unwrap();
    let elsewhere = world.path("elsewhere.so");
    std::fs::rename(world.libcupti(), &elsewhere).unwrap();
    let pid = run_unharmed(world.host(&ARGUMENTS).env("WARPGAUGE_CUPTI_PATH", &elsewhere));
    assert_eq!(world.published_by(pid).unwrap().launches, 20);
}

#[test]
fn a_symbol_name_that_cannot_be_read_is_not_read() {
    let world = World::new().unwrap();
    let pid = run_unharmed(world.host(&ARGUMENTS).env("STANDIN_CUPTI_FAULT", "symbol-name"));
    assert_eq!(world.published_by(pid).unwrap().launches, 20);
}

#[test]
fn a_slow_cupti_holds_up_neither_the_launches_nor_the_exit_of_a_process_listed_late() {
    let world = World::new().unwrap();
    let arguments = ["--seconds=2", "--rate=500", "--pause-before", "launch"];
    let host = world.host(&arguments).env("STANDIN_CUPTI_FAULT", "slow=600000");
    let mut host = host.start().unwrap();
    host.wait_until_ready().unwrap();
    world.list(&[(host.pid(), "1")]).unwrap();
    host.go_on().unwrap();
    let outcome = host.finish().unwrap();
    assert!(outcome.status.success() && outcome.launches() > 0, "{outcome:?}");
    assert_eq!(outcome.errors, "");
}

#[test]
fn settings_that_are_wrong_are_said_and_the_rest_holds() {
    let world = World::new().unwrap();
    let host = world
        .host(&ARGUMENTS)
        .env("WARPGAUGE_CONF_FILE", "/nowhere/warpgauge.conf")
        .env("WARPGAUGE_VERBOSE", "perhaps");
    let pid = run_unharmed(host);
    assert_eq!(world.published_by(pid).unwrap().launches, 20);
    let log = world.log().unwrap();
    assert!(log[0].contains("/nowhere/warpgauge.conf"), "{log:?}");
    assert!(log[1].contains("WARPGAUGE_VERBOSE"), "{log:?}");
}

/// Things that are no settings, some of which would hold up whoever opens or reads them.
#[test]
fn whatever_stands_in_the_place_of_the_settings_file_the_program_starts() {
    let put: [fn(&Path); 6] = [
        |place| mkfifo(place, Mode::S_IRWXU).unwrap(),
        |place| std::os::unix::fs::symlink(place, place).unwrap(),
        |place| std::fs::create_dir(place).unwrap(),
        |place| std::fs::File::create(place).unwrap().set_len(1 << 40).unwrap(),
        |place| std::fs::copy("/proc/self/exe", place).map(drop).unwrap(),
        |place| {
            let mut file = std::fs::File::create(place).unwrap();
            file.write_all(&b"\x1b[2J\xff\x00=\n".repeat(8000)).unwrap();
        },
    ];
    for put in put {
        let world = World::new().unwrap();
        let place = world.path("settings");
        put(&place);
        let pid = run_unharmed(world.host(&ARGUMENTS).env("WARPGAUGE_CONF_FILE", &place));
        assert_eq!(world.published_by(pid).unwrap().launches, 20);
        let log = std::fs::read(world.path("instrument.log")).unwrap();
        assert!(log.iter().all(|byte| *byte == b'\n' || !byte.is_ascii_control()));
        let lines = world.log().unwrap();
        assert!((2..30).contains(&lines.len()) && lines[0].contains("settings"), "{lines:?}");
    }
}

#[test]
fn a_log_that_cannot_be_written_changes_nothing() {
    let world = World::new().unwrap();
    let pid = run_unharmed(world.host(&ARGUMENTS).env("WARPGAUGE_LOGFILE", "/nowhere/log"));
    assert_eq!(world.published_by(pid).unwrap().launches, 20);
}
