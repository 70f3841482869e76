//! The runtime configuration, written by passes, by people and by `warpgauge control`, and read by
//! everybody all the time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::unistd::Uid;
use support::fake_proc::{FakeProc, FakeProcess};
use support::points::sum;
use support::world::{Pass, World, finish, names_in, write};
use warpgauge::metrics::INSTRUCTIONS;
use warpgauge_wire::runtime_config::{LineKind, lines};
use warpgauge_wire::{Entry, plan_for};

fn content(world: &World) -> String {
    fs::read_to_string(world.runtime_config()).unwrap()
}

/// What the instrument of a process would do.
fn plan(world: &World, pid: u32) -> Option<String> {
    plan_for(content(world).as_bytes(), pid).map(|entry| entry.to_string())
}

fn entries(content: &[u8]) -> Vec<Entry> {
    let entry = |kind| match kind {
        LineKind::Entry(entry) => Some(entry),
        LineKind::Malformed(fault) => panic!("{fault}: {:?}", String::from_utf8_lossy(content)),
        LineKind::Blank | LineKind::Comment => None,
    };
    lines(content).filter_map(|line| entry(line.kind)).collect()
}

/// Adds to the file as a person with an editor would.
fn edit(world: &World, text: &str) {
    let mut file = OpenOptions::new().append(true).open(world.runtime_config()).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn it_lists_the_groups_processes_and_everybody_may_read_it() {
    let mut world = World::new();
    world.head += "functions = [\"occupancy\", \"divergence\"]\n";
    let sleepers = [world.sleeper(), world.sleeper()];
    let pass = world.pass_ends(0);
    assert_eq!(pass.report["listed"], 2);
    for sleeper in &sleepers {
        let pid = sleeper.pid();
        assert_eq!(plan(&world, pid), Some(format!("{pid}:1,3")));
    }
    assert_eq!(world.runtime_config().metadata().unwrap().mode() & 0o7777, 0o644);
}

#[test]
fn unchanged_it_is_not_written_again() {
    let world = World::new();
    let sleeper = world.sleeper();
    let stamp = || {
        let metadata = world.runtime_config().metadata().unwrap();
        (metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.ctime_nsec())
    };
    assert_eq!(world.pass_ends(0).report["runtime_config_changed"], true);
    let before = stamp();
    for _ in 0..3 {
        assert_eq!(world.pass_ends(0).report["runtime_config_changed"], false);
    }
    assert_eq!(stamp(), before);
    sleeper.end();
    assert_eq!(world.pass_ends(0).report["runtime_config_changed"], true);
    assert_ne!(stamp().0, before.0, "a new file took its place");
    let junk = names_in(&world.path("")).into_iter().find(|name| name.starts_with('.'));
    assert_eq!(junk, None);
}

#[test]
fn no_reader_ever_sees_a_part_of_it() {
    let mut world = World::new();
    let sleepers: Vec<_> = (0..5).map(|_| world.sleeper()).collect();
    world.pass_ends(0);
    let (path, stop) = (world.runtime_config(), AtomicBool::new(false));
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut inodes, mut contents) = (HashSet::new(), HashSet::new());
            while !stop.load(Ordering::SeqCst) {
                let content = fs::read(&path).unwrap();
                assert!(content.starts_with(b"#: ") && content.ends_with(b"\n"));
                assert_eq!(entries(&content).len(), sleepers.len());
                inodes.insert(path.metadata().unwrap().ino());
                contents.insert(content);
            }
            (inodes.len(), contents.len())
        });
        let head = world.head.clone();
        for functions in ["instructions", "occupancy", "coalescence", "divergence"].repeat(5) {
            world.head = format!("{head}functions = [\"{functions}\"]\n");
            world.pass_ends(0);
        }
        stop.store(true, Ordering::SeqCst);
        reader.join().unwrap()
    });
    assert!(seen.0 > 1 && seen.1 > 1, "the reader saw {seen:?} files and contents");
}

