//! A backend that refuses, is away, or is not the right one.

use std::net::TcpListener;
use std::time::Duration;

use crate::backend::{Answer, Backend};
use crate::logs::{append, append_lines, dead_letters, event, events, world, world_for};
use crate::support::points::{sum, sum_for};
use crate::support::world::World;
use warpgauge::metrics::{FORWARD_REFUSED, FORWARD_RETRIES, FORWARDED_LINES};

/// Does not keep lines that contain this, and says why.
fn refuse(backend: &Backend, words: &'static str, status: &'static str) {
    backend.answers(move |post| match post.body.contains(words) {
        true => Answer::say(status),
        false => Answer::Accept,
    });
}

#[test]
fn a_refused_line_is_set_aside_with_its_reason_and_holds_nothing_up() {
    for status in
        ["400 Bad Request", "404 Not Found", "413 Content Too Large", "422 X", "403 Forbidden"]
    {
        let backend = Backend::start();
        refuse(&backend, "kernel_detail", status);
        let world = world(&backend, "");
        append_lines(&world, "a.log", &events("init", 0..2));
        append_lines(&world, "a.log", &[event("kernel_detail", 7)]);
        append_lines(&world, "a.log", &events("init", 2..4));
        let pass = world.pass_ends(4);
        assert_eq!(backend.lines(), events("init", 0..4));
        assert_eq!(backend.posts().len(), 5, "a refused line is not tried again");
        let letters = dead_letters(&world);
        assert_eq!(letters.len(), 1);
        assert_eq!(letters[0]["data"], event("kernel_detail", 7));
        assert_eq!((&letters[0]["reason"], &letters[0]["line"]), (&"refused".into(), &3.into()));
        assert_eq!(letters[0]["offset"], 2 * (event("init", 0).len() + 1));
        assert_eq!(letters[0]["status"], status[..3].parse::<u16>().unwrap());
        assert!(letters[0]["message"].as_str().unwrap().contains("no thanks"));
        assert!(letters[0]["file"].as_str().unwrap().ends_with("logs/a.log"));
        assert_eq!(pass.lines_with("no thanks").len(), 1, "{}", pass.log);

        world.pass_ends(0);
        assert_eq!(backend.posts().len(), 5);
        assert_eq!(sum_for(&world.exported(), FORWARD_REFUSED.name, "refused"), 1);
        assert_eq!(sum(&world.exported(), FORWARDED_LINES.name), 4);
    }
}

#[test]
fn lines_that_are_no_events_are_set_aside_without_asking_the_backend() {
    let backend = Backend::start();
    let world = world(&backend, "");
    append(
        &world,
        "a.log",
        b"{\"type\":\"\xff\"}\nno json\n[1]\n{\"type\":7}\n{\"type\":\"..\"}\n",
    );
    append_lines(&world, "a.log", &[event("init", 0)]);
    let pass = world.pass_ends(4);
    assert_eq!(backend.lines(), [event("init", 0)]);
    assert_eq!(backend.posts().len(), 1);
    let letters = dead_letters(&world);
    let reasons: Vec<_> = letters.iter().map(|letter| letter["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["not_utf8", "not_an_object", "not_an_object", "no_type", "no_type"]);
    assert_eq!(letters[0]["data_hex"], "7b2274797065223a22ff227d");
    assert_eq!(letters[1]["data"], "no json");
    assert_eq!(pass.report["forwarding"]["refused"].as_array().unwrap().len(), 3);
    world.pass_ends(0);
    assert_eq!(sum_for(&world.exported(), FORWARD_REFUSED.name, "no_type"), 2);
}

#[test]
fn one_bad_line_of_a_batch_is_found_and_the_others_arrive_in_their_order() {
    let backend = Backend::start();
    refuse(&backend, "\"batch_id\":5,", "400 Bad Request");
    let world = world(&backend, "batch_size = \"1MiB\"");
    append_lines(&world, "a.log", &events("kernel_event_batch", 0..12));
    // Nothing was ever accepted when the whole batch is refused.
    world.pass_ends(4);
    let arrived: String = backend.lines().concat();
    let expected: Vec<_> = events("kernel_event_batch", 0..12)
        .into_iter()
        .filter(|line| !line.contains(":5,"))
        .collect();
    assert_eq!(arrived.lines().collect::<Vec<_>>(), expected);
    assert_eq!(dead_letters(&world).len(), 1);
    assert_eq!(dead_letters(&world)[0]["line"], 6);
}

#[test]
fn a_backend_that_never_took_a_line_costs_none() {
    let backend = Backend::start();
    backend.always(Answer::say("404 Not Found"));
    let world = world(&backend, "");
    append_lines(&world, "a.log", &events("init", 0..50));
    let pass = world.pass_ends(78);
    let why = pass.report["forwarding"]["misconfigured"].as_str().unwrap();
    assert!(why.contains("404") && why.contains("backend_url"), "{why}");
    assert_eq!(dead_letters(&world).len(), 0);
    assert_eq!(backend.posts().len(), 20, "it does not go on for ever");
    world.pass_ends(78);

    backend.always(Answer::Accept);
    world.pass_ends(0);
    assert_eq!(backend.lines(), events("init", 0..50));
}

#[test]
fn a_line_of_an_unknown_type_at_the_very_beginning_holds_nothing_up() {
    let backend = Backend::start();
    refuse(&backend, "never_seen", "404 Not Found");
    let world = world(&backend, "");
    append_lines(&world, "a.log", &events("never_seen", 0..3));
    world.pass_ends(78);
    append(&world, "a.log", "no json\n");
    append_lines(&world, "a.log", &events("init", 0..2));
    world.pass_ends(4);
    assert_eq!(backend.lines(), events("init", 0..2));
    let lines: Vec<_> = dead_letters(&world).iter().map(|letter| letter["line"].clone()).collect();
    assert_eq!(lines, [1, 2, 3, 4], "in their order");
    world.pass_ends(0);
    assert_eq!(dead_letters(&world).len(), 4);
}

#[test]
fn a_wrong_token_costs_no_line_and_is_not_shown_even_if_the_backend_echoes_it() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let backend = Backend::start();
        let world = world(&backend, "token = \"hunter22\"");
        append_lines(&world, "a.log", &events("init", 0..1));
        // A token that was right until now.
        world.pass_ends(0);
        backend.always(Answer::say(status));
        append_lines(&world, "a.log", &events("init", 1..4));
        let pass = world.pass_ends(78);
        let why = pass.report["forwarding"]["misconfigured"].as_str().unwrap();
        assert!(why.contains(&status[..3]) && why.contains("token"), "{why}");
        assert!(!format!("{pass:?}").contains("hunter22"), "{pass:?}");
        assert_eq!(dead_letters(&world).len(), 0);
        backend.always(Answer::Accept);
        world.pass_ends(0);
        assert_eq!(backend.lines(), events("init", 0..4));
    }
}

