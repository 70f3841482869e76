//! Whose measurements they are.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::unistd::Uid;
use support::fake_proc::{FakeProc, FakeProcess};
use support::points::{Point, of_process, of_roll_ups, sum, sum_for};
use support::world::{GROUP, World};
use warpgauge::measurements::quarantine;
use warpgauge::metrics::{
    COALESCENCE, INSTRUCTIONS, LAUNCHES, MEASUREMENTS_READ, MEASUREMENTS_REFUSED,
    MEASUREMENTS_UNATTRIBUTED, OCCUPANCY,
};

/// How long ago the machine of the fake `/proc` booted, in seconds.
const UPTIME: u64 = 10_000;

/// A world whose processes are those of a fake `/proc`, booted [`UPTIME`] ago.
fn fake_world() -> (World, FakeProc) {
    let proc = FakeProc::new();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    proc.write("stat", format!("cpu  1 2 3\nbtime {}\nprocesses 5\n", now - UPTIME));
    let mut world = World::new();
    world.proc = proc.path("");
    (world, proc)
}

/// A process of the group that started so many seconds ago and belongs to this test's user.
fn fake_sleeper(world: &World, seconds_ago: u64) -> FakeProcess {
    let uid = Uid::effective().as_raw();
    FakeProcess::new("sleep")
        .arguments(&["sleep", &world.nap])
        .start_ticks((UPTIME - seconds_ago) * 100)
        .uids([uid; 4])
}

fn written_ago(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    File::open(path).unwrap().set_modified(time).unwrap();
}

fn one<'p>(points: &'p [Point], metric: &str) -> &'p Point {
    let mut of_metric = points.iter().filter(|point| point.metric == metric);
    let point = of_metric.next().unwrap();
    assert_eq!(of_metric.next(), None, "{metric} came more than once");
    point
}

#[test]
fn a_process_that_ended_since_it_was_listed_keeps_its_measurements() {
    let world = World::new();
    let sleeper = world.sleeper();
    world.pass_ends(0);
    let pid = sleeper.pid();
    world.publish(pid, "0:7\n");
    sleeper.end();
    let pass = world.pass_ends(0);
    assert_eq!((pass.log.as_str(), &pass.report["listed"]), ("", &0.into()));
    let own = of_process(&world.exported(), pid);
    assert_eq!(sum(&own, INSTRUCTIONS.name), 7);
    assert_eq!(own[0].resource["service.name"], GROUP);
    assert_eq!(own[0].resource["process.executable.name"], "sleep");
}

#[test]
fn a_reused_pid_is_another_process_from_its_start_on() {
    let (world, proc) = fake_world();
    // Minutes apart, so that a slow machine does not blur them.
    fake_sleeper(&world, 1_000).create(&proc, 4_242);
    world.pass_ends(0);
    fs::remove_dir_all(proc.path("4242")).unwrap();
    fake_sleeper(&world, 500).create(&proc, 4_242);
    for (lines, seconds_ago) in [("0:1\n", 900), ("0:20\n", 700), ("0:300\n", 300), ("0:4000\n", 0)]
    {
        written_ago(&world.publish(4_242, lines), seconds_ago);
    }
    // From before both: nobody knows whose it was.
    written_ago(&world.publish(4_242, "0:50000\n"), 2_000);
    let pass = world.pass_ends(0);
    assert_eq!(pass.report["unattributed"], 1);
    let own = of_process(&world.exported(), 4_242);
    let instructions = own.iter().filter(|point| point.metric == INSTRUCTIONS.name);
    let mut found: Vec<_> = instructions
        .map(|point| (point.count(), point.instance(), &point.resource["process.creation.time"]))
        .collect();
    found.sort_unstable();
    assert_eq!(found.iter().map(|(count, ..)| *count).collect::<Vec<_>>(), [21, 4_300]);
    assert_ne!(found[0].1, found[1].1, "two instances");
    assert!(found[0].2 < found[1].2, "{found:?}");
}

