//! Passes that are killed at random moments.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use super::world::World;

/// A small generator of chance (SplitMix64), so that a seed tells the whole story.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Seeded by the clock, or by `WARPGAUGE_TEST_SEED` to play a failure again; says the seed.
    pub(crate) fn roll(what: &str) -> Self {
        let seed = match std::env::var("WARPGAUGE_TEST_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => warpgauge::pass::unix_now_ns(),
        };
        println!("{what}: WARPGAUGE_TEST_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// How many passes are killed before one may finish and show how long a pass takes by now.
const KILLS_BEFORE_A_LOOK: usize = 20;

/// Starts passes and kills each after a random part of the time that a pass takes, until so many
/// were killed before their end.
pub(crate) fn kill_passes(world: &World, kills: usize, dice: &mut Dice) {
    let mut length = duration_of_a_pass(world);
    let (mut killed, mut finished) = (0, 0);
    while killed < kills {
        let mut child = world.command(&["run", "--json"]).spawn().unwrap();
        // A little longer than a pass takes, so that its very end is met as well.
        let delay = dice.below(u64::try_from(length.as_micros()).unwrap() * 11 / 10);
        std::thread::sleep(Duration::from_micros(delay));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        if output.status.signal() == Some(9) {
            killed += 1;
        } else {
            let log = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), Some(0 | 75)), "{:?}: {log}", output.status);
            finished += 1;
        }
        if (killed + finished) % KILLS_BEFORE_A_LOOK == 0 {
            length = duration_of_a_pass(world);
        }
        assert!(finished <= 10 * kills, "passes end before they can be killed");
    }
    println!("{killed} passes killed, {finished} were faster, the last took {length:?}");
}

fn duration_of_a_pass(world: &World) -> Duration {
    let started = Instant::now();
    let pass = world.pass();
    assert!(matches!(pass.code(), Some(0 | 75)), "{pass:#?}");
    started.elapsed()
}
