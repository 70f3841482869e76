//! Kineto's JSON, as PyTorch's profiler writes it: read and written.
//!
//! ```text
//! {"schemaVersion":1,"deviceProperties":[...],            said of the trace: Record::Document
//!  "baseTimeNanoseconds":1727743122000000000,             Record::BaseTime, before or after the events
//!  "traceEvents":[
//!   {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,  pid and tid: Track; numbers or texts
//!    "ts":2413669097444.592,"dur":1.760,                  microseconds, exact to the nanosecond
//!    "args":{"correlation":35,"grid":[1,1,1],...}},       fields of TraceEvent, or its metadata
//!   {"ph":"s","id":35,"cat":"ac2g","name":"ac2g",...},    FlowPoint; "f" with "bp":"e" at the end
//!   {"ph":"i","s":"t","name":"[memory]","args":{...}},    MemoryEvent; other instants are Marker
//!   {"ph":"C","name":"power","args":{"W":71.5}},          CounterEvent
//!   {"ph":"M","name":"thread_name","args":{"name":"t"}}]} Label
//! ```
//!
//! Read too: the schema of 2021 (categories `Operator`, `Kernel`, `Runtime`; flows of category
//! `async`; whole microseconds), and Chrome's form in which the document is the array of events.
//! Whatever the model has no place for is handed on as [`Record::Other`](crate::trace::Record::Other)
//! and written as it was read.
//!
//! Some versions write texts of metadata with `/"` where `\"` should stand. That is no JSON, and the
//! error says where; [`Repaired`] mends it.

pub(crate) mod args;
pub(crate) mod category;
pub(crate) mod document;
pub(crate) mod drawn;
mod interpret;
mod members;
mod read;
mod repair;
pub(crate) mod unsaid;
pub(crate) mod write;

pub use read::read;
pub use repair::Repaired;
pub use write::Writer;