#[test]
fn a_backend_that_is_not_ready_gets_the_same_line_again_before_any_other() {
    for status in
        ["503 Service Unavailable", "500 X", "429 Too Many Requests", "408 Request Timeout"]
    {
        let backend = Backend::start();
        let mut busy = 2;
        backend.answers(move |post| match post.body.contains("init") && busy > 0 {
            true => {
                busy -= 1;
                Answer::say(status)
            }
            false => Answer::Accept,
        });
        let world = world(&backend, "");
        append_lines(
            &world,
            "a.log",
            &[event("dictionary_update", 0), event("init", 1), event("x", 2)],
        );
        let pass = world.pass_ends(0);
        let bodies: Vec<_> = backend.posts().into_iter().map(|post| post.body).collect();
        let [first, second, third] =
            [event("dictionary_update", 0), event("init", 1), event("x", 2)];
        assert_eq!(bodies, [first, second.clone(), second.clone(), second, third]);
        assert_eq!(pass.report["forwarding"]["retries"], 2);
        world.pass_ends(0);
        assert_eq!(sum(&world.exported(), FORWARD_RETRIES.name), 2);
    }
}

#[test]
fn a_backend_that_stays_away_loses_nothing() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut world = world_for(&format!("http://{nobody}"), "");
    append_lines(&world, "a.log", &events("init", 0..3));
    for _ in 0..2 {
        let pass = world.pass_ends(75);
        let why = pass.report["forwarding"]["waits_for"].as_str().unwrap();
        assert!(why.contains(&nobody.to_string()), "{why}");
    }
    let backend = Backend::start();
    world.tables = world.tables.replace(&format!("http://{nobody}"), &backend.url());
    world.pass_ends(0);
    assert_eq!(backend.lines(), events("init", 0..3));
}

#[test]
fn what_was_taken_before_the_backend_went_away_is_not_sent_again() {
    for batch in ["", "batch_size = \"300B\""] {
        let backend = Backend::start();
        refuse(&backend, "\"batch_id\":30,", "503 Service Unavailable");
        let world = world(&backend, batch);
        append_lines(&world, "a.log", &events("init", 0..20));
        append_lines(&world, "b.log", &events("init", 20..40));
        world.pass_ends(75);
        assert!(backend.kept().len() > 1);
        backend.always(Answer::Accept);
        world.pass_ends(0);
        let mut arrived: Vec<_> =
            backend.lines().concat().replace("}{", "}\n{").lines().map(str::to_owned).collect();
        let mut expected = events("init", 0..40);
        arrived.sort();
        expected.sort();
        assert_eq!(arrived, expected, "{batch}");
    }
}

