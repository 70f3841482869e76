//! Files that a pass has counted and may not remove.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::fs;
use std::os::unix::fs::chown;

use support::points::{assert_windows_follow, sum};
use support::world::{World, is_root};
use warpgauge::metrics::{INSTRUCTIONS, MEASUREMENTS_READ};

/// Who runs the pass, and who is measured. The folder is root's and sticky, so the one cannot remove
/// the other's files.
const RUNS: u32 = 54_321;
const MEASURED: u32 = 54_322;

#[test]
fn counted_files_that_cannot_be_removed_are_not_counted_again() {
    if !is_root() {
        eprintln!("skipped: only root can start processes of other users");
        return;
    }
    let world = World::new();
    world.give_to("", RUNS);
    let sleeper = world.sleeper_as(MEASURED);
    let publish = |content: &str| {
        let path = world.publish(sleeper.pid(), content);
        chown(&path, Some(MEASURED), Some(MEASURED)).unwrap();
        path
    };
    let first = publish("0:7\n");
    let total = || sum(&world.exported(), INSTRUCTIONS.name);
    for _ in 0..3 {
        let pass = world.pass_as(RUNS);
        assert_eq!(pass.code(), Some(0), "{pass:#?}");
        assert_eq!(total(), 7);
    }
    let pass = world.pass_as(RUNS);
    assert_eq!(pass.lines_with("1 counted files cannot be removed").len(), 1, "{}", pass.log);
    assert!(pass.log.contains(first.file_name().unwrap().to_str().unwrap()), "{}", pass.log);

    // More of them, and one that its owner removes.
    let second = publish("0:20\n");
    assert_eq!(world.pass_as(RUNS).code(), Some(0));
    assert_eq!(total(), 27);
    fs::remove_file(&first).unwrap();
    for _ in 0..2 {
        assert_eq!(world.pass_as(RUNS).code(), Some(0));
        assert_eq!(total(), 27);
    }
    // A preview counts them no more than a pass does.
    let preview = world.run(&["run", "--dry-run", "--json"]);
    assert_eq!(preview.report["read"], 0, "{preview:#?}");

    // A user that may remove them does, and then nothing is left to remember.
    world.pass_ends(0);
    assert!(!second.exists());
    world.pass_ends(0);
    assert_eq!(world.spooled(), Vec::<String>::new());
    assert_eq!(total(), 27);
    assert_eq!(sum(&world.exported(), MEASUREMENTS_READ.name), 2);
    assert_windows_follow(&world.exported());
}
