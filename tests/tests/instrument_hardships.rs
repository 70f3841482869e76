//! Whatever a program does to itself, its threads, its files or its rights: with the library inside
//! it says the same and ends the same as without.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use nix::unistd::Uid;
use warpgauge_tests::{Host, Outcome, World};

const LAUNCHES: &str = "0,1,2,3";

/// What differs from one run to the next.
fn without_pid(outcome: &Outcome) -> Vec<String> {
    let pid = format!("\"pid\":{}", outcome.pid);
    outcome.lines.iter().map(|line| line.replace(&pid, "")).collect()
}

fn host<'world>(world: &'world World, arguments: &[&str]) -> Host<'world> {
    let arguments = [&["--pause-before", "init", "--exit-code=9"], arguments].concat();
    let host = world.host(&arguments).env("WARPGAUGE_WINDOW_INTERVAL", "0.01");
    // The stand-in opens its log under any number that is free.
    host.without("STANDIN_CUPTI_LOG").env("WARPGAUGE_WINDOW_BUDGET_PERCENT", "50")
}

/// Runs a program with the library and without it, and finds no difference.
fn run_alike(world: &World, arguments: &[&str]) -> Outcome {
    let alone = host(world, arguments).without("CUDA_INJECTION64_PATH").start_listed("1").unwrap();
    let alone = alone.finish().unwrap();
    assert_eq!(alone.status.code(), Some(9), "{arguments:?}: a run alone: {alone:?}");
    let outcome = host(world, arguments).start_listed(LAUNCHES).unwrap().finish().unwrap();
    assert_eq!(outcome.status, alone.status, "{arguments:?}: {outcome:?}");
    assert_eq!(outcome.errors, alone.errors, "{arguments:?}");
    assert_eq!(without_pid(&outcome), without_pid(&alone), "{arguments:?}");
    outcome
}

/// As many launches as take more than a second, so that the library works in their midst.
const FOR_A_WHILE: [&str; 2] = ["--launches=600", "--rate=500"];

const SHORTLY: [&str; 2] = ["--launches=100", "--rate=500"];

fn endure(hardship: &str) -> (World, Outcome) {
    let world = World::new().unwrap();
    let hardship = format!("--hardship={hardship}");
    let outcome = run_alike(&world, &[&FOR_A_WHILE[..], &[&hardship]].concat());
    (world, outcome)
}

/// Hardships that only root may choose; nobody else meets them.
fn is_root() -> bool {
    if !Uid::effective().is_root() {
        eprintln!("not shown: this needs root");
    }
    Uid::effective().is_root()
}

#[test]
fn a_program_with_closed_streams_never_writes_into_our_files() {
    let (world, outcome) = endure("closed-streams");
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 600);
    assert!(fs::read_to_string(world.path("instrument.log")).unwrap().contains("kernels: "));
}

#[test]
fn a_program_that_closes_all_descriptors_all_the_time_is_measured_all_the_same() {
    let (world, outcome) = endure("close-files");
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 600);
}

#[test]
fn a_program_that_changes_its_folder_is_measured_where_the_settings_meant() {
    let world = World::new().unwrap();
    let arguments = [&FOR_A_WHILE[..], &["--hardship=chdir"]].concat();
    let host = host(&world, &arguments)
        .env("WARPGAUGE_MEASUREMENTS_OUTPUT_DIR", "measurements")
        .env("WARPGAUGE_RUNTIME_CONFIG_PATH", "runtime.conf")
        .env("WARPGAUGE_LOGFILE", "./instrument.log");
    let outcome = host.start_listed("1").unwrap().finish().unwrap();
    assert_eq!((outcome.status.code(), outcome.errors.as_str()), (Some(9), ""));
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 600);
    assert!(world.log().unwrap().last().unwrap().contains("saxpy"));
}

#[test]
fn a_program_that_forgets_its_environment_is_measured_by_what_it_was() {
    let (world, outcome) = endure("clear-environment");
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 600);
}

#[test]
fn without_descriptors_or_room_in_files_or_leave_to_open_them_nothing_is_written_and_said() {
    for hardship in ["no-files", "no-file-size", "sandbox"] {
        endure(hardship);
    }
}

