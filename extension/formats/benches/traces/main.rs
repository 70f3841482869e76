//! What reading and converting a trace costs, on one core, beside two measures from the same run:
//! finding the newlines and no more, and Python's `json.load`.
//!
//! ```text
//! cargo bench -p warpgauge-formats --bench traces             a trace of 1 GB, some minutes
//! cargo bench -p warpgauge-formats --bench traces -- --short  of 60 MB
//! ```
//!
//! A trace like one of PyTorch's is generated below `target/tmp`, plain and as .gz. Each way of
//! reading runs in a process of its own, several times, and the fastest counts. MB are those of the
//! plain trace (10^6 bytes), `processor` is user and system time, `resident` is `VmHWM`. The output
//! is counted and dropped, and the traces are removed at the end.
//!
//! Budgets: `perfetto` 200 MB/s within 64 MB and at most a third of the input, `validate` 300 MB/s.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark stops at the first surprise"
)]

mod generate;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use flate2::read::MultiGzDecoder;
use warpgauge_formats::finding::Finding;
use warpgauge_formats::trace::{Record, Sink};
use warpgauge_formats::{kineto, perfetto};

/// Counts records, so that none is left unread.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn record(&mut self, _: u64, _: &Record<'_>) {
        self.0 += 1;
    }

    fn finding(&mut self, finding: Finding) {
        panic!("{finding}");
    }

    fn unknown(&mut self, line: u64, name: &str) {
        panic!("line {line}: {name}");
    }
}

/// Writes records in another form and counts the bytes.
struct Conversion<W> {
    write: W,
    out: Vec<u8>,
    bytes: u64,
}

impl<W: FnMut(Option<&Record<'_>>, &mut Vec<u8>)> Conversion<W> {
    fn new(write: W) -> Self {
        Self { write, out: vec![], bytes: 0 }
    }

    fn drop_written(&mut self) {
        self.bytes += self.out.len() as u64;
        self.out.clear();
    }
}

impl<W: FnMut(Option<&Record<'_>>, &mut Vec<u8>)> Sink for Conversion<W> {
    fn record(&mut self, _: u64, record: &Record<'_>) {
        (self.write)(Some(record), &mut self.out);
        if self.out.len() > 64 << 10 {
            self.drop_written();
        }
    }

    fn finding(&mut self, finding: Finding) {
        panic!("{finding}");
    }

    fn unknown(&mut self, line: u64, name: &str) {
        panic!("line {line}: {name}");
    }
}