#[test]
fn measurements_of_nobody_are_counted_and_put_away() {
    let world = World::new();
    let sleeper = world.sleeper();
    let stranger = world.stranger();
    world.publish(sleeper.pid(), "0:7\n");
    // One that runs and was never listed, one that never was; a bad line does not count.
    world.publish(stranger.pid(), "0:1\n1:50\n4:9\nnonsense\n");
    world.publish(4_194_305, "0:1\n");
    let pass = world.pass_ends(0);
    assert_eq!(pass.report["unattributed"], 4);
    assert_eq!(pass.refused("not_one_colon"), 1);
    let points = world.exported();
    assert_eq!(sum_for(&points, MEASUREMENTS_UNATTRIBUTED.name, "pid_not_listed"), 4);
    assert_eq!(sum(&points, MEASUREMENTS_READ.name), 1);
    assert_eq!(sum(&points, INSTRUCTIONS.name), 7);
    assert_eq!(world.left_in_folder(), [quarantine::NAME]);
    assert_eq!(world.quarantined().len(), 2);
    let pass = world.pass_ends(0);
    assert_eq!(pass.report["unattributed"], 0);
}

#[test]
fn the_processes_of_a_group_merge_by_their_counts() {
    let world = World::new();
    let (busy, idle) = (world.sleeper(), world.sleeper());
    // 100,000 launches at 50 %, and one at 100 %: the mean of both means would say 75 %.
    world.publish(busy.pid(), "0:1000\n1:40\n1:60\n2:25\n4:99999\n");
    world.publish(busy.pid(), "1:50\n4:1\n");
    world.publish(idle.pid(), "0:1\n1:100\n4:1\n");
    world.pass_ends(0);
    let points = world.exported();
    let roll_up = of_roll_ups(&points);
    assert_eq!(one(&roll_up, INSTRUCTIONS.name).count(), 1_001);
    assert_eq!(one(&roll_up, LAUNCHES.name).count(), 100_001);
    let mean = (0.5 * 100_000.0 + 1.0) / 100_001.0;
    assert!((one(&roll_up, OCCUPANCY.name).double() - mean).abs() < 1e-9);
    assert!((one(&roll_up, COALESCENCE.name).double() - 0.25).abs() < 1e-9);
    let resource = &roll_up[0].resource;
    assert_eq!(resource["service.name"], GROUP);
    assert!(!resource.contains_key("process.pid"));

    let busy = of_process(&points, busy.pid());
    assert!((one(&busy, OCCUPANCY.name).double() - 0.5).abs() < 1e-9);
    let idle = of_process(&points, idle.pid());
    assert!((one(&idle, OCCUPANCY.name).double() - 1.0).abs() < 1e-9);
    assert_ne!(busy[0].instance(), idle[0].instance());
    // Nothing is invented for what was not reported.
    assert!(idle.iter().all(|point| point.metric != COALESCENCE.name));
}

#[test]
fn a_group_alone_is_exported_when_its_processes_are_too_many() {
    let mut world = World::new();
    world.tables = "[metrics]\nper_process = false\n".to_owned();
    let sleepers = [world.sleeper(), world.sleeper()];
    for sleeper in &sleepers {
        world.publish(sleeper.pid(), "0:7\n");
    }
    world.pass_ends(0);
    let points = world.exported();
    assert!(points.iter().all(|point| point.pid().is_none()));
    assert_eq!(one(&of_roll_ups(&points), INSTRUCTIONS.name).count(), 14);
}

#[test]
fn an_older_modules_lines_are_its_launches() {
    let world = World::new();
    let sleeper = world.sleeper();
    world.publish(sleeper.pid(), "1:25.00\r\n0:1.5e+03\r\n1:75\r\n 1 : 50\r\n2:10");
    world.pass_ends(0);
    let own = of_process(&world.exported(), sleeper.pid());
    assert_eq!(one(&own, LAUNCHES.name).count(), 3);
    assert_eq!(one(&own, INSTRUCTIONS.name).count(), 1_500);
    assert!((one(&own, OCCUPANCY.name).double() - 0.5).abs() < 1e-9);
}