/// The first write over the limit raises SIGXFSZ, in `cuInit` as well.
#[test]
fn a_log_over_the_limit_for_file_sizes_does_not_end_the_program() {
    let world = World::new().unwrap();
    let limited = host(&world, &FOR_A_WHILE).after("ulimit -f 0").env("WARPGAUGE_VERBOSE", "true");
    let outcome = limited.start_listed(LAUNCHES).unwrap().finish().unwrap();
    assert_eq!((outcome.status.code(), outcome.errors.as_str()), (Some(9), ""));
    assert_eq!(outcome.launches(), 600);
}

#[test]
fn a_program_that_unloads_the_library_keeps_it() {
    let (world, outcome) = endure("unload");
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 600);
}

#[test]
fn a_library_that_is_preloaded_as_well_is_one_library() {
    let world = World::new().unwrap();
    let arguments = [&FOR_A_WHILE[..], &["--hardship=unload"]].concat();
    let host = host(&world, &arguments)
        .env("LD_PRELOAD", &world.artifacts().instrument)
        .env("STANDIN_CUPTI_LOG", world.path("cupti.log"));
    let outcome = host.start_listed("1").unwrap().finish().unwrap();
    assert_eq!((outcome.status.code(), outcome.errors.as_str()), (Some(9), ""));
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 600);
    assert_eq!(world.cupti_log().unwrap(), ["subscribe"]);
}

#[test]
fn a_program_that_cancels_every_thread_it_finds_does_not_reach_ours() {
    let (world, outcome) = endure("cancel");
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 600);
}

#[test]
fn a_program_that_gives_up_its_rights_or_its_files_runs_on() {
    if is_root() {
        for hardship in ["setuid", "chroot"] {
            endure(hardship);
        }
    }
}

#[test]
fn where_no_thread_may_be_started_nothing_is_measured_and_the_log_says_so() {
    if !is_root() {
        return;
    }
    let world = World::new().unwrap();
    // For the user that the program becomes.
    fs::set_permissions(world.path("."), Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(world.measurements(), Permissions::from_mode(0o777)).unwrap();
    run_alike(&world, &[&FOR_A_WHILE[..], &["--hardship=no-threads"]].concat());
    let log = world.log().unwrap();
    assert!(log.iter().any(|line| line.contains("no thread")), "{log:?}");
}

/// From a limit at which the library cannot even be loaded, over some at which its thread, CUPTI or
/// a window find no room, to one that is no limit.
#[test]
fn a_program_short_of_memory_has_enough_with_the_library_where_it_has_enough_without() {
    for kibibytes in [6_000, 8_000, 10_000, 12_000, 16_000, 20_000, 30_000, 80_000] {
        let world = World::new().unwrap();
        let limit = format!("ulimit -v {kibibytes}");
        let run = |host: Host<'_>| host.after(&limit).start_listed(LAUNCHES)?.finish();
        let Ok(alone) = run(host(&world, &SHORTLY).without("CUDA_INJECTION64_PATH")) else {
            continue;
        };
        let outcome = run(host(&world, &SHORTLY)).unwrap();
        assert_eq!(outcome.status, alone.status, "{limit}: {outcome:?}");
        assert_eq!(outcome.errors, alone.errors, "{limit}");
        assert_eq!(without_pid(&outcome), without_pid(&alone), "{limit}");
    }
}

#[test]
fn signals_at_a_high_rate_to_every_thread_change_nothing() {
    for restart in [&[][..], &["--restart"]] {
        let world = World::new().unwrap();
        let arguments = [&FOR_A_WHILE[..], &["--signals=2000"], restart].concat();
        let outcome = run_alike(&world, &arguments);
        assert_eq!(world.published_by(outcome.pid).unwrap().launches, 600);
    }
}

#[test]
fn ten_thousand_threads_come_and_go() {
    let world = World::new().unwrap();
    let threads = ["--mode=threads", "--threads=10000", "--at-once=250"];
    let outcome = run_alike(&world, &threads);
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 10_000);
}

/// 64 KiB is what a debug build of the stand-ins needs; the least that a thread may have is 16.
#[test]
fn threads_with_little_room_on_their_stacks_are_measured() {
    let world = World::new().unwrap();
    let threads = ["--mode=threads", "--threads=2", "--launches=300", "--rate=400"];
    let outcome = run_alike(&world, &[&threads[..], &["--stack=65536"]].concat());
    let published = world.published_by(outcome.pid).unwrap();
    assert_eq!(published.launches, 600);
}