#[test]
fn a_backend_is_left_alone_for_as_long_as_it_asks() {
    let backend = Backend::start();
    let wish = vec!["Retry-After: 3600".to_owned()];
    backend.always(Answer::Say("429 Too Many Requests", wish));
    let world = world(&backend, "");
    append_lines(&world, "a.log", &events("init", 0..2));
    world.pass_ends(75);
    assert_eq!(backend.posts().len(), 1);
    let pass = world.pass_ends(75);
    assert_eq!(backend.posts().len(), 1, "it is not asked before its time");
    let why = pass.report["forwarding"]["waits_for"].as_str().unwrap();
    assert!(why.contains("left alone"), "{why}");
    // An hour later.
    std::fs::remove_file(world.state().join("forward.json")).unwrap();
    backend.always(Answer::Accept);
    world.pass_ends(0);
    assert_eq!(backend.lines(), events("init", 0..2));
}

#[test]
fn a_short_wish_is_met_within_the_pass() {
    let backend = Backend::start();
    let mut wishes = vec!["Retry-After: 1".to_owned()];
    backend.answers(move |_| match wishes.pop() {
        Some(wish) => Answer::Say("503 Service Unavailable", vec![wish]),
        None => Answer::Accept,
    });
    let world = world(&backend, "");
    append_lines(&world, "a.log", &events("init", 0..1));
    world.pass_ends(0);
    let posts = backend.posts();
    assert_eq!(posts.len(), 2);
    assert!(posts[1].at - posts[0].at >= Duration::from_secs(1));
}

#[test]
fn a_backend_that_hangs_is_left_when_its_time_is_over() {
    for (keys, seconds) in
        [("timeout = \"300ms\"\nbudget = \"5s\"", "0.3 s"), ("budget = \"500ms\"", "0.")]
    {
        let backend = Backend::start();
        backend.always(Answer::Hang);
        let world = world(&backend, keys);
        append_lines(&world, "a.log", &events("init", 0..2));
        let pass = world.pass_ends(75);
        let why = pass.report["forwarding"]["waits_for"].as_str().unwrap();
        assert!(why.contains(seconds), "{why}");
        backend.always(Answer::Accept);
        world.pass_ends(0);
        assert_eq!(backend.lines(), events("init", 0..2));
    }
}

#[test]
fn an_answer_that_breaks_off_is_none_so_its_line_goes_again() {
    let backend = Backend::start();
    let mut first = true;
    backend.answers(move |_| match std::mem::take(&mut first) {
        true => Answer::AcceptAndBreakOff,
        false => Answer::Accept,
    });
    let world = world(&backend, "");
    append_lines(&world, "a.log", &events("init", 0..2));
    world.pass_ends(0);
    let [first, second] = [event("init", 0), event("init", 1)];
    assert_eq!(backend.lines(), [first.clone(), first, second]);
}

#[test]
fn a_redirect_is_not_followed_and_the_token_stays() {
    let elsewhere = Backend::start();
    let backend = Backend::start();
    let location = vec![format!("Location: {}/init", elsewhere.url())];
    for status in ["301 Moved Permanently", "307 Temporary Redirect", "308 Permanent Redirect"] {
        backend.always(Answer::Say(status, location.clone()));
        let world = world(&backend, "token = \"hunter22\"");
        append_lines(&world, "a.log", &events("init", 0..1));
        let pass = world.pass_ends(78);
        let why = pass.report["forwarding"]["misconfigured"].as_str().unwrap();
        assert!(why.contains(&elsewhere.url()), "{why}");
        assert_eq!(elsewhere.posts().len(), 0);
        assert_eq!(dead_letters(&world).len(), 0);
    }
}

#[test]
fn damaged_cursors_are_for_a_person_and_the_pass_goes_on() {
    let backend = Backend::start();
    let world = world(&backend, "");
    append_lines(&world, "a.log", &events("init", 0..1));
    world.pass_ends(0);
    crate::support::world::write(world.state().join("cursors/forward.json"), "{");
    let pass = world.pass_ends(78);
    let why = pass.report["forwarding"]["misconfigured"].as_str().unwrap();
    assert!(why.contains("cursors/forward.json") && why.contains("remove it"), "{why}");
    assert!(pass.report["delivery"]["accepted_points"].as_u64().unwrap() > 0);
}

#[test]
fn every_fault_of_the_section_is_reported_at_once() {
    let mut world = World::new();
    world.tables = "[forward]\nbackend_url = \"backend\"\nlogs = [\"*.log\"]\nform = \"x\"\nmax_rate = \"1B\"\ntoken = \"file:/nowhere\"\n".to_owned();
    let pass = world.run(&["run"]);
    assert_eq!(pass.code(), Some(78));
    for key in ["backend_url", "logs", "form", "max_rate", "token"] {
        assert_eq!(pass.lines_with(&format!("forward.{key}: ")).len(), 1, "{key}: {}", pass.log);
    }
}
