//! A configuration that is wrong is reported whole, and nothing happens.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use support::world::{World, finish, names_in};

/// Everything that can be wrong at once, with what must be said of it: the line is the one on which
/// the words of the key stand.
const WRONG: &str = r#"monitored_pg_names = ["a", "b"]
instrumentation_enable = true
functions = "instructions"

[paths]
state = "relative/state"
proc = 7

[[process_group]]
name = "a"
cmdline = 'train(\.py'
any = [{ usr = "ml", gpu = true }]

[[process_group]]
name = "a"
exe = "/opt/*"

[[process_group]]
name = "b"

[export]
protocol = "http/protobuf"
endpoint = "not a url"
timeout = "1ms"

[export.headers]
Authorization = "file:/nowhere/token"

[spool]
max_age = "eternity"

[metrics]
distributions = "some"
"#;

/// Line, key, and a word of what is said.
const FAULTS: [(u64, &str, &str); 13] = [
    (2, "instrumentation_enable", "did you mean `instrumentation_enabled`?"),
    (3, "functions", "invalid type"),
    (6, "paths.state", "relative"),
    (7, "paths.proc", "invalid type"),
    (11, "process_group[0].cmdline", "not a regular expression"),
    (12, "process_group[0].any[0].usr", "did you mean `user`?"),
    (15, "process_group[1].name", "same name"),
    (18, "process_group[2]", "no condition"),
    (23, "export.endpoint", "not a url"),
    (24, "export.timeout", "too short"),
    (27, "export.headers.Authorization", "/nowhere/token"),
    (30, "spool.max_age", "no duration"),
    (33, "metrics.distributions", "unknown variant"),
];

/// A world with this text as its whole configuration.
fn world_of(text: &str) -> World {
    let mut world = World::new();
    world.whole = Some(text.to_owned());
    world
}

#[test]
fn a_pass_names_every_fault_with_file_line_and_key() {
    let world = world_of(WRONG);
    let pass = world.pass_ends(78);
    assert!(pass.report.is_null());
    let path = world.path("warpgauge.toml");
    for (line, key, words) in FAULTS {
        let place = format!("{}:{line}: {key}: ", path.display());
        let said = pass.lines_with(&place);
        assert_eq!(said.len(), 1, "{place} in\n{}", pass.log);
        assert!(said[0].contains(words), "{words} in {}", said[0]);
    }
    assert_eq!(pass.log.lines().count(), FAULTS.len(), "{}", pass.log);
    // Nothing was made but what the test itself has written.
    assert_eq!(names_in(&world.path("")), ["measurements", "warpgauge.toml"]);
}

#[test]
fn check_names_the_same_faults_for_machines() {
    let check = world_of(WRONG).run(&["check", "--json"]);
    assert_eq!(check.code(), Some(78), "{check:#?}");
    let remarks = check.report.as_array().unwrap();
    assert_eq!(remarks.len(), FAULTS.len(), "{remarks:#?}");
    for ((line, key, words), remark) in FAULTS.iter().zip(remarks) {
        assert_eq!((&remark["about"], &remark["level"]), (&(*key).into(), &"error".into()));
        let message = remark["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("line {line}: ")), "{message}");
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_sound_configuration_is_called_sound() {
    let world = World::new();
    let _sleeper = world.sleeper();
    let check = world.run(&["check", "--json"]);
    assert_eq!(check.code(), Some(0), "{check:#?}");
}

#[test]
fn what_is_no_configuration_at_all_is_named() {
    for text in ["a = = 1\n", "[paths\n", "monitored_pg_names = ["] {
        let pass = world_of(text).pass_ends(78);
        assert!(pass.log.contains("not valid TOML"), "{}", pass.log);
    }
    let world = World::new();
    let command = world.command(&["run"]);
    std::fs::remove_file(world.path("warpgauge.toml")).unwrap();
    let pass = finish(command);
    assert_eq!(pass.code(), Some(78), "{pass:#?}");
    let path = world.path("warpgauge.toml").display().to_string();
    assert!(pass.log.contains(&path), "{}", pass.log);
}