#[test]
fn ids_of_later_modules_are_counted_and_the_rest_holds() {
    let world = World::new();
    let sleeper = world.sleeper();
    world.publish(sleeper.pid(), "0:7\n77:5\n5:1\n77:6\n");
    let pass = world.pass_ends(0);
    assert_eq!(pass.refused("unknown_id"), 3);
    assert_eq!(pass.lines_with("x unknown_id,").len(), 1, "{}", pass.log);
    let points = world.exported();
    assert_eq!(sum_for(&points, MEASUREMENTS_REFUSED.name, "unknown_id"), 3);
    assert_eq!(sum(&points, INSTRUCTIONS.name), 7);
    assert_eq!(world.left_in_folder(), Vec::<String>::new());
}

#[test]
fn a_process_in_a_container_is_known_by_its_number_inside() {
    let (world, proc) = fake_world();
    fake_sleeper(&world, 100).inside(&[7]).create(&proc, 4_242);
    world.pass_ends(0);
    let runtime_config = fs::read_to_string(world.runtime_config()).unwrap();
    assert!(runtime_config.contains("\n7:1 #= sleepers\n"), "{runtime_config}");
    world.publish(7, "0:7\n");
    world.pass_ends(0);
    let own = of_process(&world.exported(), 4_242);
    assert_eq!(sum(&own, INSTRUCTIONS.name), 7);
}

#[test]
fn a_process_says_itself_what_service_it_is() {
    let (world, proc) = fake_world();
    fake_sleeper(&world, 100).environ(&["OTEL_SERVICE_NAME=llm"]).create(&proc, 4_242);
    world.pass_ends(0);
    world.publish(4_242, "0:7\n");
    world.pass_ends(0);
    let points = world.exported();
    assert_eq!(of_process(&points, 4_242)[0].resource["service.name"], "llm");
    assert_eq!(of_roll_ups(&points)[0].resource["service.name"], GROUP);
}

#[test]
fn a_process_that_was_listed_by_hand_is_exported_by_its_own_name() {
    let world = World::new();
    let stranger = world.stranger();
    world.pass_ends(0);
    let pid = stranger.pid().to_string();
    assert_eq!(world.run(&["control", "set", &pid, "instructions"]).code(), Some(0));
    // Also what it publishes before the next pass.
    world.publish(stranger.pid(), "0:7\n");
    stranger.end();
    world.pass_ends(0);
    let points = world.exported();
    assert_eq!(sum(&points, INSTRUCTIONS.name), 7);
    assert_eq!(of_roll_ups(&points), []);
    let own = points.iter().find(|point| point.metric == INSTRUCTIONS.name).unwrap();
    assert_eq!(own.resource["service.name"], "unknown_service:sleep");
}

#[test]
fn a_preview_changes_nothing() {
    let world = World::new();
    let sleeper = world.sleeper();
    world.publish(sleeper.pid(), "0:7\n");
    fs::create_dir(world.measurements().join("junk")).unwrap();
    let before = (world.left_in_folder(), support::world::names_in(&world.path("")));
    let preview = world.run(&["run", "--dry-run", "--json"]);
    assert_eq!(preview.code(), Some(0), "{preview:#?}");
    assert_eq!(preview.report["processes"][0]["instructions"], 7);
    assert_eq!(preview.report["listed"], 1);
    assert_eq!(preview.refused("name_does_not_fit"), 1);
    let after = (world.left_in_folder(), support::world::names_in(&world.path("")));
    assert_eq!(before.0, after.0);
    assert!(after.1.iter().all(|name| before.1.contains(name) || name == "warpgauge.toml"));
    world.pass_ends(0);
    assert_eq!(sum(&world.exported(), INSTRUCTIONS.name), 7);
}
