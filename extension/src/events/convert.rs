//! From one format to another, and nothing lost without a word.

mod notes;
mod sheets;
mod target;

use std::cell::Cell;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use indicatif::ProgressBar;
use warpgauge_formats::event::Event;
use warpgauge_formats::finding::{Finding, Sink};
use warpgauge_formats::gpu_flight::Details;
use warpgauge_formats::join::{KernelDetailsJoin, SampleScopes};

pub use self::notes::{Notes, Place};
use self::sheets::channel_paths;
pub(crate) use self::sheets::{Sheets, Whole};
use self::target::Target;
use super::bounds::Bounds;
use super::format::Format;
use super::log::{self, LogError};
use super::reader::{FileEnd, Follow, LineRead};
use super::tables::WriteError;

/// What to convert and into what.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The logs, or folders of tables; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// Their format; without one the content tells.
    pub from: Option<Format>,
    /// The format to write.
    pub to: Format,
    /// Where to; `None` is standard output.
    pub out: Option<PathBuf>,
    /// Which kernels keep their details in columnar batches.
    pub details: Details,
    /// Whether what the format cannot hold may be left out.
    pub lossy: bool,
    /// Whether what stands at `out` may be replaced.
    pub force: bool,
}

/// What a conversion did.
#[derive(Debug, Default)]
pub struct Report {
    /// Events that were read.
    pub events: u64,
    /// What was left out, by name and count. Where that may not be, nothing was written.
    pub losses: Vec<(String, u64)>,
    /// What was read badly or not at all.
    pub notes: Notes,
    /// What the filters left out, by kind and count.
    pub left_out: Vec<(String, u64)>,
    /// What else a person has to know.
    pub remarks: Vec<String>,
    /// The files that were written, or none.
    pub written: Vec<PathBuf>,
    /// Whether the result stands where it should.
    pub is_placed: bool,
}

/// Why a conversion ended early. Nothing was written then.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The log could not be read.
    #[error(transparent)]
    Read(#[from] LogError),
    /// An output could not be written.
    #[error("{path}: {error}")]
    Output {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        error: io::Error,
    },
    /// The format is that of traces.
    #[error("{0} is a format of traces, not of event logs")]
    NoLog(Format),
    /// The format is that of event logs.
    #[error("{0} is a format of event logs, not of traces")]
    NoTrace(Format),
    /// Several traces, and nothing says what becomes of them.
    #[error("several traces: --merge makes one of them")]
    Several,
    /// An event log's files are one log already.
    #[error("the files of an event log are read as one log: --merge is for traces")]
    OneLog,
    /// Traces cannot be merged.
    #[error("{0}")]
    Merge(String),
    /// A trace has no ranks to be split by.
    #[error(
        "the trace names no rank: neither is it a merged one nor has it distributedInfo with a rank"
    )]
    NoRanks,
    /// A trace would become too many files.
    #[error("more than {0} parts: give a longer time")]
    Parts(usize),
    /// Tables could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Standard output could not be written.
    #[error("standard output: {0}")]
    Stdout(io::Error),
}

impl Conversion {
    /// What will stand where the conversion goes; nothing for standard output.
    #[must_use]
    pub fn outputs(&self) -> Vec<PathBuf> {
        match (&self.out, self.to) {
            (None, _) => vec![],
            (Some(out), Format::GpuFlight | Format::GpuFlightFat) => channel_paths(out).to_vec(),
            (Some(out), _) => vec![out.clone()],
        }
    }

    /// Converts; what goes to standard output goes to `stdout`, as a whole at the end.
    ///
    /// # Errors
    /// Where an input cannot be opened or an output not be written. What is wrong within an input
    /// stands in the report.
    pub fn run(&self, bar: &ProgressBar, stdout: &mut dyn Write) -> Result<Report, ConvertError> {
        let mut notes = Notes::default();
        let failed = Cell::new(false);
        let target = Target::create(self.to, self.details, self.out.as_deref())?;
        let mut writing = Writing::new(target, &failed);
        let mut bounds = Bounds::new(&mut writing);
        if self.to == Format::GpuFlight {
            let mut scopes = SampleScopes::default();
            let first = &mut scopes.before(&mut bounds);
            self.read_joined(&mut Chain { first, notes: &mut notes, failed: &failed }, bar)?;
        } else {
            let first = &mut bounds;
            self.read_joined(&mut Chain { first, notes: &mut notes, failed: &failed }, bar)?;
        }
        bounds.end();
        let mut target = writing.finish()?;
        let of_target = target.losses().into_iter().map(|(name, count)| (name.to_owned(), count));
        let losses: Vec<_> = notes.losses().chain(of_target).collect();
        let mut report = Report { events: notes.events, losses, notes, ..Report::default() };
        if report.losses.is_empty() || self.lossy {
            report.written = target.place(self.force, stdout)?;
            report.is_placed = true;
        }
        Ok(report)
    }

    /// Reads with kernels and details joined. Batches tell details in lines of their own, as they
    /// came, unless some are left out.
    fn read_joined(&self, chain: &mut Chain<'_>, bar: &ProgressBar) -> Result<(), ConvertError> {
        if self.to == Format::GpuFlight && self.details == Details::All {
            return self.read(chain, bar);
        }
        let mut join = KernelDetailsJoin::new(chain.first);
        self.read(&mut Chain { first: &mut join, notes: chain.notes, failed: chain.failed }, bar)?;
        join.end();
        Ok(())
    }

    fn read(&self, chain: &mut Chain<'_>, bar: &ProgressBar) -> Result<(), ConvertError> {
        Ok(log::read(&self.files, self.from, bar, chain).map(drop)?)
    }
}

/// The way from a reader to the joins; what is said about the log goes beside it.
struct Chain<'c> {
    first: &'c mut dyn Sink,
    notes: &'c mut Notes,
    failed: &'c Cell<bool>,
}

impl Sink for Chain<'_> {
    fn event(&mut self, line: u64, event: &Event<'_>) {
        self.notes.event(event);
        self.first.event(line, event);
    }

    fn finding(&mut self, finding: Finding) {
        self.notes.finding(&finding);
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.notes.unknown.note(line, name);
    }
}

impl Follow for Chain<'_> {
    fn line_read(&mut self, _: LineRead) -> ControlFlow<()> {
        if self.failed.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn file_begins(&mut self, name: &str, lines_before: u64) {
        self.notes.places.file_begins(name, lines_before);
    }

    fn file_ends(&mut self, end: FileEnd) {
        self.notes.file_ends(end);
    }
}

/// The way into the target.
struct Writing<'c> {
    target: Target,
    fault: Option<ConvertError>,
    failed: &'c Cell<bool>,
}

impl<'c> Writing<'c> {
    fn new(target: Target, failed: &'c Cell<bool>) -> Self {
        Self { target, fault: None, failed }
    }

    fn finish(self) -> Result<Target, ConvertError> {
        self.fault.map_or(Ok(self.target), Err)
    }
}

impl Sink for Writing<'_> {
    fn event(&mut self, _: u64, event: &Event<'_>) {
        if self.fault.is_none() {
            self.fault = self.target.write(event).err();
            self.failed.set(self.fault.is_some());
        }
    }

    // Both stay with the chain.
    fn finding(&mut self, _: Finding) {}
    fn unknown(&mut self, _: u64, _: &str) {}
}
