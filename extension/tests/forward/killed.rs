//! Passes that are killed. Each line arrives at least once; what arrives again was in the one
//! request of a killed pass whose acknowledgement was not yet written down.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::backend::{Answer, Backend};
use crate::logs::{append_lines, append_to, dead_letters, event, world};
use crate::support::kills::Dice;

/// How often each line arrived, wrapped or not.
fn arrivals(backend: &Backend) -> BTreeMap<String, usize> {
    let mut arrivals = BTreeMap::new();
    for post in backend.kept() {
        for line in post.body.lines() {
            let line = match serde_json::from_str::<Value>(line).unwrap().get("data") {
                Some(data) => data.as_str().unwrap().to_owned(),
                None => line.to_owned(),
            };
            *arrivals.entry(line).or_insert(0) += 1;
        }
    }
    arrivals
}

/// The numbers of one log's lines in the order of their first arrival.
fn order(backend: &Backend, session: &str) -> Vec<u64> {
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    for post in backend.kept() {
        for line in post.body.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            let value = match value.get("data") {
                Some(data) => serde_json::from_str(data.as_str().unwrap()).unwrap(),
                None => value,
            };
            let number = value["batch_id"].as_u64().unwrap();
            if value["session_id"] == session && seen.insert(number) {
                order.push(number);
            }
        }
    }
    order
}

fn line(session: &str, number: usize) -> String {
    let kind = if number.is_multiple_of(10) { "dictionary_update" } else { "kernel_event_batch" };
    event(kind, number).replace("\"s\"", &format!("\"{session}\""))
}

/// Kills passes while two logs grow and one of them is rotated; then lets them finish.
fn torment(keys: &str, lines_a_request: usize) {
    const KILLS: usize = 40;
    const LINES: usize = 1_500;
    let backend = Backend::start();
    backend.answers(|_| {
        // So that a pass is mostly killed while it forwards.
        thread::sleep(Duration::from_micros(300));
        Answer::Accept
    });
    let world = world(&backend, keys);
    let logs = world.path("logs");
    let writer = thread::spawn(move || {
        for number in 0..LINES {
            for session in ["a", "b"] {
                let text = format!("{}\n", line(session, number));
                append_to(&logs.join(format!("{session}.log")), text);
            }
            if number == LINES / 2 {
                std::fs::rename(logs.join("a.log"), logs.join("a.log.1")).unwrap();
            }
            thread::sleep(Duration::from_millis(1));
        }
    });
    let mut dice = Dice::roll("kills");
    let mut killed = 0;
    for _ in 0..10 * KILLS {
        let mut pass = world.command(&["run"]).spawn().unwrap();
        thread::sleep(Duration::from_millis(dice.below(150)));
        pass.kill().unwrap();
        killed += usize::from(pass.wait_with_output().unwrap().status.signal() == Some(9));
        if killed == KILLS {
            break;
        }
    }
    writer.join().unwrap();
    for _ in 0..2 {
        world.pass_ends(0);
    }
    let expected: BTreeSet<_> = (0..LINES).flat_map(|n| [line("a", n), line("b", n)]).collect();
    let arrived = arrivals(&backend);
    let again: usize = arrived.values().map(|times| times - 1).sum();
    println!("{} lines, {again} of them again after {killed} kills", arrived.len());
    assert!(arrived.keys().eq(&expected), "{} of {} arrived", arrived.len(), expected.len());
    assert!(again <= killed * lines_a_request, "{again} lines came again");
    for session in ["a", "b"] {
        assert!(order(&backend, session).is_sorted(), "session {session}");
    }
}

#[test]
fn no_line_is_lost_over_40_kills_and_only_unacknowledged_ones_come_again() {
    torment("", 1);
}

#[test]
fn nor_in_wrappers_and_batches() {
    // A line has about 90 bytes.
    torment("form = \"wrapped\"\nbatch_size = \"1KiB\"\ncompression = \"gzip\"", 12);
}

/// At whatever change a pass is killed: every line arrives, the refused one becomes a dead letter,
/// and at most one line comes twice.
#[cfg(target_arch = "x86_64")]
#[test]
fn there_is_no_moment_at_which_a_kill_loses_a_line() {
    use crate::support::kill_points::{End, pass_killed_before};

    let backend = Backend::start();
    backend.answers(|post| match post.body.contains("bad") {
        true => Answer::say("400 Bad Request"),
        false => Answer::Accept,
    });
    let world = world(&backend, "");
    let (mut rounds, mut number, mut end) = (0, 0, End::Killed);
    let mut expected = BTreeMap::new();
    while end == End::Killed {
        for _ in 0..3 {
            expected.insert(line("a", number), 1);
            append_lines(&world, "a.log", &[line("a", number)]);
            number += 1;
        }
        append_lines(&world, "a.log", &[event("bad", rounds)]);
        expected.insert(line("a", number), 1);
        append_lines(&world, "a.log", &[line("a", number)]);
        number += 1;
        end = pass_killed_before(&world, rounds);
        if end == End::Untraceable {
            eprintln!("skipped: this machine does not let a process trace its child");
            return;
        }
        rounds += 1;
        let code = world.pass().code();
        assert!(matches!(code, Some(0 | 4)), "{code:?}");
        let at = format!("killed before change {}", rounds - 1);
        let arrived = arrivals(&backend);
        assert_eq!(arrived.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{at}");
        let again: usize = arrived.values().map(|times| times - 1).sum();
        assert!(again <= rounds, "{at}: {again} lines came again");
        let letters = dead_letters(&world);
        let mut bad: Vec<_> =
            letters.iter().map(|letter| letter["data"].as_str().unwrap()).collect();
        let with_doubles = bad.len();
        bad.dedup();
        assert_eq!(bad.len(), rounds, "{at}");
        assert!(with_doubles <= 2 * rounds, "{at}");
        assert!(order(&backend, "a").is_sorted(), "{at}");
    }
    let again: usize = arrivals(&backend).values().map(|times| times - 1).sum();
    println!("killed before each of {} changes; {again} lines came again", rounds - 1);
    assert!(again > 0, "no kill came between an acknowledgement and its record");
    assert_eq!(end, End::Finished(4));
    assert!(rounds > 20, "only {rounds} changes were seen");
}