fn converted(input: Box<dyn Read>, write: impl FnMut(Option<&Record<'_>>, &mut Vec<u8>)) -> u64 {
    let mut conversion = Conversion::new(write);
    kineto::read(input, &mut conversion).unwrap();
    (conversion.write)(None, &mut conversion.out);
    conversion.drop_written();
    conversion.bytes
}

/// Does one thing with one file, and gives the bytes that were written.
fn work(what: &str, path: &Path) -> u64 {
    let file = File::open(path).unwrap();
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    let mut input: Box<dyn Read> =
        if packed { Box::new(MultiGzDecoder::new(BufReader::new(file))) } else { Box::new(file) };
    match what {
        "newlines" => {
            let (mut chunk, mut lines) = (vec![0; 256 << 10], 0);
            loop {
                let count = input.read(&mut chunk).unwrap();
                if count == 0 {
                    break;
                }
                lines += memchr::memchr_iter(b'\n', &chunk[..count]).count();
            }
            assert!(lines > 0);
            0
        }
        "validate" => {
            let mut count = Count::default();
            kineto::read(input, &mut count).unwrap();
            assert!(count.0 > 1000);
            0
        }
        "kineto" => {
            let mut writer = kineto::Writer::new();
            converted(input, |record, out| match record {
                Some(record) => writer.write(record, out),
                None => writer.finish(out),
            })
        }
        "perfetto" => {
            let mut writer = perfetto::Writer::new();
            converted(input, |record, out| match record {
                Some(record) => writer.write(record, out),
                None => writer.finish(out),
            })
        }
        other => panic!("nothing is called {other}"),
    }
}

/// What one process needed.
#[derive(Debug, Clone, Copy)]
struct Needed {
    seconds: f64,
    processor: f64,
    /// kB
    resident: u64,
    written: u64,
}

impl Needed {
    /// From the line that a process prints at its end.
    fn parsed(line: &str) -> Self {
        let numbers: Vec<f64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [seconds, processor, resident, written] = numbers[..] else { panic!("{line}") };
        Self { seconds, processor, resident: resident as u64, written: written as u64 }
    }
}

/// `VmHWM`, kB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Seconds of `utime` and `stime`, whose unit is 1/100 s on Linux.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let behind_name = stat.rsplit_once(')').unwrap().1;
    let fields = behind_name.split_whitespace().skip(11).take(2);
    fields.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// The best of several runs of a process.
fn best(times: usize, command: impl Fn() -> Command) -> Needed {
    let run = |_| {
        let output = command().output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Needed::parsed(String::from_utf8_lossy(&output.stdout).trim())
    };
    (0..times).map(run).min_by(|one, other| one.seconds.total_cmp(&other.seconds)).unwrap()
}

fn row(name: &str, input: u64, needed: Needed) {
    let megabytes = input as f64 / 1e6;
    let Needed { seconds, processor, resident, written } = needed;
    let share = match written {
        0 => String::new(),
        written => format!("{:.3}", written as f64 / input as f64),
    };
    println!(
        "{name:<22} {megabytes:>7.0} MB {:>7.0} MB/s {:>7.0} MB/s of processor {:>8.1} MB resident {share:>8}",
        megabytes / seconds,
        megabytes / processor,
        resident as f64 * 1024.0 / 1e6,
    );
}

fn generated(name: &str, bytes: u64) -> (PathBuf, u64) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut out = BufWriter::new(File::create(&path).unwrap());
    generate::trace(bytes, &mut out).unwrap();
    out.flush().unwrap();
    let length = path.metadata().unwrap().len();
    (path, length)
}

fn packed(path: &Path) -> PathBuf {
    let packed = path.with_extension("json.gz");
    let out = BufWriter::new(File::create(&packed).unwrap());
    let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
    io::copy(&mut File::open(path).unwrap(), &mut encoder).unwrap();
    encoder.finish().unwrap().flush().unwrap();
    packed
}

const PYTHON: &str = "
import json, sys, time, resource
begun = time.monotonic()
with open(sys.argv[1]) as file:
    trace = json.load(file)
seconds = time.monotonic() - begun
used = resource.getrusage(resource.RUSAGE_SELF)
print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss, 0)
";

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    if let [child, what, path] = &arguments[..]
        && child == "--one"
    {
        let begun = Instant::now();
        let written = work(what, Path::new(path));
        println!("{} {} {} {written}", begun.elapsed().as_secs_f64(), processor(), resident());
        return;
    }
    let short = arguments.iter().any(|argument| argument == "--short");
    let (bytes, times) = if short { (60_000_000, 3) } else { (1_000_000_000, 3) };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    println!("load {}", load.trim());

    let (trace, length) = generated("trace.json", bytes);
    let (itself, packed) = (std::env::current_exe().unwrap(), packed(&trace));
    for (path, suffix) in [(&trace, ""), (&packed, ", .gz")] {
        for what in ["newlines", "validate", "kineto", "perfetto"] {
            let needed = best(times, || {
                let mut command = Command::new(&itself);
                command.arg("--one").arg(what).arg(path);
                command
            });
            row(&format!("{what}{suffix}"), length, needed);
        }
    }
    // Python keeps all of it in memory: a tenth is enough.
    let (cut, length) = generated("trace_cut.json", bytes / 10);
    let python = || {
        let mut command = Command::new("python3");
        command.args(["-c", PYTHON]).arg(&cut);
        command
    };
    if python().output().is_ok() {
        row("json.load of Python", length, best(1, python));
    }
    for file in [trace, packed, cut] {
        std::fs::remove_file(file).unwrap();
    }
}
