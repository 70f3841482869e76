//! What becomes of measurements when the receiver is down, slow, choosy or not the right one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use support::points::{assert_windows_follow, from_protobuf, sum, sum_for};
use support::receiver::{Answer, Receiver};
use support::world::{Sleeper, World, names_in, write};
use warpgauge::atomic_file::Durability;
use warpgauge::metrics::{DROPPED_POINTS, INSTRUCTIONS, LAUNCHES, REJECTED_POINTS, SPOOL_SIZE};
use warpgauge::otlp::chunks;
use warpgauge::otlp::mapping::{Number, Window, number, resource_metrics};
use warpgauge::otlp::resource::Host;
use warpgauge::pass::unix_now_ns;
use warpgauge::spool::{Commit, Spool};

const UNAVAILABLE: Answer = Answer::Refuse { status: "503 Service Unavailable", words: "busy" };

/// A world that sends to a receiver, with one process and one file of its.
fn world_with(receiver: &Receiver) -> (World, Sleeper) {
    let world = World::sending_to(&receiver.url());
    let sleeper = world.sleeper();
    world.publish(sleeper.pid(), "0:7\n4:1\n");
    (world, sleeper)
}

fn rejected(world: &World) -> Vec<String> {
    names_in(&world.state().join("rejected"))
}

/// The file of the only request in the spool.
fn only_request(world: &World) -> PathBuf {
    let spooled = world.spooled();
    assert_eq!(spooled.len(), 1, "{spooled:?}");
    world.state().join("spool").join(&spooled[0]).join("0000.otlp")
}

#[test]
fn a_busy_receiver_gets_the_same_bytes_again_oldest_first() {
    let receiver = Receiver::start();
    receiver.always(UNAVAILABLE);
    let (world, sleeper) = world_with(&receiver);
    let pass = world.pass_ends(75);
    assert_eq!(pass.report["delivery"]["waiting_requests"], 1);
    let why = pass.report["delivery"]["waits_for"].as_str().unwrap();
    assert!(why.contains("503") && why.contains("busy"), "{why}");
    world.publish(sleeper.pid(), "0:8\n");
    world.pass_ends(75);
    let exchanges = receiver.exchanges();
    assert_eq!(exchanges.len(), 2, "it stops at the first that has to wait");
    assert_eq!(exchanges[0].request, exchanges[1].request);

    receiver.always(Answer::Accept);
    world.pass_ends(0);
    let (kept, again) = receiver.kept();
    assert_eq!((kept.len(), again), (3, 0));
    assert_eq!(kept[0], exchanges[0].request);
    let ends: Vec<_> = kept.iter().map(|bytes| from_protobuf(bytes).unwrap()[0].end_ns).collect();
    assert!(ends.is_sorted(), "{ends:?}");
    assert_eq!(sum(&receiver.points(), INSTRUCTIONS.name), 15);
    assert_windows_follow(&receiver.points());
    assert_eq!(world.spooled(), Vec::<String>::new());
}

#[test]
fn a_lost_acknowledgement_makes_the_same_bytes_come_again() {
    let receiver = Receiver::start();
    receiver.always(Answer::AcceptInSilence);
    let (world, _sleeper) = world_with(&receiver);
    world.pass_ends(75);
    receiver.always(Answer::Accept);
    world.pass_ends(0);
    let (kept, again) = receiver.kept();
    assert_eq!((kept.len(), again), (2, 1));
    assert_eq!(sum(&receiver.points(), INSTRUCTIONS.name), 7);
}

#[test]
fn a_refused_request_is_set_aside_with_the_receivers_words_and_told_of() {
    let receiver = Receiver::start();
    receiver.always(Answer::Refuse { status: "400 Bad Request", words: "no such unit" });
    let (world, _sleeper) = world_with(&receiver);
    let pass = world.pass_ends(65);
    let request = receiver.exchanges()[0].request.clone();
    let points = from_protobuf(&request).unwrap().len() as u64;
    assert_eq!(pass.report["delivery"]["refused_points"], points);
    assert_eq!(pass.lines_with("no such unit").len(), 1, "{}", pass.log);
    let names = rejected(&world);
    assert_eq!(names.len(), 2, "{names:?}");
    let folder = world.state().join("rejected");
    assert_eq!(fs::read(folder.join(&names[0])).unwrap(), request);
    let words = fs::read_to_string(folder.join(&names[1])).unwrap();
    assert!(words.contains("400") && words.contains("no such unit"), "{words}");

    receiver.always(Answer::Accept);
    world.pass_ends(0);
    let told = receiver.points();
    assert_eq!(sum_for(&told, REJECTED_POINTS.name, "refused"), points);
    world.pass_ends(0);
    assert_eq!(sum(&receiver.points(), REJECTED_POINTS.name), points, "told once");
    assert_eq!(rejected(&world), names);
}

