//! However a program ends or doubles itself: what was launched is published once, and the program
//! never notices.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::fs;

use warpgauge_tests::{Outcome, World, eventually};

/// Runs a listed program that publishes at its end alone.
fn run_to_the_end(world: &World, arguments: &[&str]) -> Outcome {
    let arguments = [&["--pause-before", "init", "--exit-code=7"], arguments].concat();
    let host = world.host(&arguments).env("WARPGAUGE_FLUSH_INTERVAL", "3600");
    let outcome = host.start_listed("1").unwrap().finish().unwrap();
    assert_eq!(outcome.status.code(), Some(7), "{outcome:?}");
    assert_eq!(outcome.errors, "");
    outcome
}

#[test]
fn launches_are_published_when_main_returns() {
    let world = World::new().unwrap();
    let outcome = run_to_the_end(&world, &["--launches=50"]);
    let published = world.published_by(outcome.pid).unwrap();
    assert_eq!((published.launches, published.files), (50, 1));
}

#[test]
fn launches_are_published_when_another_thread_calls_exit_at_once() {
    let world = World::new().unwrap();
    let outcome = run_to_the_end(&world, &["--launches=50", "--mode=exit-now"]);
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 50);
}

#[test]
fn a_program_without_a_launch_publishes_nothing() {
    let world = World::new().unwrap();
    let outcome = run_to_the_end(&world, &["--launches=0"]);
    assert_eq!(world.published_by(outcome.pid).unwrap().files, 0);
}

#[test]
fn a_forked_child_publishes_nothing_of_its_parents() {
    let world = World::new().unwrap();
    let outcome = run_to_the_end(&world, &["--launches=50", "--mode=fork"]);
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 50);
    let files: Vec<_> = fs::read_dir(world.measurements()).unwrap().collect();
    assert_eq!(files.len(), 1, "the parent's: {files:?}");
    assert_eq!(world.cupti_log().unwrap(), ["subscribe"]);
}

/// A program that is replaced gives no notice, so its periodic files are what stands of it. The new
/// one has the same pid, is injected into and is listed from its first launch.
#[test]
fn a_program_that_replaces_itself_is_injected_into_anew() {
    let world = World::new().unwrap();
    let host = world.host(&[
        "--mode=exec",
        "--launches=50",
        "--pause-before",
        "init",
        "--pause-before",
        "exit",
    ]);
    let mut host = host.start_listed("1").unwrap();
    let pid = host.pid();
    host.wait_until_ready_after_report().unwrap();
    eventually("the first half is published", || {
        Ok((world.published_by(pid)?.launches == 25).then_some(()))
    })
    .unwrap();
    host.go_on().unwrap();
    let outcome = host.finish().unwrap();
    assert!(outcome.status.success(), "{outcome:?}");
    assert_eq!(outcome.launches(), 50);
    assert_eq!(world.published_by(pid).unwrap().launches, 50);
    assert_eq!(world.cupti_log().unwrap(), ["subscribe", "subscribe"]);
}

/// `_exit` runs nothing: what was published before stands, and the rest is lost with the program.
#[test]
fn a_program_that_ends_without_handlers_keeps_what_was_published_before() {
    let world = World::new().unwrap();
    let host = world.host(&[
        "--mode=abrupt",
        "--launches=50",
        "--exit-code=7",
        "--pause-before",
        "init",
        "--pause-before",
        "exit",
    ]);
    let mut host = host.start_listed("1").unwrap();
    let pid = host.pid();
    host.wait_until_ready_after_report().unwrap();
    eventually("the periodic file appears", || {
        Ok((world.published_by(pid)?.launches == 50).then_some(()))
    })
    .unwrap();
    host.go_on().unwrap();
    assert_eq!(host.finish().unwrap().status.code(), Some(7));
    assert_eq!(world.published_by(pid).unwrap().launches, 50);
}
