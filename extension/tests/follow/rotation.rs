use std::fs::{self, File};
use std::io::Write as _;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use warpgauge::follow::{Flow, Follower, Rule, Start};

use crate::log::{Log, Rotation, append_to, pack, read, read_once};

/// What happens to a log.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// That many lines are written, the last of them in two parts with a pass between.
    Write(usize),
    Rotate,
    /// A pass, killed before it commits where `false`.
    Pass(bool),
    /// A pass that takes a few lines and then stops.
    Few(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..40_usize).prop_map(Step::Write),
        3 => Just(Step::Rotate),
        3 => any::<bool>().prop_map(Step::Pass),
        1 => (1..20_usize).prop_map(Step::Few),
    ];
    prop::collection::vec(step, 1..30)
}

/// Long enough that a few lines are more than a fingerprint covers.
fn line(number: usize) -> String {
    format!("line {number:06} {}.\n", "x".repeat(number % 90))
}

fn play(rotation: Rotation, steps: &[Step]) {
    let mut log = Log::new(rotation);
    let (mut written, mut got) = (0, vec![]);
    for step in steps {
        match *step {
            Step::Write(count) => {
                for _ in 1..count {
                    log.write(line(written));
                    written += 1;
                }
                let last = line(written);
                let (beginning, end) = last.split_at(8);
                log.write(beginning);
                got.extend(log.read().0);
                log.write(end);
                written += 1;
            }
            Step::Rotate => log.rotate(),
            Step::Pass(true) => got.extend(log.read().0),
            Step::Pass(false) => drop(read_once(&mut log.follower())),
            Step::Few(count) => {
                let (mut follower, mut left) = (log.follower(), count);
                follower.read(&mut |_, line| {
                    if left == 0 {
                        return Flow::Stop;
                    }
                    left -= 1;
                    got.push(String::from_utf8(line.bytes.to_vec()).unwrap());
                    Flow::Next
                });
                follower.commit().unwrap();
            }
        }
    }
    got.extend(log.read().0);
    got.extend(log.read().0);
    got.sort();
    let expected: Vec<_> = (0..written).map(|number| line(number).trim_end().to_owned()).collect();
    assert_eq!(got, expected, "{rotation:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn each_line_comes_once_however_the_log_is_rotated(
        rotation in prop::sample::select(&Rotation::ALL[..]), steps in steps(),
    ) {
        play(rotation, &steps);
    }
}

#[test]
fn lines_come_in_the_order_in_which_they_were_written() {
    for rotation in Rotation::ALL {
        let mut log = Log::new(rotation);
        let mut got = vec![];
        for turn in 0..9 {
            for number in 0..30 {
                log.write(line(turn * 30 + number));
            }
            // Now and then two rotations lie between two passes.
            if turn % 3 != 0 {
                got.extend(log.read().0);
            }
            log.rotate();
        }
        got.extend(log.read().0);
        let expected: Vec<_> = (0..270).map(|number| line(number).trim_end().to_owned()).collect();
        assert_eq!(got, expected, "{rotation:?}");
    }
}

#[test]
fn lines_come_in_their_order_though_the_log_is_rotated_while_passes_look_at_it() {
    const LINES: usize = 1_500;
    for rotation in Rotation::ALL {
        let mut log = Log::new(rotation);
        let (writer, folder) = log.apart();
        let got = thread::scope(|scope| {
            let writing = scope.spawn(move || {
                for number in 0..LINES {
                    writer.write(line(number));
                    match number % 50 {
                        // Rotations follow one another closely, as on a machine that is busy.
                        7 | 9 | 30 => writer.rotate(),
                        20 => thread::sleep(Duration::from_millis(3)),
                        _ => {}
                    }
                }
            });
            let mut got = vec![];
            while !writing.is_finished() {
                got.extend(read(folder).0);
            }
            got
        });
        let got = [got, log.read().0, log.read().0].concat();
        for (number, got) in got.iter().enumerate() {
            assert_eq!(got, line(number).trim_end(), "{rotation:?}");
        }
        assert_eq!(got.len(), LINES, "{rotation:?}");
    }
}

#[test]
fn a_torn_last_line_waits_until_its_file_is_rotated_away() {
    for rotation in Rotation::ALL {
        let mut log = Log::new(rotation);
        log.write("one\ntwo\nthr");
        assert_eq!(log.read().0, ["one", "two"], "{rotation:?}");
        assert_eq!(log.read().0, [""; 0], "{rotation:?}");
        log.rotate();
        log.write("four\n");
        assert_eq!(log.read().0, ["thr", "four"], "{rotation:?}");
        assert_eq!(log.read().0, [""; 0], "{rotation:?}");
    }
}

#[test]
fn a_copy_beside_its_original_is_read_once() {
    let mut log = Log::new(Rotation::CopyTruncate);
    for number in 0..100 {
        log.write(line(number));
    }
    // Half-way through a copy, on the very first pass and later.
    let whole = fs::read(log.path("x.log")).unwrap();
    append_to(log.path("x.log.1")).write_all(&whole[..whole.len() / 2]).unwrap();
    assert_eq!(log.read().0.len(), 100);
    append_to(log.path("x.log.1")).write_all(&whole[whole.len() / 2..]).unwrap();
    assert_eq!(log.read().0.len(), 0);
    // Written after the copy, read, and then cut off: the copy is shorter than what was read.
    log.write(line(100));
    assert_eq!(log.read().0.len(), 1);
    File::options().write(true).open(log.path("x.log")).unwrap().set_len(0).unwrap();
    log.write(line(101));
    assert_eq!(log.read().0, [line(101).trim_end()]);
    pack(&log.path("x.log.1"));
    assert_eq!(log.read().0.len(), 0);
}