#[test]
fn points_that_the_receiver_did_not_take_are_told_of() {
    let receiver = Receiver::start();
    receiver.always(Answer::Partial { rejected: 3, words: "too old" });
    let (world, _sleeper) = world_with(&receiver);
    let pass = world.pass_ends(4);
    assert_eq!(pass.report["delivery"]["rejected_points"], 3);
    assert_eq!(pass.lines_with("too old").len(), 1, "{}", pass.log);
    receiver.always(Answer::Accept);
    world.pass_ends(0);
    assert_eq!(receiver.kept().1, 0, "a partial acceptance is final");
    assert_eq!(sum_for(&receiver.points(), REJECTED_POINTS.name, "partial"), 3);
    assert_eq!(rejected(&world), Vec::<String>::new());
}

#[test]
fn a_warning_of_the_receiver_is_no_loss() {
    let receiver = Receiver::start();
    receiver.always(Answer::Partial { rejected: 0, words: "use another name" });
    let (world, _sleeper) = world_with(&receiver);
    let pass = world.pass_ends(0);
    assert_eq!(pass.lines_with("use another name").len(), 1, "{}", pass.log);
    assert_eq!(world.spooled(), Vec::<String>::new());
}

/// A pass that was killed after it remembered a request's points as lost, and before the request
/// was gone.
#[test]
fn what_a_killed_pass_had_given_up_is_neither_sent_nor_told_of_again() {
    let refusal = Answer::Refuse { status: "400 Bad Request", words: "no such unit" };
    let partial = Answer::Partial { rejected: 3, words: "too old" };
    for (answer, code) in [(refusal, 65), (partial, 4)] {
        let receiver = Receiver::start();
        receiver.always(UNAVAILABLE);
        let (world, _sleeper) = world_with(&receiver);
        world.pass_ends(75);
        let path = only_request(&world);
        let request = fs::read(&path).unwrap();
        let points = from_protobuf(&request).unwrap().len() as u64;
        let (to_first, mut first) = (answer.clone(), true);
        receiver.answers(move |_| match std::mem::take(&mut first) {
            true => to_first.clone(),
            false => Answer::Accept,
        });
        world.pass_ends(code);
        let set_aside = rejected(&world);
        let sent = receiver.exchanges().len();

        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, &request);
        world.pass_ends(0);
        let later = receiver.exchanges().split_off(sent);
        assert_eq!(later.len(), 1, "{answer:?}");
        let told = from_protobuf(&later[0].request).unwrap();
        let lost = if code == 4 { 3 } else { points };
        assert_eq!(sum(&told, REJECTED_POINTS.name), lost, "{answer:?}");
        assert_eq!(rejected(&world), set_aside, "{answer:?}");
        assert_eq!(world.spooled(), Vec::<String>::new());
    }
}

#[test]
fn a_receiver_that_is_not_there_loses_nothing() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut world = World::sending_to(&format!("http://{nobody}"));
    let sleeper = world.sleeper();
    world.publish(sleeper.pid(), "0:7\n");
    let pass = world.pass_ends(75);
    let why = pass.report["delivery"]["waits_for"].as_str().unwrap();
    assert!(why.contains(&nobody.to_string()), "{why}");
    assert_eq!(world.left_in_folder(), Vec::<String>::new());
    let receiver = Receiver::start();
    world.export = World::sending_to(&receiver.url()).export;
    world.pass_ends(0);
    assert_eq!(sum(&receiver.points(), INSTRUCTIONS.name), 7);
}

#[test]
fn a_receiver_that_hangs_is_left_when_its_time_is_over() {
    let receiver = Receiver::start();
    receiver.always(Answer::Hang);
    let (mut world, _sleeper) = world_with(&receiver);
    let export = world.export.clone().unwrap();
    for (limits, seconds) in [
        ("timeout = \"300ms\"\nbudget = \"20s\"\n", "within 0.3 s"),
        ("timeout = \"20s\"\nbudget = \"200ms\"\n", "within 0.2 s"),
    ] {
        world.export = Some(export.clone() + limits);
        let pass = world.pass_ends(75);
        let why = pass.report["delivery"]["waits_for"].as_str().unwrap();
        assert!(why.contains(seconds), "{why}");
    }
    receiver.always(Answer::Accept);
    world.pass_ends(0);
    assert_eq!(sum(&receiver.points(), LAUNCHES.name), 1);
}

#[test]
fn a_wrong_token_needs_a_person_and_loses_nothing() {
    let receiver = Receiver::start();
    receiver.always(Answer::Refuse { status: "401 Unauthorized", words: "who are you?" });
    let (mut world, _sleeper) = world_with(&receiver);
    let token = world.path("token");
    write(&token, "Bearer not-the-right-one\n");
    let export = world.export.clone().unwrap();
    let header = format!("[export.headers]\nAuthorization = \"file:{}\"\n", token.display());
    world.export = Some(export + &header);
    let pass = world.pass_ends(78);
    let why = pass.report["delivery"]["misconfigured"].as_str().unwrap();
    assert!(why.contains("401") && why.contains("[export.headers]"), "{why}");
    assert!(!format!("{pass:?}").contains("not-the-right-one"));
    assert_eq!(rejected(&world), Vec::<String>::new());
    receiver.always(Answer::Accept);
    world.pass_ends(0);
    let (kept, _) = receiver.kept();
    assert_eq!(kept[0], receiver.exchanges()[0].request, "the same bytes");
    assert_eq!(sum(&receiver.points(), INSTRUCTIONS.name), 7);
}

