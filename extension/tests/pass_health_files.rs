//! Health files of killed processes go; those of living ones, and what only looks like one, stay.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use support::world::{World, finish};

/// A file that was last written this long ago.
fn leave(world: &World, name: &str, ago: Duration) -> PathBuf {
    let path = world.measurements().join(name);
    let file = File::create(&path).unwrap();
    file.set_modified(SystemTime::now() - ago).unwrap();
    path
}

const LONG: Duration = Duration::from_secs(25 * 3_600);

/// No process of Linux has it: the largest possible is 4,194,304.
const NOBODY: u32 = 4_200_000;

#[test]
fn what_a_killed_process_left_goes_and_is_counted() {
    let world = World::new();
    let left = leave(&world, &format!(".{NOBODY}.health"), LONG);
    let unfinished = leave(&world, &format!(".{NOBODY}.health.new"), LONG);
    world.pass_ends(0);
    assert!(!left.exists() && !unfinished.exists());
    let exported = fs::read_to_string(world.path("metrics.otlp.jsonl")).unwrap();
    assert!(exported.contains("warpgauge.health_files.removed"), "{exported}");
}

#[test]
fn what_is_young_or_of_a_living_process_or_no_health_file_stays() {
    let world = World::new();
    let sleeper = world.sleeper();
    let elsewhere = world.path("elsewhere");
    File::create(&elsewhere).unwrap();
    let link = world.measurements().join(format!(".{}.health", NOBODY + 1));
    symlink(&elsewhere, &link).unwrap();
    let staying = [
        leave(&world, &format!(".{NOBODY}.health"), Duration::from_secs(3_600)),
        leave(&world, &format!(".{}.health", sleeper.pid()), LONG),
        leave(&world, ".health", LONG),
        leave(&world, ".x.health", LONG),
        link,
        elsewhere,
    ];
    world.pass_ends(0);
    world.pass_ends(0);
    for path in staying {
        assert!(path.symlink_metadata().is_ok(), "{}", path.display());
    }
}

#[test]
fn a_process_that_a_pass_saw_end_is_cleared_up_after_within_minutes() {
    let world = World::new();
    let sleeper = world.sleeper();
    let pid = sleeper.pid();
    world.pass_ends(0);
    drop(sleeper);
    world.pass_ends(0);
    let young = leave(&world, &format!(".{pid}.health"), Duration::from_secs(30));
    world.pass_ends(0);
    assert!(young.exists());
    let left = leave(&world, &format!(".{pid}.health"), Duration::from_secs(90));
    world.pass_ends(0);
    assert!(!left.exists());
}

#[test]
fn a_line_set_before_the_first_pass_leaves_the_state_private() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let sleeper = world.sleeper();
    let set = finish(world.command(&["control", "set", &sleeper.pid().to_string(), "1"]));
    assert!(set.status.success(), "{set:#?}");
    assert_eq!(world.state().metadata().unwrap().permissions().mode() & 0o7777, 0o700);
}
