//! What it takes to ask the devices, with the stand-in for NVML: eight of them with ten processes
//! each, in a process of its own for each round. The floor loads the library and begins it, and asks
//! nothing. What NVIDIA's own library takes, only a GPU can tell.
//!
//! ```text
//! cargo bench -p warpgauge --bench devices -- [--json] [--rounds N]
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark stops at the first surprise"
)]

#[path = "support/figures.rs"]
#[allow(dead_code, reason = "not every benchmark needs all of it")]
mod figures;
#[path = "support/rounds.rs"]
#[allow(dead_code, reason = "not every benchmark needs all of it")]
mod rounds;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use figures::{Budget, Figure, Samples};
use rounds::{Asked, milliseconds, place};
use warpgauge::config::devices::Devices;
use warpgauge::devices::sampling;

/// Budget of the project's specification.
const MILLISECONDS: f64 = 20.0;

const DEVICES: usize = 8;
const PROCESSES: usize = 10;

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, role, library] = &arguments[..] {
        match role.as_str() {
            "load" => return load(library),
            "sample" => return sample(library),
            _ => {}
        }
    }
    let asked = Asked::from_arguments();
    let place = place();
    let script = place.path().join("devices.script");
    File::create(&script).unwrap().write_all(machine().as_bytes()).unwrap();
    let [mut floor, mut sampled] = [(); 2].map(|()| Samples::default());
    for _ in 0..asked.rounds(50) {
        floor.push(in_a_helper("load", &script));
        sampled.push(in_a_helper("sample", &script));
    }
    let what = format!("{DEVICES} devices, {PROCESSES} processes each");
    let figure = Figure::new(what, "ms", sampled).over(&floor);
    let figures = vec![figure.within(Budget::AtMost(MILLISECONDS))];
    figures::print("devices", place.path(), figures, asked);
}

fn machine() -> String {
    let processes = |device: usize| -> String {
        let pids = (0..PROCESSES).map(|number| 1_000 * (device + 1) + number);
        pids.map(|pid| format!("process pid={pid} used=1\n")).collect()
    };
    let device = |device| {
        format!(
            "device uuid=GPU-{device} name=H100 total=1000 used=300 gpu=50\n{}",
            processes(device)
        )
    };
    (0..DEVICES).map(device).collect()
}

/// Milliseconds that a new process needs for its part, without its start and its end.
fn in_a_helper(role: &str, script: &Path) -> f64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(role).arg(standin()).env("STANDIN_NVML_SCRIPT", script);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

fn load(library: &str) {
    let mut loaded = None;
    let took = milliseconds(|| {
        loaded = Some(nvml_wrapper::Nvml::builder().lib_path(library.as_ref()).init().unwrap());
    });
    println!("{took}");
}

fn sample(library: &str) {
    let settings = Devices { library: Some(library.into()), ..Devices::default() };
    let mut sample = None;
    let took = milliseconds(|| sample = sampling::begin(&settings).map(sampling::Sampling::finish));
    let sample = sample.unwrap();
    assert_eq!((sample.devices.len(), sample.faults.total()), (DEVICES, 0), "{:?}", sample.faults);
    assert!(sample.devices.iter().all(|device| device.processes.len() == PROCESSES));
    println!("{took}");
}

/// The stand-in, which Cargo builds as a dependency of this benchmark, beside it.
fn standin() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.parent().unwrap().join("libstandin_nvml.so");
    assert!(path.exists(), "{} was not built", path.display());
    path
}
