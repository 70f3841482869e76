//! `cargo demo`: the whole loop on this machine, with or without a GPU.
//!
//! Two host programs run as two process groups with the instrument injected; passes of the
//! extension list them, collect what they publish and export it to a file; the file is read back
//! and shown. Everything lives in a temporary folder and ends with the demo.
#![forbid(unsafe_code)]
#![allow(clippy::indexing_slicing, reason = "a missing key of a JSON value reads as null")]

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};
use serde_json::Value;
use warpgauge_tests::Artifacts;

/// Each group's name and what its program launches.
const GROUPS: [(&str, &[&str]); 2] = [
    (
        "trainer",
        &["--kernel", "register_heavy=264:256", "--kernel", "saxpy=108:256", "--rate", "4000"],
    ),
    ("inference", &["--kernel", "tiled=64:128:16384", "--rate", "1000"]),
];

/// How long the host programs launch, in seconds.
const HOST_SECONDS: &str = "6";

/// Passes while they run; a timer would start one every minute.
const PASSES: usize = 3;
const BETWEEN_PASSES: Duration = Duration::from_millis(1_800);

/// Beyond this a host program is taken to hang.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    match demo() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("demo: {fault:#}");
            ExitCode::FAILURE
        }
    }
}

fn demo() -> Result<()> {
    step("building what the demo needs (once)");
    let artifacts = Artifacts::build()?;
    let warpgauge = artifacts.warpgauge.as_deref().context("the workspace has no warpgauge")?;
    let world = World::new(artifacts)?;
    step(match world.standin {
        true => "no NVIDIA driver here: the stand-in driver takes its place",
        false => "using this machine's NVIDIA driver",
    });

    let mut hosts = Vec::new();
    for (group, arguments) in GROUPS {
        let host = world.start_host(artifacts, arguments)?;
        step(&format!("started {group}: pid {} launches {}", host.0.id(), arguments.join(" ")));
        hosts.push((group, host));
    }
    for number in 1..=PASSES {
        step(&format!("pass {number}: {}", world.pass(warpgauge)?));
        if number < PASSES {
            std::thread::sleep(BETWEEN_PASSES);
        }
    }
    let mut launched = BTreeMap::new();
    for (group, host) in hosts {
        launched.insert(group, host.finish()?);
    }
    step(&format!("the programs have ended; last pass: {}", world.pass(warpgauge)?));
    show(&world.exported()?, &launched)
}

fn step(text: &str) {
    eprintln!("demo: {text}");
}

/// A temporary folder with a configuration for it.
struct World {
    folder: tempfile::TempDir,
    standin: bool,
}

