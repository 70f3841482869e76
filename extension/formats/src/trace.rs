//! The model that all traces have in common.
//!
//! ```text
//! kineto::read ──────────────────┐
//! event::Event ──> timeline ─────┴─> Record ──> kineto, chrome or perfetto::Writer
//! ```
//!
//! A trace is a stream of [`Record`]s: slices and instants ([`TraceEvent`]), the ends of arrows
//! between them ([`FlowPoint`]), changes of memory ([`MemoryEvent`]), values over time
//! ([`CounterEvent`]), names of processes and threads ([`Label`]), and what is said of the trace as
//! a whole. Times are whole nanoseconds from the trace's [`Record::BaseTime`], which may stand
//! anywhere in the trace or be missing; then they count from the zero of the producer's clock.
//!
//! Texts borrow from what was read and live as long as the call that hands the record on;
//! `into_owned` keeps one for longer. What a trace does not say is `None`; what it says beyond the
//! fields here stands in `metadata`, with its type.

mod counter;
mod event_type;
mod flow;
pub(crate) mod json;
mod label;
pub(crate) mod lanes;
mod memory;
mod owned;
mod value;

pub use counter::CounterEvent;
pub use event_type::{EventType, UnknownEventType};
pub use flow::{Flow, FlowPoint, FlowType};
pub use label::{Label, Labelled};
pub use memory::{MemoryCategory, MemoryEvent, MemoryOperation};
pub use value::{Id, Metadata, Value};

use crate::event::{Dim3, Text};
use crate::finding::Finding;
use crate::json::stream::Position;
use crate::time::{Span, Timestamp};

/// One thing that a trace says.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "handed on by reference and seldom kept")]
pub enum Record<'a> {
    /// Something ran for a while, or happened.
    Event(TraceEvent<'a>),
    /// One end of an arrow between two events.
    Flow(FlowPoint<'a>),
    /// Memory was allocated or freed.
    Memory(MemoryEvent<'a>),
    /// Values at one moment.
    Counter(CounterEvent<'a>),
    /// How a process or a thread is called and where it is drawn.
    Label(Label<'a>),
    /// Nanoseconds between the Unix epoch and the zero of the trace's times.
    BaseTime(i64),
    /// What is said of the trace as a whole: a key and its value as JSON text.
    Document {
        /// The key.
        key: Text<'a>,
        /// The value, as JSON.
        json: Text<'a>,
    },
    /// A record of a kind that the model does not know, as the JSON object that it is.
    Other(Text<'a>),
}

/// Where an event is drawn: a process and a row in it, in whatever way the trace names them. In
/// Kineto the process of a GPU's event is the device, and the row its stream; of a host's event they
/// are the process id and the thread id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Track<'a> {
    /// The process, or the device.
    pub process: Id<'a>,
    /// The thread, the stream, or what else the row stands for.
    pub row: Id<'a>,
}

/// Something ran for a while, or happened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceEvent<'a> {
    /// What it was.
    pub event_type: EventType,
    /// The producer's own category, as it was written.
    pub category: Option<Text<'a>>,
    /// Its name: a kernel's, an operator's, an API function's.
    pub name: Text<'a>,
    /// When it began.
    pub timestamp: Timestamp,
    /// How long it ran; none of an instant, of [`EventType::RangeStart`] and of
    /// [`EventType::RangeEnd`].
    pub duration: Option<Span>,
    /// Where it is drawn.
    pub track: Track<'a>,
    /// Ordinal of the device.
    pub device: Option<i64>,
    /// Number of the stream.
    pub stream: Option<i64>,
    /// The thread that it ran on or that launched it.
    pub thread: Option<i64>,
    /// What it ran on: a stream or a thread by its number.
    pub resource: Option<i64>,
    /// Joins a piece of work with the call that asked for it.
    pub correlation: Option<i64>,
    /// The id of the activity that it belongs to: the `External id` of an operator.
    pub linked: Option<i64>,
    /// The end of an arrow that is fastened to this event.
    pub flow: Option<Flow>,
    /// Names of the calling functions, in the producer's order.
    pub call_stack: Vec<Text<'a>>,
    /// How a kernel was launched.
    pub kernel: KernelParameters,
    /// What a copy moved.
    pub transfer: TransferParameters,
    /// All else, in the producer's order.
    pub metadata: Metadata<'a>,
    /// Members beside the usual ones of the record itself (`"s"` of an instant).
    pub extra: Metadata<'a>,
}

/// How a kernel was launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelParameters {
    /// Blocks of the grid.
    pub grid: Option<Dim3>,
    /// Threads of a block.
    pub block: Option<Dim3>,
    /// Shared memory, bytes a block.
    pub shared_bytes: Option<i64>,
    /// Registers a thread.
    pub registers: Option<i64>,
}

/// What a copy or a fill moved.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TransferParameters {
    /// Bytes.
    pub bytes: Option<i64>,
    /// Bytes a nanosecond, which is as many GB/s.
    pub bandwidth: Option<f64>,
}

impl TraceEvent<'_> {
    /// When it ended; the beginning of what has no duration.
    #[must_use]
    pub fn end(&self) -> Timestamp {
        self.timestamp.after(self.duration.unwrap_or_default())
    }
}

/// Where a reader of traces hands its results.
pub trait Sink {
    /// One record, which begins in the line with that number.
    fn record(&mut self, line: u64, record: &Record<'_>);
    /// Where the record begins that the findings behind this are about. Who shows lines only need not
    /// hear it.
    fn at(&mut self, _position: Position) {}
    /// One thing that is wrong.
    fn finding(&mut self, finding: Finding);
    /// A kind or category that the reader does not know. Nothing is wrong and the record is handed
    /// on as it stands.
    fn unknown(&mut self, line: u64, name: &str);
}
