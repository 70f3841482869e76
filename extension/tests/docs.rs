//! What is written for people is what the program does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use warpgauge::config::Config;
use warpgauge::measurements::UNKNOWN_ID;
use warpgauge::measurements::folder::Refusal;
use warpgauge::metrics;
use warpgauge::spool::Excess;
use warpgauge_wire::LineFault;

const METRICS: &str = include_str!("../../docs/metrics.md");
const PROTOCOL: &str = include_str!("../../docs/communication.md");
const EXAMPLE: &str = include_str!("../../res/warpgauge.toml");

#[test]
fn the_documented_table_of_metrics_is_the_catalogue() {
    let table = metrics::table();
    assert!(METRICS.contains(&format!("\n\n{table}\n")), "docs/metrics.md must contain:\n{table}");
}

#[test]
fn every_reason_is_explained() {
    let of_lines = LineFault::ALL.map(LineFault::reason).into_iter().chain([UNKNOWN_ID]);
    let of_entries = Refusal::ALL.map(Refusal::reason);
    for reason in of_lines.chain(of_entries) {
        for (name, text) in [("metrics.md", METRICS), ("communication.md", PROTOCOL)] {
            assert!(text.contains(&format!("`{reason}`")), "docs/{name} does not explain {reason}");
        }
    }
    let lost = [Excess::Full.reason(), Excess::TooOld.reason(), "partial", "refused"];
    for reason in lost.into_iter().chain(["pid_not_listed"]) {
        assert!(METRICS.contains(&format!("`{reason}`")), "docs/metrics.md lacks {reason}");
    }
}

#[test]
fn the_example_configuration_is_sound() {
    let (config, faults) = Config::parse(EXAMPLE);
    assert_eq!(faults, []);
    assert_eq!(config.monitored_pg_names, ["trainer"]);
}

/// A commented-out setting: `# key = value`, or the header of a table.
fn uncommented(line: &str) -> Option<&str> {
    let setting = line.strip_prefix("# ")?;
    let is_key = |key: &str| {
        !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let is_setting = setting.split_once('=').is_some_and(|(key, _)| is_key(key.trim()));
    (is_setting || setting.starts_with('[')).then_some(setting)
}

/// The example with one commented-out setting made real, and the header that it stands under.
fn with_setting(number: usize) -> Option<String> {
    let lines: Vec<_> = EXAMPLE.lines().collect();
    let mut text: Vec<_> = lines.clone();
    text[number] = uncommented(lines[number])?;
    let is_header = |line: &str| uncommented(line).unwrap_or(line).starts_with('[');
    if let Some(header) = (0..number).rev().find(|above| is_header(lines[*above])) {
        text[header] = uncommented(lines[header]).unwrap_or(lines[header]);
    }
    let mut text = text.join("\n");
    // A key that stands there already with another value would come twice.
    let key = uncommented(lines[number])?.split('=').next()?.trim();
    let real = EXAMPLE.lines().find(|line| line.split('=').next().is_some_and(|k| k.trim() == key));
    if let Some(real) = real.filter(|_| !key.starts_with('[')) {
        text = text.replacen(real, "", 1);
    }
    Some(text)
}

#[test]
fn every_commented_out_setting_of_the_example_is_a_setting() {
    let mut tried = 0;
    for number in 0..EXAMPLE.lines().count() {
        let Some(text) = with_setting(number) else { continue };
        let (_, faults) = Config::parse(&text);
        assert_eq!(faults, [], "line {} of res/warpgauge.toml", number + 1);
        tried += 1;
    }
    assert!(tried > 25, "only {tried} settings were found");
}

#[test]
fn a_commented_out_default_is_the_default() {
    let before = EXAMPLE.split("[[process_group]]").next().unwrap();
    let all: Vec<_> = before.lines().map(|line| uncommented(line).unwrap_or(line)).collect();
    let (config, faults) = Config::parse(&all.join("\n"));
    assert_eq!(faults, []);
    let (default, _) = Config::parse("");
    assert_eq!(config.paths, default.paths);
    assert_eq!(config.functions, default.functions);
    assert_eq!(config.instrumentation_enabled, default.instrumentation_enabled);
    let after = EXAMPLE.split("\n[metrics]").nth(1).unwrap();
    let all: Vec<_> = after.lines().map(|line| uncommented(line).unwrap_or(line)).collect();
    let (config, faults) = Config::parse(&format!("[metrics]{}", all.join("\n")));
    assert_eq!(faults, []);
    assert_eq!((config.metrics, config.spool), (default.metrics, default.spool));
}
