//! Reads traces from files, one after the other.

use std::cell::Cell;
use std::io::{self, Read};

use warpgauge_formats::json::stream::{Error, Position};
use warpgauge_formats::kineto::{self, Repaired};
use warpgauge_formats::trace::Sink;

use crate::events::input::{Input, Packing};

/// Hears what traces say, one after the other.
pub trait Follow: Sink {
    /// The records of that trace follow, counted from 0.
    fn trace_begins(&mut self, trace: usize, name: &str);

    /// A trace has been read as far as it can be.
    fn trace_ends(&mut self, trace: usize, end: End);

    /// Of a trace that is drawn from an event log: a file of the log begins. Lines are counted
    /// through all files.
    fn log_file_begins(&mut self, _name: &str, _lines_before: u64) {}
}

/// How a trace's reading ended.
#[derive(Debug, Default)]
pub struct End {
    /// Quotes that were mended, where that was asked for.
    pub mended: u64,
    /// Why the trace could not be read to its end. All records before that place have been handed on.
    pub fault: Option<Fault>,
    /// Of an event log: what a trace cannot hold, by name and count.
    pub losses: Vec<(String, u64)>,
}

/// Why a trace cannot be read on.
#[derive(Debug)]
pub struct Fault {
    /// Where.
    pub position: Position,
    /// What stands there, and what should.
    pub what: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { position: Position { line, column, offset }, what } = self;
        write!(formatter, "{line}:{column}: {what} (byte {offset})")
    }
}

/// Reads one trace into `sink`. With `repair`, quotes that were written as `/"` are mended on the way.
/// As soon as `stop` says so, nothing more is read.
///
/// Memory: that of [`kineto::read`], and what unpacking takes (zstd up to 128 MiB, as the file asks).
pub fn read(input: Input, repair: bool, stop: &Cell<bool>, sink: &mut dyn Sink) -> End {
    let packing = input.packing;
    let mut input = Stoppable { input, stop };
    let (mended, read) = if repair {
        let mut repaired = Repaired::new(&mut input);
        let read = kineto::read(&mut repaired, sink);
        (repaired.mended(), read)
    } else {
        (0, kineto::read(&mut input, sink))
    };
    let fault = read.err().filter(|_| !stop.get());
    let fault = fault.map(|error| fault_of(error, packing, repair));
    End { mended, fault, losses: vec![] }
}

fn fault_of(error: Error, packing: Packing, repair: bool) -> Fault {
    let (position, what) = match error {
        Error::Syntax { what, position } if repair => (position, what.to_owned()),
        Error::Syntax { what, position } => {
            (position, format!("{what}; if a quote stands there as `/\"`, --repair mends it"))
        }
        Error::CutOff { what, position } => {
            (position, format!("the document ends here, but {what}"))
        }
        Error::NotUtf8 { position } => (position, "the text is not UTF-8".to_owned()),
        Error::TooLong { position } => {
            (position, "the value that begins here is too long".to_owned())
        }
        Error::Input { position, source } if packing == Packing::Plain => {
            (position, format!("reading on failed: {source}"))
        }
        Error::Input { position, source } => (
            position,
            format!("expected the rest of the {} stream, found {source}", packing.name()),
        ),
    };
    Fault { position, what }
}

/// An input that fails once nobody wants to read on.
struct Stoppable<'s> {
    input: Input,
    stop: &'s Cell<bool>,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stop.get() {
            return Err(io::Error::other("nobody reads on"));
        }
        self.input.read(into)
    }
}
