//! Passes are killed at random moments while the measured processes go on publishing. In the end
//! exactly what was published has arrived.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::collections::BTreeMap;

use support::kills::{Dice, kill_passes};
use support::points::{Point, assert_windows_follow, sum};
use support::publisher::{Published, Publisher};
use support::receiver::{Answer, Receiver};
use support::world::World;
use warpgauge::metrics::{INSTRUCTIONS, LAUNCHES, MEASUREMENTS_READ, MEASUREMENTS_REFUSED};

/// How many processes publish.
const PROCESSES: usize = 3;

/// Kills passes while publishers write. Returns what was published, by process.
fn torment(world: &World, kills: usize, dice: &mut Dice) -> BTreeMap<u32, Published> {
    let sleepers: Vec<_> = (0..PROCESSES).map(|_| world.sleeper()).collect();
    let start = |pid| Publisher::start(world, pid, dice.next());
    let publishers: Vec<_> = sleepers.iter().map(|sleeper| sleeper.pid()).map(start).collect();
    kill_passes(world, kills, dice);
    let published = publishers.into_iter().map(|writer| (writer.pid, writer.stop())).collect();
    // The processes end; what they published last must still find its owner.
    drop(sleepers);
    published
}

/// Runs passes to their end until nothing is left to do.
fn settle(world: &World) {
    for _ in 0..3 {
        let pass = world.pass_ends(0);
        assert_eq!(pass.report["delivery"]["waiting_requests"], 0, "{pass:#?}");
        if world.left_in_folder().is_empty() && world.spooled().is_empty() {
            return;
        }
    }
    panic!("left: {:?}, spooled: {:?}", world.left_in_folder(), world.spooled());
}

fn total(published: &BTreeMap<u32, Published>) -> Published {
    let mut total = Published::default();
    published.values().for_each(|process| total.add(*process));
    total
}

/// Exactly what was published has arrived as deltas: nothing lost, nothing twice.
#[track_caller]
fn assert_arrived(points: &[Point], published: &BTreeMap<u32, Published>) {
    let expected = total(published);
    println!("published: {expected:?}");
    assert!(expected.files > 0, "nobody published anything");
    assert_eq!(sum(points, MEASUREMENTS_READ.name), expected.lines);
    assert_eq!(sum(points, MEASUREMENTS_REFUSED.name), 0);
    for (pid, process) in published {
        let own: Vec<_> =
            points.iter().filter(|point| point.pid() == Some(*pid)).cloned().collect();
        assert_eq!(sum(&own, INSTRUCTIONS.name), process.instructions, "process {pid}");
        assert_eq!(sum(&own, LAUNCHES.name), process.launches, "process {pid}");
    }
    assert_eq!(sum(points, INSTRUCTIONS.name), expected.instructions);
    assert_eq!(sum(points, LAUNCHES.name), expected.launches);
    assert_windows_follow(points);
}

#[test]
fn nothing_is_lost_and_nothing_counts_twice_over_200_kills() {
    let receiver = Receiver::start();
    let world = World::sending_to(&receiver.url());
    let published = torment(&world, 200, &mut Dice::roll("200 kills"));
    settle(&world);
    let (kept, again) = receiver.kept();
    println!("{} requests, {again} of them came again, the same to the byte", kept.len());
    assert_arrived(&receiver.points(), &published);
}

#[test]
fn nothing_is_lost_when_the_receiver_fails_half_of_the_time() {
    let receiver = Receiver::start();
    let mut world = World::sending_to(&receiver.url());
    world.export = world.export.map(|export| export + "compression = \"gzip\"\n");
    let mut dice = Dice::roll("a failing receiver");
    let mut faults = Dice::new(dice.next());
    receiver.answers(move |_| match faults.below(4) {
        0 | 1 => Answer::Refuse { status: "503 Service Unavailable", words: "busy" },
        2 => Answer::AcceptInSilence,
        _ => Answer::Accept,
    });
    let published = torment(&world, 100, &mut dice);
    receiver.always(Answer::Accept);
    settle(&world);
    let (kept, again) = receiver.kept();
    println!("{} requests, {again} of them came again, the same to the byte", kept.len());
    assert!(again > 0, "no acknowledgement got lost");
    assert_arrived(&receiver.points(), &published);
}

#[test]
fn nothing_is_lost_in_the_exported_file() {
    let world = World::new();
    let published = torment(&world, 100, &mut Dice::roll("to a file"));
    settle(&world);
    assert_arrived(&world.exported(), &published);
}

#[test]
fn the_last_total_of_each_series_is_what_was_published() {
    let receiver = Receiver::start();
    let mut world = World::sending_to(&receiver.url());
    world.export = world.export.map(|export| export + "temporality = \"cumulative\"\n");
    let published = torment(&world, 100, &mut Dice::roll("cumulative"));
    settle(&world);
    let mut last = BTreeMap::<_, Point>::new();
    for point in receiver.points().into_iter().filter(|point| point.temporality.is_some()) {
        let series = point.series();
        if let Some(before) = last.get(&series) {
            assert_eq!(before.start_ns, point.start_ns, "{series:?} began anew");
            assert!(before.end_ns < point.end_ns, "{series:?} went back");
            assert!(before.count() <= point.count(), "{series:?} fell");
        }
        last.insert(series, point);
    }
    let last: Vec<_> = last.into_values().collect();
    let expected = total(&published);
    assert_eq!(sum(&last, MEASUREMENTS_READ.name), expected.lines);
    assert_eq!(sum(&last, INSTRUCTIONS.name), expected.instructions);
    assert_eq!(sum(&last, LAUNCHES.name), expected.launches);
}
