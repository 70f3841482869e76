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

use std::collections::{BTreeMap, BTreeSet};

use support::kills::{Dice, kill_passes};
use support::points::{self, Point, assert_windows_follow, sum, sum_for};
use support::publisher::{Published, Publisher};
use support::receiver::{Answer, Receiver};
use support::world::{World, names_in};
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

/// Kills a pass before every single change that it makes, one pass for each, with everything in the
/// folder that a pass deals with. After each kill the next pass makes everything right.
#[cfg(target_arch = "x86_64")]
fn kill_before_every_change(world: &World, arrived: impl Fn() -> Vec<Point>) {
    use support::kill_points::{End, pass_killed_before};
    use warpgauge::metrics::MEASUREMENTS_UNATTRIBUTED;

    let sleeper = world.sleeper();
    let (stranger, by_hand) = (world.stranger(), world.stranger());
    world.pass_ends(0);
    let (mut rounds, mut instructions) = (0, 0);
    let mut end = End::Killed;
    while end == End::Killed {
        for _ in 0..3 {
            world.publish(sleeper.pid(), format!("0:{rounds}\n1:50\n1:-1\n4:2\n"));
            instructions += rounds;
        }
        world.publish(stranger.pid(), "0:1\n");
        support::world::write(world.measurements().join(format!("junk {rounds}")), "");
        // A person's line comes and goes, so that the runtime configuration and the listing change.
        let line = format!("{}:0\n", by_hand.pid());
        let was = std::fs::read_to_string(world.runtime_config()).unwrap();
        let is = if was.contains(&line) { was.replace(&line, "") } else { was + &line };
        support::world::write(world.runtime_config(), is);
        end = pass_killed_before(world, rounds as usize);
        if end == End::Untraceable {
            eprintln!("skipped: this machine does not let a process trace its child");
            return;
        }
        rounds += 1;
        world.pass_ends(0);

        let points = arrived();
        let at = format!("killed before change {}", rounds - 1);
        assert_eq!(sum(&points, INSTRUCTIONS.name), instructions, "{at}");
        assert_eq!(sum(&points, LAUNCHES.name), 6 * rounds, "{at}");
        assert_eq!(sum(&points, MEASUREMENTS_READ.name), 9 * rounds, "{at}");
        let for_reason = |reason| sum_for(&points, MEASUREMENTS_REFUSED.name, reason);
        assert_eq!(for_reason("name_does_not_fit"), rounds, "{at}");
        assert_eq!(for_reason("negative"), 3 * rounds, "{at}");
        assert_eq!(sum(&points, MEASUREMENTS_UNATTRIBUTED.name), rounds, "{at}");
        assert_windows_follow(&points);
        assert_eq!(world.left_in_folder(), [".quarantine"], "{at}");
        assert_eq!(world.spooled(), Vec::<String>::new(), "{at}");
        let folders = [world.path(""), world.state(), world.state().join("rejected")];
        let hidden = folders.iter().flat_map(|folder| names_in(folder));
        let hidden: Vec<_> = hidden.filter(|name| name.starts_with('.')).collect();
        assert_eq!(hidden, Vec::<String>::new(), "{at}");
    }
    println!("killed before each of {} changes", rounds - 1);
    assert_eq!(end, End::Finished(0));
    assert!(rounds > 30, "only {rounds} changes were seen");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn no_change_to_the_disk_is_one_before_which_a_kill_does_harm() {
    let world = World::new();
    kill_before_every_change(&world, || world.exported());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn no_moment_of_sending_is_one_at_which_a_kill_does_harm() {
    let receiver = Receiver::start();
    let world = World::sending_to(&receiver.url());
    kill_before_every_change(&world, || receiver.points());
}

/// As above, with everything that a pass deals with in the folder of a container. Each round has a
/// new container, so that its folder is made ready too.
#[cfg(target_arch = "x86_64")]
#[test]
fn no_change_to_a_containers_folder_is_one_before_which_a_kill_does_harm() {
    use nix::unistd::Uid;
    use support::fake_proc::{FakeProc, FakeProcess};
    use support::kill_points::{End, pass_killed_before};
    use support::world::{name_for, write};
    use warpgauge::metrics::MEASUREMENTS_UNATTRIBUTED;

    const ID: &str = "aaaa0c1b2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f90";
    let (mut world, proc) = (World::new(), FakeProc::new());
    world.proc = proc.path("");
    let folder = world.path("containers").join(ID);
    std::fs::create_dir_all(&folder).unwrap();
    let process = |name: &str| {
        let process = FakeProcess::new(name).cgroup(&format!("/system.slice/docker-{ID}.scope"));
        process.uids([Uid::effective().as_raw(); 4])
    };
    let sleeper = process("sleep").arguments(&["sleep", &world.nap]);
    sleeper.inside(&[7]).create(&proc, 4_242);
    process("stranger").inside(&[8]).create(&proc, 5_151);
    world.pass_ends(0);
    let (mut rounds, mut instructions) = (0, 0);
    let mut end = End::Killed;
    while end == End::Killed {
        let measurements = folder.join("measurements");
        for _ in 0..3 {
            write(measurements.join(name_for(7)), format!("0:{rounds}\n1:50\n1:-1\n4:2\n"));
            instructions += rounds;
        }
        write(measurements.join(name_for(4_242)), "0:1\n");
        write(measurements.join(format!("junk {rounds}")), "");
        let line = "8:0\n";
        let was = std::fs::read_to_string(folder.join("runtime.conf")).unwrap();
        let is = if was.contains(line) { was.replace(line, "") } else { was + line };
        write(folder.join("runtime.conf"), is);
        let new = world.path("containers").join(format!("new{rounds}"));
        std::fs::create_dir(&new).unwrap();
        end = pass_killed_before(&world, rounds as usize);
        if end == End::Untraceable {
            eprintln!("skipped: this machine does not let a process trace its child");
            return;
        }
        rounds += 1;
        world.pass_ends(0);

        let points = world.exported();
        let at = format!("killed before change {}", rounds - 1);
        assert_eq!(sum(&points, INSTRUCTIONS.name), instructions, "{at}");
        assert_eq!(sum(&points, LAUNCHES.name), 6 * rounds, "{at}");
        let for_reason = |reason| sum_for(&points, MEASUREMENTS_REFUSED.name, reason);
        assert_eq!(for_reason("name_does_not_fit"), rounds, "{at}");
        assert_eq!(for_reason("negative"), 3 * rounds, "{at}");
        assert_eq!(sum(&points, MEASUREMENTS_UNATTRIBUTED.name), rounds, "{at}");
        assert_windows_follow(&points);
        assert_eq!(names_in(&measurements), [".quarantine"], "{at}");
        assert_eq!(names_in(&folder), ["measurements", "runtime.conf"], "{at}");
        assert_eq!(names_in(&new), ["measurements", "runtime.conf"], "{at}");
        assert_eq!(world.spooled(), Vec::<String>::new(), "{at}");
        // It need not stay to be looked after.
        std::fs::remove_dir_all(new).unwrap();
    }
    println!("killed before each of {} changes", rounds - 1);
    assert_eq!(end, End::Finished(0));
    assert!(rounds > 30, "only {rounds} changes were seen");
}

/// Each request ends at the receiver or in the folder of refused ones, and in the second case its
/// points are told of exactly once.
#[cfg(target_arch = "x86_64")]
#[test]
fn no_moment_of_giving_up_is_one_at_which_a_kill_does_harm() {
    use support::kill_points::{End, pass_killed_before};
    use warpgauge::metrics::REJECTED_POINTS;

    let receiver = Receiver::start();
    let world = World::sending_to(&receiver.url());
    let refusal = Answer::Refuse { status: "400 Bad Request", words: "no such unit" };
    let (mut rounds, mut end) = (0, End::Killed);
    while end == End::Killed {
        receiver.always(refusal.clone());
        end = pass_killed_before(&world, rounds);
        if end == End::Untraceable {
            eprintln!("skipped: this machine does not let a process trace its child");
            return;
        }
        rounds += 1;
        receiver.always(Answer::Accept);
        // One to finish what was begun, one to tell of it.
        world.pass_ends(0);
        world.pass_ends(0);

        let (kept, _) = receiver.kept();
        let refused = receiver.exchanges().into_iter().filter(|one| one.answer == refusal);
        let refused: BTreeSet<_> = refused.map(|one| one.request).collect();
        let lost: Vec<_> = refused.into_iter().filter(|request| !kept.contains(request)).collect();
        let points: usize =
            lost.iter().map(|request| points::from_protobuf(request).unwrap().len()).sum();
        let at = format!("killed before change {}", rounds - 1);
        assert_eq!(sum(&receiver.points(), REJECTED_POINTS.name), points as u64, "{at}");
        // The request and the receiver's words.
        assert_eq!(names_in(&world.state().join("rejected")).len(), 2 * lost.len(), "{at}");
        assert_eq!(world.spooled(), Vec::<String>::new(), "{at}");
    }
    println!("killed before each of {} changes", rounds - 1);
    assert_eq!(end, End::Finished(65));
}
