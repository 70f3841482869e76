//! Two passes never work at once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use support::points::{assert_windows_follow, sum};
use support::receiver::{Answer, Receiver};
use support::world::{World, eventually, finish};
use warpgauge::metrics::INSTRUCTIONS;

#[test]
fn the_second_pass_says_who_works_and_touches_nothing() {
    let receiver = Receiver::start();
    receiver.always(Answer::Hang);
    let mut world = World::sending_to(&receiver.url());
    world.export = world.export.map(|export| export + "timeout = \"30s\"\nbudget = \"30s\"\n");
    let sleeper = world.sleeper();
    let mut first = world.command(&["run", "--json"]).spawn().unwrap();
    eventually("the first pass to send", || !receiver.exchanges().is_empty());

    world.publish(sleeper.pid(), "0:7\n");
    let second = world.pass_ends(75);
    assert!(second.report.is_null(), "{second:#?}");
    let holder = format!("held by another warpgauge (pid {})", first.id());
    assert!(second.log.contains(&holder), "{}", second.log);
    assert!(second.log.contains(&world.state().join("lock").display().to_string()));
    assert_eq!(world.left_in_folder().len(), 1);
    assert_eq!(receiver.exchanges().len(), 1);

    // The kernel drops the lock with its holder, however that ends.
    first.kill().unwrap();
    first.wait().unwrap();
    receiver.always(Answer::Accept);
    world.pass_ends(0);
    assert_eq!(sum(&receiver.points(), INSTRUCTIONS.name), 7);
}

#[test]
fn however_many_start_at_once_everything_counts_once() {
    let receiver = Receiver::start();
    let world = World::sending_to(&receiver.url());
    let sleeper = world.sleeper();
    let mut worked = 0;
    for round in 0..5 {
        for _ in 0..20 {
            world.publish(sleeper.pid(), "0:7\n4:1\n");
        }
        let passes: Vec<_> = std::thread::scope(|scope| {
            let passes: Vec<_> =
                (0..4).map(|_| scope.spawn(|| finish(world.command(&["run", "--json"])))).collect();
            passes.into_iter().map(|pass| pass.join().unwrap()).collect()
        });
        for pass in &passes {
            assert!(matches!(pass.code(), Some(0 | 75)), "round {round}: {pass:#?}");
        }
        worked += passes.iter().filter(|pass| pass.code() == Some(0)).count();
    }
    assert!(worked >= 5, "in each round at least one works");
    assert_eq!(sum(&receiver.points(), INSTRUCTIONS.name), 5 * 20 * 7);
    assert_windows_follow(&receiver.points());
}