#[test]
fn a_file_that_is_still_being_compressed_waits() {
    let mut log = Log::new(Rotation::Rename);
    for number in 0..500 {
        log.write(line(number));
    }
    assert_eq!(log.read().0.len(), 500);
    log.rotate();
    let plain = log.path("x.log.1");
    let aside = log.path("aside");
    fs::copy(&plain, &aside).unwrap();
    pack(&aside);
    let packed = fs::read(log.path("aside.gz")).unwrap();
    for length in [0, 5, 30, packed.len() / 2, packed.len() - 1] {
        append_to(log.path("x.log.1.gz")).set_len(0).unwrap();
        append_to(log.path("x.log.1.gz")).write_all(&packed[..length]).unwrap();
        assert_eq!(log.read().0.len(), 0, "{length} bytes are there");
    }
    append_to(log.path("x.log.1.gz")).write_all(&packed[packed.len() - 1..]).unwrap();
    fs::remove_file(plain).unwrap();
    assert_eq!(log.read().0.len(), 0);
    // What the tests' writer left aside is no part of the log.
    assert_eq!(log.read().1.refused.total(), 0);
}

#[test]
fn what_is_newer_waits_for_what_is_still_being_compressed() {
    let mut log = Log::new(Rotation::Rename);
    for number in 0..500 {
        log.write(line(number));
    }
    let plain = log.path("x.log.1");
    log.rotate();
    log.write(line(500));
    pack(&plain);
    let packed = fs::read(log.path("x.log.1.gz")).unwrap();
    // The name under which the whole stands is not seen: it is being renamed.
    append_to(log.path("x.log.1.gz")).set_len(packed.len() as u64 * 2 / 3).unwrap();
    let mut follower = log.follower();
    follower.limits.patience = Duration::from_secs(3_600);
    let (mut got, _) = read_once(&mut follower);
    assert!(got.len() < 500, "{} lines came", got.len());
    append_to(log.path("x.log.1.gz")).write_all(&packed[packed.len() * 2 / 3..]).unwrap();
    got.extend(read_once(&mut follower).0);
    let expected: Vec<_> = (0..=500).map(|number| line(number).trim_end().to_owned()).collect();
    assert_eq!(got, expected);
}

#[test]
fn a_new_log_that_says_what_its_neighbour_begins_with_is_no_copy() {
    let mut log = Log::new(Rotation::Rename);
    log.write("start\nstep\nend\n");
    assert_eq!(log.read().0.len(), 3);
    log.rotate();
    log.write("start\n");
    assert_eq!(log.read().0, ["start"]);
    log.write("step\nend\n");
    assert_eq!(log.read().0, ["step", "end"]);
    let mut log = Log::new(Rotation::NumberedUp);
    log.write("start\nend\n");
    log.rotate();
    log.write("start\n");
    assert_eq!(log.read().0, ["start", "end", "start"]);
}

#[test]
fn an_inode_that_is_used_again_is_a_new_file() {
    let mut log = Log::new(Rotation::Rename);
    log.write("the first\nsecond\n");
    assert_eq!(log.read().0.len(), 2);
    // The same inode, another content, as long as before.
    File::options().write(true).open(log.path("x.log")).unwrap().write_all(b"the other\n").unwrap();
    assert_eq!(log.read().0, ["the other", "second"]);
}

#[test]
fn who_writes_on_at_the_old_place_after_the_file_was_cut_off_is_understood() {
    let log = Log::new(Rotation::CopyTruncate);
    let mut file = File::options().write(true).open(log.path("x.log")).unwrap();
    file.write_all(&b"a line\n".repeat(2_000)).unwrap();
    assert_eq!(log.read().0.len(), 2_000);
    fs::copy(log.path("x.log"), log.path("x.log.1")).unwrap();
    file.set_len(0).unwrap();
    file.write_all(b"the next\n").unwrap();
    assert_eq!(log.read().0, ["the next"]);
}

#[test]
fn following_from_the_end_calls_past_what_stood_there_and_nothing_else() {
    for rotation in Rotation::ALL {
        let mut log = Log::new(rotation);
        for number in 0..50 {
            log.write(line(number));
        }
        log.rotate();
        log.write(line(50) + &line(51)[..9]);
        let pattern = log.path("x*.log").display().to_string();
        let rule = || Rule::new(&pattern).unwrap().starting(Start::End);
        let (mut all, mut new) = (vec![], vec![]);
        let mut pass = |log: &Log, bytes: u64| {
            let mut follower = Follower::new(&log.state(), "test", vec![rule()]).unwrap();
            (follower.limits.bytes, follower.limits.patience) = (bytes, Duration::ZERO);
            follower.read(&mut |file, line| {
                let text = String::from_utf8(line.bytes.to_vec()).unwrap();
                if !file.is_past(&line) {
                    new.push(text.clone());
                }
                all.push(text);
                Flow::Next
            });
            follower.commit().unwrap();
        };
        // Not all of what stands there is read at once.
        pass(&log, 1);
        log.write(&line(51)[9..]);
        pass(&log, 1 << 20);
        log.rotate();
        log.write(line(52));
        pass(&log, 1 << 20);
        pass(&log, 1 << 20);
        let shown = |numbers: std::ops::RangeInclusive<usize>| -> Vec<_> {
            numbers.map(|number| line(number).trim_end().to_owned()).collect()
        };
        assert_eq!(all, shown(0..=52), "{rotation:?}");
        assert_eq!(new, shown(51..=52), "{rotation:?}");
    }
}