#[test]
fn a_persons_line_wins_and_stays_until_its_process_has_ended() {
    let world = World::new();
    let (sleeper, stranger) = (world.sleeper(), world.stranger());
    world.pass_ends(0);
    let (pid, other) = (sleeper.pid(), stranger.pid());
    edit(&world, &format!("# looking into it\r\n {other} : 2 , 77 # mine\r\n{pid}:1"));
    for _ in 0..2 {
        let pass = world.pass_ends(0);
        assert_eq!(pass.report["listed"], 2);
        assert_eq!(plan(&world, other), Some(format!("{other}:2,77")));
        assert_eq!(plan(&world, pid), Some(format!("{pid}:1")));
        let lines = format!("# looking into it\n {other} : 2 , 77 # mine\n{pid}:1\n");
        assert!(content(&world).contains(&lines), "{}", content(&world));
    }
    stranger.end();
    let pass = world.pass_ends(0);
    let remark = format!("process {other} has ended; its line is dropped");
    assert_eq!(pass.lines_with(&remark).len(), 1, "{}", pass.log);
    assert_eq!(plan(&world, other), None);
    assert_eq!(plan(&world, pid), Some(format!("{pid}:1")));
}

#[test]
fn a_reused_pid_does_not_inherit_a_persons_line() {
    let mut world = World::new();
    let proc = FakeProc::new();
    world.proc = proc.path("");
    let process = FakeProcess::new("editor").uids([Uid::effective().as_raw(); 4]);
    process.clone().start_ticks(5_000).create(&proc, 4_242);
    assert_eq!(world.run(&["control", "set", "4242", "0"]).code(), Some(0));
    world.pass_ends(0);
    assert!(plan(&world, 4_242).is_some());
    fs::remove_dir_all(proc.path("4242")).unwrap();
    process.start_ticks(6_000).create(&proc, 4_242);
    let pass = world.pass_ends(0);
    assert_eq!(pass.lines_with("process 4242 has ended").len(), 1, "{}", pass.log);
    assert_eq!(plan(&world, 4_242), None);
    // A line for the new process holds, although the old one is still remembered.
    assert_eq!(world.run(&["control", "set", "4242", "1"]).code(), Some(0));
    world.pass_ends(0);
    assert_eq!(plan(&world, 4_242).as_deref(), Some("4242:1"));
}

#[test]
fn a_line_for_a_pid_that_was_another_process_s_lately_holds() {
    let mut world = World::new();
    let proc = FakeProc::new();
    world.proc = proc.path("");
    let process = FakeProcess::new("editor").uids([Uid::effective().as_raw(); 4]);
    process.clone().start_ticks(5_000).create(&proc, 4_242);
    assert_eq!(world.run(&["control", "set", "4242", "0"]).code(), Some(0));
    world.pass_ends(0);
    fs::remove_dir_all(proc.path("4242")).unwrap();
    world.pass_ends(0);
    process.start_ticks(6_000).create(&proc, 4_242);
    edit(&world, "4242:1\n");
    for _ in 0..2 {
        world.pass_ends(0);
        assert_eq!(plan(&world, 4_242).as_deref(), Some("4242:1"));
    }
}

#[test]
fn switched_off_nothing_is_measured_and_switched_on_everything_is_as_before() {
    let mut world = World::new();
    let (sleeper, stranger) = (world.sleeper(), world.stranger());
    let pid = stranger.pid().to_string();
    assert_eq!(world.run(&["control", "set", &pid, "occupancy"]).code(), Some(0));
    world.pass_ends(0);
    let before = content(&world);
    assert_eq!(entries(before.as_bytes()).len(), 2);

    let head = world.head.clone();
    world.head += "instrumentation_enabled = false\n";
    let pass = world.pass_ends(0);
    assert_eq!(pass.report["listed"], 0);
    assert_eq!(entries(content(&world).as_bytes()), []);
    // What was measured before is not lost.
    world.publish(sleeper.pid(), "0:7\n");
    world.pass_ends(0);
    assert_eq!(sum(&world.exported(), INSTRUCTIONS.name), 7);

    world.head = head;
    world.pass_ends(0);
    assert_eq!(content(&world), before);
}

