//! How much, how fast, how long.

use std::time::Duration;

use crate::backend::{Answer, Backend};
use crate::logs::{append_lines, dead_letters, event, events, world};

#[test]
fn a_pass_sends_its_share_and_the_next_ones_the_rest() {
    let backend = Backend::start();
    let size = event("init", 10).len();
    let world = world(&backend, "max_size = \"1KiB\"");
    append_lines(&world, "a.log", &events("init", 10..60));
    let a_pass = 1_024 / size;
    let pass = world.pass_ends(0);
    assert_eq!(backend.lines(), events("init", 10..10 + a_pass));
    assert_eq!(pass.report["forwarding"]["left_by"], "forward.max_size");
    for _ in 0..50_usize.div_ceil(a_pass) {
        world.pass_ends(0);
    }
    assert_eq!(backend.lines(), events("init", 10..60));
}

#[test]
fn no_more_bytes_a_second_travel_than_is_said() {
    let backend = Backend::start();
    let world = world(&backend, "max_rate = \"1KiB\"\nbudget = \"2s\"");
    append_lines(&world, "a.log", &events("init", 10..60));
    let pass = world.pass_ends(0);
    assert_eq!(pass.report["forwarding"]["left_by"], "forward.max_rate");
    let posts = backend.posts();
    let (first, last) = (&posts[0], &posts[posts.len() - 1]);
    let before_last: usize =
        posts.iter().map(|post| post.travelled).sum::<usize>() - last.travelled;
    let paid = Duration::from_secs_f64(before_last as f64 / 1_024.0);
    // What arrives is stamped a little after it was sent, the first as well as the last.
    assert!(last.at - first.at + Duration::from_millis(100) >= paid, "{before_last} bytes");
    assert!(posts.len() > 3 && posts.len() < 50, "{} posts", posts.len());
    assert_eq!(backend.lines(), events("init", 10..10 + posts.len()));
}

#[test]
fn a_slow_backend_gets_its_time_and_no_more() {
    let backend = Backend::start();
    backend.always(Answer::AcceptSlowly);
    let world = world(&backend, "budget = \"600ms\"");
    append_lines(&world, "a.log", &events("init", 0..100));
    let pass = world.pass();
    assert!(matches!(pass.code(), Some(0 | 75)), "{pass:?}");
    let arrived = backend.posts().len();
    assert!((1..100).contains(&arrived), "{arrived}");
}

#[test]
fn dead_letters_are_bounded() {
    let backend = Backend::start();
    backend.answers(|post| match post.path.as_str() {
        "/init" => Answer::Accept,
        _ => Answer::say("400 Bad Request"),
    });
    let world = world(&backend, "max_dead_letters = \"1MiB\"");
    let filling = "x".repeat(30_000);
    let large = |number| format!(r#"{{"type":"large","n":{number},"text":"{filling}"}}"#);
    append_lines(&world, "a.log", &events("init", 0..1));
    append_lines(&world, "a.log", &(0..60).map(large).collect::<Vec<_>>());
    let pass = world.pass_ends(4);
    assert_eq!(backend.posts().len(), 61);
    let folder = world.state().join("dead-letters");
    let sizes = folder.read_dir().unwrap().map(|file| file.unwrap().metadata().unwrap().len());
    assert!(sizes.sum::<u64>() <= 1 << 20);
    let youngest = dead_letters(&world).pop().unwrap();
    assert_eq!(youngest["data"], large(59));
    assert!(!pass.lines_with("removed to stay within").is_empty(), "{}", pass.log);
}