#[test]
fn a_missing_export_folder_needs_a_person_and_loses_nothing() {
    let mut world = World::new();
    let folder = world.path("not/there");
    world.export = Some(format!("path = \"{}/metrics.otlp.jsonl\"\n", folder.display()));
    let sleeper = world.sleeper();
    world.publish(sleeper.pid(), "0:7\n");
    let pass = world.pass_ends(78);
    let why = pass.report["delivery"]["misconfigured"].as_str().unwrap();
    assert!(why.contains("mkdir -p"), "{why}");
    fs::create_dir_all(&folder).unwrap();
    world.pass_ends(0);
    let text = fs::read_to_string(folder.join("metrics.otlp.jsonl")).unwrap();
    let points: Vec<_> = text.lines().flat_map(support::points::from_json).collect();
    assert_eq!(sum(&points, INSTRUCTIONS.name), 7);
}

/// Spools a window of one request, of so many points and about so many bytes.
fn spool(world: &World, window: Window, points: usize, bytes: usize) {
    let host = Host { name: "node".into(), boot_id: String::new(), attributes: Vec::new() };
    let resources = (0..points).map(|number_of_group| {
        let group = format!("{number_of_group}-{}", "x".repeat(bytes / points / 2));
        let launches = number(LAUNCHES, Number::Int(1), Vec::new(), window);
        resource_metrics(host.roll_up(&group), vec![launches])
    });
    let commit = Commit {
        window,
        chunks: &chunks::pack(resources.collect()),
        counted: b"",
        refused: b"",
        after: &[],
        durability: Durability::ProcessDeath,
    };
    assert_eq!(commit.chunks.len(), 1);
    fs::create_dir_all(world.state()).unwrap();
    Spool::open(&world.state()).unwrap().commit(&commit).unwrap();
}

#[test]
fn a_full_spool_drops_the_oldest_and_says_how_much() {
    let receiver = Receiver::start();
    receiver.always(UNAVAILABLE);
    let mut world = World::sending_to(&receiver.url());
    world.tables = "[spool]\nmax_size = \"4MiB\"\n".to_owned();
    let minute = Duration::from_secs(60).as_nanos() as u64;
    let now = unix_now_ns();
    for (minutes_ago, points) in [(9, 11), (8, 13), (7, 17)] {
        let end_ns = now - minutes_ago * minute;
        spool(&world, Window { start_ns: end_ns - minute, end_ns }, points, 2_000_000);
    }
    let pass = world.pass_ends(69);
    // Two of the three fit beside the pass's own small one.
    assert_eq!(pass.report["delivery"]["dropped_points"], 11, "{pass:#?}");
    assert_eq!(pass.report["delivery"]["waiting_requests"], 3);
    assert!(pass.report["delivery"]["waiting_bytes"].as_u64().unwrap() <= 4 << 20);
    assert_eq!(pass.lines_with("spool_full").len(), 1, "{}", pass.log);
    receiver.always(Answer::Accept);
    world.pass_ends(0);
    let points = receiver.points();
    assert_eq!(sum_for(&points, DROPPED_POINTS.name, "spool_full"), 11);
    assert_eq!(points.iter().filter(|point| point.metric == LAUNCHES.name).count(), 13 + 17);
    let sizes = points.iter().filter(|point| point.metric == SPOOL_SIZE.name);
    assert!(sizes.map(|point| point.count()).any(|size| size > 1 << 21));
}

#[test]
fn what_waited_too_long_is_dropped_and_told_of() {
    let receiver = Receiver::start();
    receiver.always(UNAVAILABLE);
    let mut world = World::sending_to(&receiver.url());
    world.tables = "[spool]\nmax_age = \"1h\"\n".to_owned();
    let hour = Duration::from_secs(3_600).as_nanos() as u64;
    let end_ns = unix_now_ns() - 2 * hour;
    spool(&world, Window { start_ns: end_ns - hour, end_ns }, 5, 1_000);
    let pass = world.pass_ends(69);
    assert_eq!(pass.report["delivery"]["dropped_points"], 5);
    assert_eq!(pass.lines_with("too_old").len(), 1, "{}", pass.log);
    receiver.always(Answer::Accept);
    world.pass_ends(0);
    assert_eq!(sum_for(&receiver.points(), DROPPED_POINTS.name, "too_old"), 5);
}
