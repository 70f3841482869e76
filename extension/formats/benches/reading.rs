//! How fast each format is read, on one core, beside the floor: finding the newlines and no more.
//!
//! ```text
//! python3 tests/fixtures/gpuflight/generate_session.py --out target/session
//! cargo bench -p warpgauge-formats --bench reading -- target/session
//! ```
//!
//! Each log is fed from memory again and again until two gigabytes have passed, or a quarter of a
//! second where `--short` stands, without a file between. The line ends with the peak of resident
//! memory (`VmHWM` of `/proc/self/status`) without the log itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark stops at the first surprise"
)]

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use warpgauge_formats::event::Event;
use warpgauge_formats::finding::{Finding, Sink};
use warpgauge_formats::gpu_flight;
use warpgauge_formats::gpumon::{self, Mode};
use warpgauge_formats::lines::{Line, Lines};

/// Counts events, so that none is left unread.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn event(&mut self, _: u64, _: &Event<'_>) {
        self.0 += 1;
    }

    fn finding(&mut self, finding: Finding) {
        // From the second time on, each batch is one that has come already.
        panic!("{finding}");
    }

    fn unknown(&mut self, _: u64, _: &str) {}
}

/// A log again and again.
struct Again<'l> {
    log: &'l [u8],
    rest: &'l [u8],
    left: usize,
}

impl Read for Again<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.rest.is_empty() {
            self.left -= 1;
            self.rest = self.log;
        }
        if self.left == 0 {
            return Ok(0);
        }
        let count = self.rest.len().min(into.len());
        let (now, rest) = self.rest.split_at(count);
        into[..count].copy_from_slice(now);
        self.rest = rest;
        Ok(count)
    }
}

fn measure(name: &str, log: &[u8], times: usize, mut take: impl FnMut(&Line<'_>)) {
    let mut lines = Lines::new(Again { log, rest: log, left: times });
    let begun = Instant::now();
    while let Some(line) = lines.next().unwrap() {
        take(&line);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let megabytes = (log.len() * times) as f64 / 1e6;
    println!("{name:<28} {megabytes:>7.0} MB {:>7.0} MB/s", megabytes / seconds);
}

/// `VmHWM`, kB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A gpumon log in which a kernel comes ten times as often as a scope.
fn gpumon_log() -> Vec<u8> {
    let mut log = vec![];
    for step in 0..10_000_u64 {
        let time = 444_252_753_312_100 + step * 1_000_000;
        let name = format!("epoch_{}", step % 7);
        let mut line = |text: String| {
            log.extend_from_slice(text.as_bytes());
            log.push(b'\n');
        };
        let head = r#""pid":1234,"app":"trainer""#;
        let memory = r#""memory":[{"device":0,"used_mib":1024,"free_mib":8192,"total_mib":9216}]"#;
        line(format!(r#"{{"type":"scope_begin",{head},"name":"{name}","ts_ns":{time},{memory}}}"#));
        for kernel in 0..10 {
            let start = time + kernel * 9_000;
            let end = start + 3_333;
            line(format!(
                r#"{{"type":"kernel",{head},"kernel":"void at::native::vectorized_elementwise_kernel<4, {kernel}>","ts_start_ns":{start},"ts_end_ns":{end},"duration_ns":3333,"grid":[128,1,1],"block":[256,1,1],"shared_mem_bytes":0,"cuda_error":"cudaSuccess"}}"#
            ));
        }
        let end = time + 900_000;
        line(format!(
            r#"{{"type":"scope_end",{head},"name":"{name}","ts_start_ns":{time},"ts_end_ns":{end},"duration_ns":900000,{memory}}}"#
        ));
    }
    log
}

fn channels(folder: &Path) -> Vec<u8> {
    let read = |channel| {
        std::fs::read(folder.join(format!("train.{channel}.log"))).expect("a generated session")
    };
    ["device", "scope", "system"].map(read).concat()
}

fn main() {
    let arguments: Vec<_> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let short = arguments.iter().any(|argument| argument == "--short");
    let amount = if short { 100_000_000 } else { 2_000_000_000 };
    let folder = arguments.iter().find(|argument| !argument.starts_with("--"));

    let mut logs = vec![("gpumon", gpumon_log())];
    if let Some(folder) = folder.map(Path::new) {
        logs.push(("GPU Flight, wide", channels(&folder.join("fat"))));
        logs.push(("GPU Flight, batches", channels(&folder.join("columnar"))));
        logs.push(("GPU Flight, all details", channels(&folder.join("columnar_alldetail"))));
    }
    for (name, log) in logs {
        let (before, times) = (peak(), amount / log.len() + 1);
        let (mut newlines, mut sink) = (0_u64, Count::default());
        measure(&format!("{name}, floor"), &log, times, |line| newlines += u64::from(line.ended));
        if name == "gpumon" {
            let mut reader = gpumon::Reader::new(Mode::Strict);
            measure(name, &log, times, |line| reader.line(line.number, line.bytes, &mut sink));
        } else {
            // A batch that has come already is refused, so that each time has a reader of its own.
            let (mut reader, mut of) = (gpu_flight::Reader::new(), 0);
            measure(name, &log, times, |line| {
                let now = line.offset / log.len() as u64;
                if std::mem::replace(&mut of, now) != now {
                    reader = gpu_flight::Reader::new();
                }
                reader.line(line.number, line.bytes, &mut sink);
            });
        }
        println!(
            "{newlines} lines, {} events, {} MB more at the peak",
            sink.0,
            (peak() - before) / 1000
        );
    }
}
