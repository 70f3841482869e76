//! Perfetto's own form: a sequence of protobuf packets, written as records arrive.
//!
//! ```text
//! packet  interned_data    the texts that later packets name by number
//! packet  track_descriptor a process, a thread, a stream, a lane or a counter
//! packet  track_event      begin (name, categories, annotations, flows), end, instant or value
//! ```
//!
//! The form knows no duration: a slice is a begin and an end, and on one track slices must lie one
//! within the other. So slices wait in a window, are ordered by their time, and those that overlap
//! another partly are put on a lane of their own below the thread or stream. What arrives after the
//! window has moved on goes to such a lane too: nothing is dropped, and nothing takes another's end.
//!
//! Fields are those of `protos/perfetto/trace/trace_packet.proto` and the files beside it. Times are
//! nanoseconds from the trace's base time, because Perfetto's queries lose the low digits of the
//! epoch's; the base time itself stands in a snapshot of the clocks.

mod annotations;
mod dictionary;
mod packets;
mod tracks;
mod window;
mod wire;
mod write;

pub use window::DEFAULT_WINDOW;
pub use write::Writer;
