//! `warpgauge check --pid` asked about real programs under the stand-in driver.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::fs;
use std::io::Write;
use std::process::Command;

use serde_json::Value;
use warpgauge_tests::{Host, World, eventually};

/// Launches until it is told to end.
const ARGUMENTS: [&str; 4] =
    ["--pause-before=init", "--pause-before=exit", "--launches=20", "--kernel=tiled=4:64"];

/// What the extension says of a process: its exit code and its JSON.
fn check(world: &World, pid: u32) -> (Option<i32>, Value) {
    let path = world.path("warpgauge.toml");
    let text = format!(
        "monitored_pg_names = [\"nobody-is-called-so\"]\n[paths]\nruntime_config = {:?}\nmeasurements = {:?}\nstate = {:?}\n[export]\nprotocol = \"file\"\npath = {:?}\n",
        world.runtime_config(),
        world.measurements(),
        world.path("state"),
        world.path("metrics.jsonl"),
    );
    fs::File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
    let program = world.artifacts().warpgauge.clone().unwrap();
    let output = Command::new(program)
        .env_clear()
        .args(["check", "--json", "--pid", &pid.to_string(), "--config"])
        .arg(path)
        .output()
        .unwrap();
    let document = serde_json::from_slice(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), document.unwrap_or_else(|fault| panic!("{fault}: {errors}")))
}

/// Whether an obstacle at this link says these words.
fn says(document: &Value, link: &str, words: &str) -> bool {
    document["findings"].as_array().unwrap().iter().any(|finding| {
        finding["link"] == link
            && finding["weight"] == "obstacle"
            && finding["what"].as_str().unwrap().contains(words)
    })
}

/// Runs a program, listed or not, and waits until an obstacle at this link says these words.
#[track_caller]
fn finds(world: &World, host: Host<'_>, functions: Option<&str>, link: &str, words: &str) {
    let mut host = match functions {
        Some(functions) => host.start_listed(functions).unwrap(),
        None => {
            let mut host = host.start().unwrap();
            host.wait_until_ready().unwrap();
            host.go_on().unwrap();
            host
        }
    };
    host.wait_until_ready_after_report().unwrap();
    let pid = host.pid();
    eventually(&format!("{link}: {words}"), || {
        let (code, document) = check(world, pid);
        let found = says(&document, link, words);
        assert!(!found || (code == Some(1) && document["measured"] == false), "{document:#}");
        Ok(found.then_some(()))
    })
    .unwrap();
    host.go_on().unwrap();
    host.finish().unwrap();
}

#[test]
fn a_program_that_was_started_without_the_library_is_told_so() {
    let world = World::new().unwrap();
    let host = world.host(&ARGUMENTS).without("CUDA_INJECTION64_PATH");
    finds(&world, host, Some("1"), "environment", "started without this variable");
}

#[test]
fn a_program_that_no_group_matches_is_told_so() {
    let world = World::new().unwrap();
    let host = world.host(&ARGUMENTS);
    finds(&world, host, None, "listing", "no monitored group matches it");
}

#[test]
fn another_tool_in_the_slot_is_named() {
    let world = World::new().unwrap();
    let host = world.host(&ARGUMENTS).env("STANDIN_CUPTI_FAULT", "subscribe=39");
    finds(&world, host, Some("1"), "measuring", "only slot");
}

#[test]
fn an_old_cupti_is_named_with_its_version() {
    let world = World::new().unwrap();
    let host = world.host(&ARGUMENTS).env("STANDIN_CUPTI_FAULT", "version=14");
    finds(&world, host, Some("1"), "measuring", "CUPTI API version 14");
}

#[test]
fn a_program_that_looks_at_another_file_is_told_which() {
    let world = World::new().unwrap();
    let other = world.path("other.conf");
    let host = world.host(&ARGUMENTS).env("WARPGAUGE_RUNTIME_CONFIG_PATH", &other);
    finds(&world, host, Some("1"), "settings", "no such file as the process sees it");
}

#[test]
fn a_measured_program_is_said_to_be_measured_with_its_numbers() {
    let world = World::new().unwrap();
    let mut host = world.host(&ARGUMENTS).start_listed("1").unwrap();
    host.wait_until_ready_after_report().unwrap();
    let pid = host.pid();
    eventually("measured", || {
        let (code, document) = check(&world, pid);
        assert_eq!(code == Some(0), document["measured"] == true, "{document:#}");
        let findings = document["findings"].as_array().unwrap();
        let last = findings.last().unwrap()["what"].as_str().unwrap();
        Ok((code == Some(0) && last.contains("20 launches") && last.contains("MiB resident"))
            .then_some(()))
    })
    .unwrap();
    let health = world.health_of(pid).unwrap().unwrap();
    assert!(health["resident_bytes"].as_u64().unwrap() > 0, "{health}");
    host.go_on().unwrap();
    host.finish().unwrap();
}
