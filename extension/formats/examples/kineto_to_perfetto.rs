//! Turns a Kineto trace on standard input into a Perfetto trace on standard output.
//!
//! ```sh
//! zcat trace.json.gz | cargo run --release --example kineto_to_perfetto > trace.pftrace
//! ```

use std::io::{self, Write};

use warpgauge_formats::finding::Finding;
use warpgauge_formats::kineto;
use warpgauge_formats::perfetto::Writer;
use warpgauge_formats::trace::{Record, Sink};

struct Conversion<W> {
    writer: Writer,
    packets: Vec<u8>,
    output: W,
    /// The first fault of the output; nothing is written after it.
    fault: Option<io::Error>,
}

impl<W: Write> Conversion<W> {
    fn flush(&mut self) {
        if self.fault.is_none() {
            self.fault = self.output.write_all(&self.packets).err();
        }
        self.packets.clear();
    }
}

impl<W: Write> Sink for Conversion<W> {
    fn record(&mut self, _line: u64, record: &Record<'_>) {
        self.writer.write(record, &mut self.packets);
        if self.packets.len() > 1 << 20 {
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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let output = io::stdout().lock();
    let mut conversion = Conversion { writer: Writer::new(), packets: vec![], output, fault: None };
    let read = kineto::read(io::stdin().lock(), &mut conversion);
    conversion.writer.finish(&mut conversion.packets);
    conversion.flush();
    for (name, count) in conversion.writer.losses().iter() {
        eprintln!("not held: {name}: {count}");
    }
    read?;
    conversion.fault.map_or(Ok(()), Err)?;
    Ok(())
}
