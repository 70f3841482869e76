//! Turns a trace or an event log on standard input into a trace on standard output.
//!
//! ```text
//! convert_trace kineto|gpumon|gpu-flight kineto|chrome|perfetto
//! zcat trace.json.gz | cargo run --release --example convert_trace kineto perfetto > trace.pftrace
//! ```

use std::error::Error;
use std::io::{self, Read, Write};

use warpgauge_formats::finding::Finding;
use warpgauge_formats::gpu_flight;
use warpgauge_formats::gpumon::{self, Mode};
use warpgauge_formats::join::KernelDetailsJoin;
use warpgauge_formats::lines::Lines;
use warpgauge_formats::loss::Losses;
use warpgauge_formats::timeline::Timeline;
use warpgauge_formats::trace::{Record, Sink};
use warpgauge_formats::{chrome, kineto, perfetto};

enum Writer {
    Kineto(kineto::Writer),
    Chrome(chrome::Writer),
    Perfetto(Box<perfetto::Writer>),
}

impl Writer {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "kineto" => Self::Kineto(kineto::Writer::new()),
            "chrome" => Self::Chrome(chrome::Writer::new()),
            "perfetto" => Self::Perfetto(Box::default()),
            _ => return None,
        })
    }

    fn write(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Kineto(writer) => writer.write(record, out),
            Self::Chrome(writer) => writer.write(record, out),
            Self::Perfetto(writer) => writer.write(record, out),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Kineto(writer) => writer.finish(out),
            Self::Chrome(writer) => writer.finish(out),
            Self::Perfetto(writer) => writer.finish(out),
        }
    }

    fn losses(&self) -> &Losses {
        match self {
            Self::Kineto(writer) => writer.losses(),
            Self::Chrome(writer) => writer.losses(),
            Self::Perfetto(writer) => writer.losses(),
        }
    }
}

struct Conversion<W> {
    writer: Writer,
    bytes: Vec<u8>,
    output: W,
    /// The first fault of the output; nothing is written after it.
    fault: Option<io::Error>,
}

impl<W: Write> Conversion<W> {
    fn flush(&mut self) {
        if self.fault.is_none() {
            self.fault = self.output.write_all(&self.bytes).err();
        }
        self.bytes.clear();
    }
}

impl<W: Write> Sink for Conversion<W> {
    fn record(&mut self, _line: u64, record: &Record<'_>) {
        self.writer.write(record, &mut self.bytes);
        if self.bytes.len() > 1 << 20 {
            self.flush();
        }
    }

    fn finding(&mut self, finding: Finding) {
        eprintln!("{finding}");
    }

    fn unknown(&mut self, line: u64, name: &str) {
        eprintln!("line {line}: unknown: {name}");
    }
}

/// Reads an event log line by line; gives what a trace could not hold.
fn read_log(input: impl Read, format: &str, sink: &mut dyn Sink) -> io::Result<Losses> {
    let mut timeline = Timeline::new(sink);
    let mut join = KernelDetailsJoin::new(&mut timeline);
    let mut gpumon = gpumon::Reader::new(Mode::Tolerant);
    let mut gpu_flight = gpu_flight::Reader::new();
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next()? {
        match format {
            "gpumon" => gpumon.line(line.number, line.bytes, &mut join),
            _ => gpu_flight.line(line.number, line.bytes, &mut join),
        }
    }
    gpu_flight.end(&mut join);
    join.end();
    Ok(timeline.end())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let usage = "usage: convert_trace kineto|gpumon|gpu-flight kineto|chrome|perfetto";
    let [from, to] = arguments.as_slice() else { return Err(usage.into()) };
    let writer = Writer::named(to).ok_or(usage)?;
    let output = io::stdout().lock();
    let mut conversion = Conversion { writer, bytes: vec![], output, fault: None };
    let input = io::stdin().lock();
    let mut read = Ok(());
    let mut losses = Losses::default();
    match from.as_str() {
        "kineto" => read = kineto::read(input, &mut conversion),
        "gpumon" | "gpu-flight" => losses = read_log(input, from, &mut conversion)?,
        _ => return Err(usage.into()),
    }
    conversion.writer.finish(&mut conversion.bytes);
    conversion.flush();
    losses.add(conversion.writer.losses());
    for (name, count) in losses.iter() {
        eprintln!("not held: {name}: {count}");
    }
    read?;
    conversion.fault.map_or(Ok(()), |fault| Err(fault.into()))
}