impl World {
    fn new(artifacts: &Artifacts) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("warpgauge-demo-").tempdir()?;
        let world = Self { folder, standin: !Path::new("/proc/driver/nvidia/version").exists() };
        let libraries = world.path("lib");
        std::fs::create_dir(&libraries)?;
        if world.standin {
            symlink(&artifacts.standin_cuda, libraries.join("libcuda.so.1"))?;
            symlink(&artifacts.standin_cupti, libraries.join("libcupti.so.13"))?;
        }
        let names = GROUPS.map(|(group, _)| format!("{group:?}")).join(", ");
        let mut config = format!(
            "monitored_pg_names = [{names}]\nfunctions = [\"occupancy\"]\n\
             [paths]\nruntime_config = {:?}\nmeasurements = {:?}\ncontainers = {:?}\nstate = {:?}\n\
             [export]\nprotocol = \"file\"\npath = {:?}\n",
            world.path("runtime.conf"),
            world.path("measurements"),
            world.path("containers"),
            world.path("state"),
            world.path("metrics.otlp.jsonl"),
        );
        for (group, arguments) in GROUPS {
            let kernel = arguments.get(1).context("a group without a kernel")?;
            config.push_str(&format!(
                "[[process_group]]\nname = {group:?}\nprocess_name = \"warpgauge-host\"\ncmdline = '{kernel}'\n\
                 env = {{ WARPGAUGE_DEMO = {:?} }}\n",
                world.folder.path()
            ));
        }
        let mut file = std::fs::File::create_new(world.path("warpgauge.toml"))?;
        file.write_all(config.as_bytes())?;
        Ok(world)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start_host(&self, artifacts: &Artifacts, arguments: &[&str]) -> Result<RunningHost> {
        let mut command = Command::new(&artifacts.host);
        command
            .args(arguments)
            .args(["--seconds", HOST_SECONDS])
            .env("CUDA_INJECTION64_PATH", &artifacts.instrument)
            .env("WARPGAUGE_RUNTIME_CONFIG_PATH", self.path("runtime.conf"))
            .env("WARPGAUGE_RUNTIME_CONFIG_POLLING_INTERVAL", "1")
            .env("WARPGAUGE_MEASUREMENTS_OUTPUT_DIR", self.path("measurements"))
            .env("WARPGAUGE_FLUSH_INTERVAL", "1")
            .env("WARPGAUGE_LOGFILE", self.path("instrument.log"))
            // Tells this demo's programs from those of another one on the same machine.
            .env("WARPGAUGE_DEMO", self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if self.standin {
            command.env("LD_LIBRARY_PATH", self.path("lib"));
        }
        let program = artifacts.host.display();
        command.spawn().map(RunningHost).with_context(|| format!("{program} cannot be started"))
    }

    /// One pass; returns what it says of itself in a few words.
    fn pass(&self, warpgauge: &Path) -> Result<String> {
        let output = Command::new(warpgauge)
            .args(["run", "--json", "--config"])
            .arg(self.path("warpgauge.toml"))
            .stderr(Stdio::inherit())
            .output()
            .context("warpgauge cannot be started")?;
        ensure!(output.status.success(), "warpgauge run: {}", output.status);
        let report: Value = serde_json::from_slice(&output.stdout)?;
        let took_ms = report["duration_s"].as_f64().unwrap_or_default() * 1_000.0;
        Ok(format!(
            "{} processes listed, {} measurements read, {} points exported in {took_ms:.1} ms",
            report["listed"], report["read"], report["delivery"]["accepted_points"]
        ))
    }

    /// What arrived in the export file, by pid.
    fn exported(&self) -> Result<BTreeMap<u64, Exported>> {
        let text = std::fs::read_to_string(self.path("metrics.otlp.jsonl"))?;
        let mut processes = BTreeMap::<u64, Exported>::new();
        for line in text.lines() {
            let request: Value = serde_json::from_str(line)?;
            for resource in request["resourceMetrics"].as_array().into_iter().flatten() {
                let Some(pid) = attribute(resource, "process.pid") else { continue };
                let process = processes.entry(pid.parse()?).or_default();
                process.group = attribute(resource, "warpgauge.group").unwrap_or_default();
                process.add(resource)?;
            }
        }
        Ok(processes)
    }
}

/// A host program; ended with the demo, however that ends.
struct RunningHost(Child);

impl RunningHost {
    /// Waits for its end and returns how many kernels it says to have launched.
    fn finish(mut self) -> Result<u64> {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.0.try_wait()? {
                break status;
            }
            if Instant::now() >= end {
                bail!("host program {} does not end", self.0.id());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        ensure!(status.success(), "host program {}: {status}", self.0.id());
        let output = self.0.stdout.take().context("no standard output")?;
        let output = io::read_to_string(output)?;
        let report: Value = serde_json::from_str(output.lines().last().unwrap_or_default())?;
        let launches = report["launches"].as_array().into_iter().flatten();
        Ok(launches.filter_map(|launch| launch["count"].as_u64()).sum())
    }
}

impl Drop for RunningHost {
    fn drop(&mut self) {
        // Ended already, in the good case.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the export says of one process, over all windows.
#[derive(Default)]
struct Exported {
    group: String,
    launches: u64,
    /// Occupancy times launches.
    weighted_occupancy: f64,
}

impl Exported {
    fn add(&mut self, resource: &Value) -> Result<()> {
        let point = |name: &str| {
            let scopes = resource["scopeMetrics"].as_array().into_iter().flatten();
            let mut metrics =
                scopes.flat_map(|scope| scope["metrics"].as_array().into_iter().flatten());
            let metric = metrics.find(|metric| metric["name"] == name)?;
            let data = metric.get("sum").or_else(|| metric.get("gauge"))?;
            data["dataPoints"].get(0)
        };
        let Some(launches) = point("gpu.kernel.launches") else { return Ok(()) };
        // 64-bit integers are strings in OTLP JSON.
        let launches: u64 =
            launches["asInt"].as_str().context("launches without a value")?.parse()?;
        let occupancy = point("gpu.kernel.occupancy").and_then(|point| point["asDouble"].as_f64());
        self.launches += launches;
        #[expect(clippy::cast_precision_loss, reason = "a demo launches far fewer than 2^53")]
        if let Some(occupancy) = occupancy {
            self.weighted_occupancy += occupancy * launches as f64;
        }
        Ok(())
    }
}

fn attribute(resource: &Value, name: &str) -> Option<String> {
    let attributes = resource["resource"]["attributes"].as_array()?;
    let value = &attributes.iter().find(|attribute| attribute["key"] == name)?["value"];
    let text = value.get("stringValue").or_else(|| value.get("intValue"))?;
    text.as_str().map(str::to_owned)
}

fn show(processes: &BTreeMap<u64, Exported>, launched: &BTreeMap<&str, u64>) -> Result<()> {
    ensure!(
        processes.len() == GROUPS.len(),
        "{} processes were exported instead of {}",
        processes.len(),
        GROUPS.len()
    );
    let mut table = Table::new();
    let rule = LineStyle::none().fill('─').junction('─');
    table.load_style(match io::stdout().is_terminal() {
        true => TableStyle::new().header_separator(rule),
        false => TableStyle::new(),
    });
    table.set_header(["GROUP", "PID", "LAUNCHES", "OCCUPANCY", "OF ALL LAUNCHES"]);
    let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    for (pid, process) in processes {
        let all = launched.get(process.group.as_str()).copied().unwrap_or_default();
        ensure!(process.launches > 0, "group {}: no launch was exported", process.group);
        ensure!(process.launches <= all, "group {}: more launches than there were", process.group);
        #[expect(clippy::cast_precision_loss, reason = "a demo launches far fewer than 2^53")]
        let (occupancy, share) = (
            process.weighted_occupancy / process.launches as f64,
            process.launches as f64 / all as f64,
        );
        table.add_row([
            Cell::new(&process.group),
            number(pid.to_string()),
            number(process.launches.to_string()),
            number(format!("{:.1} %", occupancy * 100.0)),
            number(format!("{:.1} %", share * 100.0)),
        ]);
    }
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{}",
        table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    )?;
    writeln!(out, "The rest was launched before the first pass had listed its program.")?;
    Ok(())
}
