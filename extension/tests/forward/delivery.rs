//! What arrives, and in which form.

use crate::backend::{Answer, Backend};
use crate::logs::{append, append_lines, event, events, world};
use crate::support::points::{sum, sum_for};
use warpgauge::metrics::{FORWARD_RETRIES, FORWARDED_BYTES, FORWARDED_LINES};

#[test]
fn each_line_arrives_once_byte_for_byte_under_its_type_in_the_order_of_its_log() {
    let backend = Backend::start();
    let world = world(&backend, "");
    let lines =
        [event("dictionary_update", 0), event("kernel_event_batch", 1), event("never_seen", 2)];
    append_lines(&world, "a.device.log", &lines);
    // A blank line is nothing, and a torn one waits for its end.
    append(&world, "a.device.log", " \n{\"type\":\"torn\"");
    let pass = world.pass_ends(0);
    assert_eq!(backend.lines(), lines);
    let paths: Vec<_> = backend.posts().into_iter().map(|post| post.path).collect();
    assert_eq!(paths, ["/dictionary_update", "/kernel_event_batch", "/never_seen"]);
    assert_eq!(backend.posts()[0].header("content-type"), Some("application/json"));
    assert_eq!(backend.posts()[0].header("authorization"), None);
    let bytes: usize = lines.iter().map(String::len).sum();
    assert_eq!(pass.report["forwarding"]["lines"], 3);
    assert_eq!(pass.report["forwarding"]["bytes"], bytes);

    append(&world, "a.device.log", "}\n");
    append_lines(&world, "b.scope.log", &[event("scope_event_batch", 0)]);
    world.pass_ends(0);
    let mut later = backend.lines().split_off(3);
    later.sort();
    assert_eq!(later, [event("scope_event_batch", 0), r#"{"type":"torn"}"#.to_owned()]);
    world.pass_ends(0);
    assert_eq!(backend.posts().len(), 5);

    let points = world.exported();
    assert_eq!(sum(&points, FORWARDED_LINES.name), 5);
    let all: usize = backend.posts().iter().map(|post| post.travelled).sum();
    assert_eq!(sum(&points, FORWARDED_BYTES.name), all as u64);
    assert_eq!(sum(&points, FORWARD_RETRIES.name), 0);
}

#[test]
fn a_wrapped_line_carries_its_sender_and_a_token() {
    let backend = Backend::start();
    let mut world = world(&backend, "form = \"wrapped\"\ncompression = \"gzip\"");
    let token = world.path("token");
    crate::support::world::write(&token, "gpfl_hunter22\n");
    world.tables += &format!("token = \"file:{}\"\n", token.display());
    let lines = events("kernel_event_batch", 0..3);
    append_lines(&world, "a.log", &lines);
    let pass = world.pass_ends(0);
    let posts = backend.posts();
    assert_eq!(posts.len(), 3);
    for (post, line) in posts.iter().zip(&lines) {
        assert_eq!(post.path, "/api/v1/events/kernel_event_batch");
        assert_eq!(post.header("authorization"), Some("Bearer gpfl_hunter22"));
        assert_eq!(post.header("content-encoding"), Some("gzip"));
        assert!(post.header("user-agent").unwrap().starts_with("warpgauge/"));
        let wrapper: serde_json::Value = serde_json::from_str(&post.body).unwrap();
        let mut keys: Vec<_> = wrapper.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["agentSendingTime", "data", "hostname", "ipAddr", "type"]);
        assert_eq!(wrapper["data"], *line);
        assert_eq!(wrapper["type"], "kernel_event_batch");
        assert_eq!(wrapper["ipAddr"], "127.0.0.1");
        assert!(!wrapper["hostname"].as_str().unwrap().is_empty());
        // Milliseconds, of this century.
        assert!(
            (1_000_000_000_000..10_000_000_000_000)
                .contains(&wrapper["agentSendingTime"].as_u64().unwrap())
        );
    }
    assert!(!format!("{pass:?}").contains("hunter22"));
}

#[test]
fn whatever_a_success_says_it_is_one() {
    let backend = Backend::start();
    backend.always(Answer::AcceptSaying(r#"{"error":"batch dropped","status":500}"#));
    let world = world(&backend, "");
    append_lines(&world, "a.log", &events("init", 0..2));
    let pass = world.pass_ends(0);
    assert_eq!(pass.report["forwarding"]["lines"], 2);
    world.pass_ends(0);
    assert_eq!(backend.posts().len(), 2);
}

#[test]
fn a_slow_answer_is_waited_for() {
    let backend = Backend::start();
    backend.always(Answer::AcceptSlowly);
    let world = world(&backend, "");
    append_lines(&world, "a.log", &events("init", 0..3));
    world.pass_ends(0);
    assert_eq!(backend.lines(), events("init", 0..3));
}

#[test]
fn where_asked_for_lines_of_one_type_travel_together_and_keep_their_order() {
    for (form, path) in [("raw", "/"), ("wrapped", "/api/v1/events/")] {
        let backend = Backend::start();
        let keys = format!("batch_size = \"400B\"\nform = \"{form}\"");
        let world = world(&backend, &keys);
        let mut lines = vec![event("dictionary_update", 0)];
        lines.extend(events("kernel_event_batch", 0..10));
        lines.push(event("dictionary_update", 1));
        lines.extend(events("kernel_event_batch", 10..12));
        append_lines(&world, "a.log", &lines);
        world.pass_ends(0);
        let posts = backend.posts();
        assert!(posts.len() < lines.len() - 2, "{} requests", posts.len());
        let mut arrived = Vec::new();
        for post in &posts {
            assert_eq!(post.header("content-type"), Some("application/x-ndjson"));
            assert!(post.body.ends_with('\n'));
            for line in post.body.lines() {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(post.path, format!("{path}{}", value["type"].as_str().unwrap()));
                arrived.push(match form {
                    "raw" => line.to_owned(),
                    _ => value["data"].as_str().unwrap().to_owned(),
                });
            }
        }
        assert_eq!(arrived, lines);
    }
}

#[test]
fn without_a_backend_nothing_is_read_or_told() {
    let mut world = crate::support::world::World::new();
    world.tables = "[forward]\nlogs = [\"/nowhere/*.log\"]\n".to_owned();
    let pass = world.pass_ends(0);
    assert_eq!(pass.report["forwarding"], serde_json::Value::Null);
    world.pass_ends(0);
    let told = world.exported();
    assert!(!told.iter().any(|point| point.metric.starts_with("warpgauge.forward")));
    assert_eq!(sum_for(&told, FORWARDED_LINES.name, ""), 0);
}
