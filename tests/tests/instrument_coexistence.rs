//! Other profilers in the same process: CUPTI has one slot, and theirs is as good a claim as ours.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::fs;
use std::path::PathBuf;

use warpgauge_tests::{RunningHost, World, eventually};

/// A program with a profiler of its own, which has CUPTI's slot when it can and a file asks for it.
struct Profiled<'world> {
    world: &'world World,
    host: RunningHost,
    wanted: PathBuf,
}

impl<'world> Profiled<'world> {
    fn start(world: &'world World, options: &[&str]) -> Self {
        let wanted = world.path("profile");
        let profiler = format!("--profiler={}", wanted.display());
        let arguments = [&["--seconds=600", "--rate=300", &profiler][..], options].concat();
        let host = world.host(&arguments).start().unwrap();
        Self { world, host, wanted }
    }

    fn list(&self) {
        self.world.list(&[(self.host.pid(), "1")]).unwrap();
    }

    fn want(&self) {
        fs::File::create(&self.wanted).unwrap();
    }

    fn want_no_more(&self) {
        fs::remove_file(&self.wanted).unwrap();
    }

    fn wait_until_it_has_the_slot(&self, has: bool) {
        let has_it = self.world.path("profile.has");
        let what = format!("the profiler has the slot: {has}");
        eventually(&what, || Ok((has_it.exists() == has).then_some(()))).unwrap();
    }

    fn wait_for_a_file(&self) {
        let pid = self.host.pid();
        let so_far = self.world.published_by(pid).unwrap().files;
        eventually("a measurement file appears", || {
            Ok((self.world.published_by(pid)?.files > so_far).then_some(()))
        })
        .unwrap();
    }

    fn wait_until_said(&self, what: &str, times: usize) {
        eventually(&format!("{what:?} is said {times} times"), || {
            Ok((self.times_said(what) == times).then_some(()))
        })
        .unwrap();
    }

    fn times_said(&self, what: &str) -> usize {
        self.world.log().unwrap().iter().filter(|line| line.contains(what)).count()
    }

    fn state(&self) -> String {
        let health = self.world.health_of(self.host.pid()).unwrap().unwrap();
        health["state"].as_str().unwrap().to_owned()
    }

    fn end(mut self) {
        assert!(self.host.is_running().unwrap(), "the program runs on, whoever has the slot");
        self.host.end().unwrap();
    }
}

#[test]
fn a_profiler_that_comes_later_gets_the_slot_as_soon_as_the_process_is_off_the_list() {
    let world = World::new().unwrap();
    let program = Profiled::start(&world, &[]);
    program.list();
    program.wait_for_a_file();
    program.want();
    eventually("the profiler is refused", || {
        let calls = world.cupti_log()?;
        Ok(calls.iter().any(|call| call.contains("the slot is taken")).then_some(()))
    })
    .unwrap();
    program.wait_for_a_file();
    assert_eq!(program.times_said("another tool"), 0, "we notice nothing");
    world.list(&[]).unwrap();
    program.wait_until_it_has_the_slot(true);
    // Now it is there first: we wait until it has gone.
    program.list();
    program.wait_until_said("another tool has CUPTI's only slot", 1);
    let tries = |calls: Vec<String>| calls.iter().filter(|c| c.contains("refused")).count();
    let so_far = tries(world.cupti_log().unwrap());
    eventually("the slot is asked for again", || {
        Ok((tries(world.cupti_log()?) > so_far).then_some(()))
    })
    .unwrap();
    assert_eq!(program.state(), "armed");
    program.want_no_more();
    program.wait_for_a_file();
    assert_eq!(program.times_said("another tool has CUPTI's only slot"), 1, "once");
    program.end();
}

/// Whoever calls `cuptiFinalize` ends every subscription, and nobody is told.
#[test]
fn a_slot_that_is_taken_away_is_noticed_and_taken_again_when_it_is_free_but_not_for_ever() {
    let world = World::new().unwrap();
    let program = Profiled::start(&world, &["--rude"]);
    program.list();
    program.wait_for_a_file();
    for time in 1..=3 {
        program.want();
        program.wait_until_it_has_the_slot(true);
        program.wait_until_said("another tool took CUPTI's only slot", time);
        program.want_no_more();
        program.wait_until_it_has_the_slot(false);
        if time < 3 {
            program.wait_until_said("listed for 1: measuring through", time + 1);
            program.wait_for_a_file();
        }
    }
    program.wait_until_said("measuring nothing for the life of this process", 1);
    eventually("the health file says so", || Ok((program.state() == "disabled").then_some(())))
        .unwrap();
    program.end();
}

#[test]
fn a_process_whose_slot_was_taken_away_is_taken_off_the_list_without_harm() {
    let world = World::new().unwrap();
    let program = Profiled::start(&world, &["--rude"]);
    program.list();
    program.wait_for_a_file();
    world.list(&[]).unwrap();
    program.want();
    program.wait_until_it_has_the_slot(true);
    // Off the list before or after it lost the slot: both are right, and neither disables it.
    program.want_no_more();
    program.wait_until_it_has_the_slot(false);
    program.list();
    program.wait_for_a_file();
    program.end();
}