#[test]
fn a_line_that_nobody_can_read_is_named_kept_and_harms_no_other() {
    let world = World::new();
    let (sleeper, stranger) = (world.sleeper(), world.stranger());
    world.pass_ends(0);
    let number = content(&world).lines().count() + 1;
    edit(&world, &format!("51:\n{}:0\n\u{202e}\x1b[31m\n", stranger.pid()));
    let pass = world.pass_ends(0);
    assert_eq!(pass.lines_with(&format!("line {number}: ")).len(), 1, "{}", pass.log);
    assert!(pass.log.contains("`51:`"), "{}", pass.log);
    assert!(!pass.log.contains('\x1b') && !pass.log.contains('\u{202e}'), "{}", pass.log);
    assert!(plan(&world, stranger.pid()).is_some() && plan(&world, sleeper.pid()).is_some());
    assert!(content(&world).contains("\n51:\n"));
    let lint = world.run(&["control", "lint", "--json"]);
    assert_eq!(lint.code(), Some(1), "{lint:#?}");
    assert_eq!(lint.report["findings"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_no_file_is_not_overwritten_and_the_measurements_still_travel() {
    let world = World::new();
    let sleeper = world.sleeper();
    world.pass_ends(0);
    world.publish(sleeper.pid(), "0:7\n");
    fs::remove_file(world.runtime_config()).unwrap();
    fs::create_dir(world.runtime_config()).unwrap();
    let pass = world.pass_ends(78);
    let path = world.runtime_config().display().to_string();
    assert!(pass.report["runtime_config_failure"].as_str().unwrap().contains(&path));
    assert_eq!(sum(&world.exported(), INSTRUCTIONS.name), 7);
}

#[test]
fn control_works_while_passes_run() {
    let world = World::new();
    let _sleeper = world.sleeper();
    world.pass_ends(0);
    let strangers: Vec<_> = (0..6).map(|_| world.stranger()).collect();
    let stop = AtomicBool::new(false);
    let control = |arguments: &[&str]| -> Pass { finish(world.command(arguments)) };
    std::thread::scope(|scope| {
        let passes = scope.spawn(|| {
            let mut worked = 0;
            while !stop.load(Ordering::SeqCst) {
                let pass = world.pass();
                assert!(matches!(pass.code(), Some(0 | 75)), "{pass:#?}");
                worked += usize::from(pass.code() == Some(0));
            }
            worked
        });
        for stranger in &strangers {
            let pid = stranger.pid().to_string();
            let set = control(&["control", "set", &pid, "0,occupancy"]);
            assert_eq!(set.code(), Some(0), "{set:#?}");
        }
        for stranger in &strangers[..3] {
            let unset = control(&["control", "unset", &stranger.pid().to_string()]);
            assert_eq!(unset.code(), Some(0), "{unset:#?}");
        }
        stop.store(true, Ordering::SeqCst);
        assert!(passes.join().unwrap() > 0, "no pass came to work");
    });
    world.pass_ends(0);
    for (position, stranger) in strangers.iter().enumerate() {
        let pid = stranger.pid();
        let expected = (position >= 3).then(|| format!("{pid}:0,1"));
        assert_eq!(plan(&world, pid), expected, "{}", content(&world));
    }
    let show = world.run(&["control", "show", "--json"]);
    let shown = show.report["entries"].as_array().unwrap();
    assert_eq!(shown.len(), 4);
    assert_eq!(shown.iter().filter(|entry| entry["by_hand"] == true).count(), 3);
    assert!(shown.iter().all(|entry| entry["running"] == true));
    let lint = world.run(&["control", "lint", "--json"]);
    assert_eq!(lint.code(), Some(0), "{lint:#?}");
}

#[test]
fn control_says_what_it_cannot_do() {
    let world = World::new();
    world.pass_ends(0);
    let before = content(&world);
    for arguments in [["control", "set", "4194305", "0"], ["control", "set", "1", "speed"]] {
        let set = world.run(&arguments);
        assert_eq!(set.code(), Some(2), "{set:#?}");
        assert!(set.log.contains(if arguments[3] == "0" { "no process" } else { "no function" }));
    }
    let unset = world.run(&["control", "unset", "4194305"]);
    assert_eq!(unset.code(), Some(0));
    assert_eq!(content(&world), before);
    write(world.runtime_config(), "4194305:0\n7:0\n7:0,9\n");
    let lint = world.run(&["control", "lint", "--json"]);
    assert_eq!(lint.code(), Some(1));
    let said = lint.report["findings"].to_string();
    for words in ["4194305 does not run", "a later line", "unknown function ids 9"] {
        assert!(said.contains(words), "{said}");
    }
}
