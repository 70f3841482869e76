//! How far the published instructions are from the executed ones, on the stand-in device, whose
//! kernels' work is scripted and counted.
//!
//! `cargo run -p warpgauge-tests --bin estimates` takes a minute and prints the table of
//! `docs/estimates.md`.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use warpgauge_tests::{RunningHost, World};

/// What the device's kernels do; see the stand-in's `script.rs`.
const SCRIPT: &str = "device\n\
    kernel constant instructions=1000\n\
    kernel other instructions=70\n\
    kernel data_dependent instructions=1000 spread=0.5\n\
    kernel drifting instructions=1000 drift=0.0001\n";

/// How long each program launches.
const SECONDS: &str = "30";

/// Several publications after the last launch.
const SETTLING: Duration = Duration::from_millis(3_500);

/// Name, shortest interval between windows in seconds, and what the program launches.
struct Case {
    name: &'static str,
    interval: &'static str,
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    match compare() {
        Ok(table) => {
            println!("{table}");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("estimates: {fault:#}");
            ExitCode::FAILURE
        }
    }
}

fn cases() -> Vec<Case> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let case = |name, interval, text| Case { name, interval, arguments: words(text) };
    let shapes = (1..=500).map(|blocks| format!("--kernel=constant={blocks}:256"));
    let many = |name, interval| Case {
        name,
        interval,
        arguments: shapes.clone().chain(words("--rate=2000")).collect(),
    };
    vec![
        case("constant, 2 shapes", "1", "--kernel=constant=9:256 --kernel=other=3:64 --rate=500"),
        many("constant, 500 shapes", "1"),
        many("constant, 500 shapes", "0.01"),
        case("data-dependent, ±50 %", "1", "--kernel=data_dependent=9:256 --rate=500"),
        case("data-dependent, ±50 %", "0.1", "--kernel=data_dependent=9:256 --rate=500"),
        case("drifting, +150 % in all", "1", "--kernel=drifting=9:256 --rate=500"),
        case("drifting, +150 % in all", "0.1", "--kernel=drifting=9:256 --rate=500"),
        case(
            "graph of 2 functions",
            "1",
            "--mode=graph --kernel=constant=9:256 --kernel=other=3:64 --rate=250",
        ),
        case(
            "graph of 2 shapes of a function",
            "1",
            "--mode=graph --kernel=constant=9:256 --kernel=constant=1:32 --rate=250",
        ),
    ]
}

fn compare() -> Result<Table> {
    let cases = cases();
    let worlds: Vec<World> = cases.iter().map(|_| World::new()).collect::<Result<_>>()?;
    let mut hosts = Vec::new();
    for (case, world) in cases.iter().zip(&worlds) {
        hosts.push(start(case, world)?);
    }
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header([
        "work",
        "s between windows",
        "launches",
        "windows",
        "launches of a measured shape",
        "executed",
        "published",
        "error",
    ]);
    for ((case, world), host) in cases.iter().zip(&worlds).zip(hosts) {
        table.add_row(row(case, world, host).context(case.name)?);
    }
    Ok(table)
}

fn start(case: &Case, world: &World) -> Result<RunningHost> {
    let fixed = ["--pause-before", "init", "--pause-before", "exit", "--seconds", SECONDS];
    let own = case.arguments.iter().map(String::as_str);
    let arguments: Vec<&str> = fixed.into_iter().chain(own).collect();
    world
        .host(&arguments)
        .env("STANDIN_CUDA_SCRIPT", world.script(SCRIPT)?)
        .env("WARPGAUGE_WINDOW_INTERVAL", case.interval)
        .start_listed("0")
}

fn row(case: &Case, world: &World, mut host: RunningHost) -> Result<Vec<String>> {
    host.wait_until_ready_after_report()?;
    std::thread::sleep(SETTLING);
    let health = world.health_of(host.pid())?.context("no health file")?;
    let number = |key: &str| health.get(key).and_then(serde_json::Value::as_f64);
    let (windows, share) = (number("windows"), number("launches_measured_share"));
    host.go_on()?;
    let outcome = host.finish()?;
    ensure!(outcome.status.success(), "the program failed: {}", outcome.errors);
    let published = world.published_by(outcome.pid)?.instructions.unwrap_or(0);
    let executed = outcome.instructions();
    #[expect(clippy::cast_precision_loss, reason = "an error in percent")]
    let error = 100.0 * (published as f64 / executed as f64 - 1.0);
    Ok(vec![
        case.name.to_owned(),
        case.interval.to_owned(),
        outcome.launches().to_string(),
        windows.map_or_else(|| "?".to_owned(), |windows| windows.to_string()),
        share.map_or_else(|| "?".to_owned(), |share| format!("{:.1} %", 100.0 * share)),
        executed.to_string(),
        published.to_string(),
        format!("{error:+.2} %"),
    ])
}
