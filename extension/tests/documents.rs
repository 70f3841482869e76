//! What the documents and examples say is what the program does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::fs;
use std::path::{Path, PathBuf};

use warpgauge::config::Config;
use warpgauge::config::devices::{Devices, Telemetry};
use warpgauge::config::forward::Forward;
use warpgauge::devices::Throttling;
use warpgauge::devices::fault::Fault;
use warpgauge::forward::line::Unpostable;
use warpgauge::groups::Rules;
use warpgauge::measurements::UNKNOWN_ID;
use warpgauge::measurements::folder::Refusal;
use warpgauge::spool::Excess;
use warpgauge::{containers, event_logs, event_metrics, follow, forward, metrics, skips::Skips};
use warpgauge_wire::LineFault;

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(project(path)).unwrap()
}

#[test]
fn the_documented_metrics_are_those_of_the_catalogue() {
    let table = metrics::table();
    assert!(text("docs/metrics.md").contains(&table), "docs/metrics.md should hold:\n{table}");
}

#[test]
fn every_reason_is_documented() {
    let of_lines = LineFault::ALL.map(LineFault::reason).into_iter().chain([UNKNOWN_ID]);
    let of_containers = containers::Refusal::ALL.map(containers::Refusal::reason);
    let refused = of_lines.chain(Refusal::ALL.map(Refusal::reason)).chain(of_containers);
    let lost =
        ["pid_not_listed", Excess::Full.reason(), Excess::TooOld.reason(), "partial", "refused"];
    let of_events = event_metrics::Refusal::ALL.map(event_metrics::Refusal::reason).into_iter();
    let of_events = of_events.chain(event_logs::REASONS).chain(follow::REASONS);
    let of_devices = Fault::ALL.map(Fault::reason).into_iter();
    let of_devices = of_devices.chain(Throttling::REASONS.map(|(reason, _)| reason));
    let of_forwarding = || Unpostable::REASONS.into_iter().chain([forward::REFUSED]);
    for (document, reasons) in [
        ("docs/communication.md", refused.collect::<Vec<_>>()),
        ("docs/metrics.md", lost.into_iter().chain(of_events).chain(of_forwarding()).collect()),
        ("docs/metrics.md", of_devices.collect()),
        ("docs/formats/forwarding.md", of_forwarding().collect()),
    ] {
        for reason in reasons {
            assert!(text(document).contains(&format!("`{reason}`")), "{document}: {reason}");
        }
    }
}

#[test]
fn the_example_configuration_is_sound() {
    let (config, faults) = Config::parse(&text("res/warpgauge.toml"));
    assert_eq!(faults, []);
    Rules::compile(&config.process_groups, &config.monitored_pg_names).unwrap();
}

/// A commented key is `# key = value` or `# [table]`; prose never looks like that.
#[test]
fn every_commented_key_of_the_example_is_one_that_the_program_knows() {
    let example = text("res/warpgauge.toml");
    let lines: Vec<_> = example.lines().collect();
    let mut tried = Skips::default();
    for (index, line) in lines.iter().enumerate() {
        let Some(commented) = line.strip_prefix("# ") else { continue };
        let key = commented.split(' ').next().unwrap();
        let is_key = commented.contains(" = ")
            && key.chars().all(|letter| {
                letter.is_ascii_lowercase() || letter == '_' || letter.is_ascii_uppercase()
            });
        if !is_key && !commented.starts_with("[export.headers]") && commented != "[[events]]" {
            continue;
        }
        let mut changed = lines.clone();
        if let Some(line) = changed.get_mut(index) {
            *line = commented;
        }
        if key == "Authorization" {
            let header = changed.iter().position(|line| *line == "# [export.headers]").unwrap();
            if let Some(line) = changed.get_mut(header) {
                *line = "[export.headers]";
            }
        }
        // The keys of an optional table come with it, and it with those that it needs.
        let of_events = ["[[events]]", "pattern", "format", "group", "start", "kernels"];
        if of_events.contains(&key) {
            for line in &mut changed {
                let commented = line.strip_prefix("# ").unwrap_or_default();
                let needed = ["[[events]]", "pattern = ", "format = "];
                if needed.iter().any(|needed| commented.starts_with(needed)) {
                    *line = commented;
                }
            }
        }
        let (_, faults) = Config::parse(&changed.join("\n"));
        assert_eq!(faults, [], "with `{commented}`");
        tried.note("key", String::new);
    }
    assert!(tried.count("key") >= 25, "only {} keys were tried", tried.count("key"));
}

/// Where the example shows a default, it shows the true one.
#[test]
fn a_commented_default_of_the_example_is_the_default() {
    let example = text("res/warpgauge.toml");
    let uncommented = |part: &str| {
        let lines = part.lines().map(|line| match line.strip_prefix("# ") {
            Some(commented) if commented.split_once(" = ").is_some() => commented,
            _ => line,
        });
        let (config, faults) = Config::parse(&lines.collect::<Vec<_>>().join("\n"));
        assert_eq!(faults, []);
        config
    };
    let (default, _) = Config::parse("");
    let (before, _) = example.split_once("# What belongs to a group.").unwrap();
    let before = uncommented(before);
    assert_eq!(before.paths, default.paths);
    assert_eq!(before.functions, default.functions);
    assert_eq!(before.instrumentation_enabled, default.instrumentation_enabled);
    let (_, after) = example.split_once("\n[metrics]").unwrap();
    let after = uncommented(&format!("[metrics]{after}"));
    assert_eq!((after.metrics, after.spool), (default.metrics, default.spool));
    assert_eq!(Devices { library: None, ..after.devices }, default.devices);
    assert_eq!(Telemetry { output: None, ..after.telemetry }, default.telemetry);
    let without_default = Forward {
        backend_url: None,
        logs: Vec::new(),
        token: None,
        batch_bytes: None,
        ca_file: None,
        client_certificate_file: None,
        client_key_file: None,
        ..after.forward
    };
    assert_eq!(without_default, default.forward);
}
