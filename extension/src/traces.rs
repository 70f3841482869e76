//! Traces in files: unpacked, read, filtered, merged, split, and written in another form.
//!
//! ```text
//! file or pipe ── events::input (unpacks) ─┬─ read ──┬─ survey, plan     only where it takes them
//!                                          └─ log    └─ merge ── filter ── split ── target: nothing,
//!                                                                                   or whole
//! ```
//!
//! The formats themselves are those of `warpgauge_formats`; here is what touches the disk. Nothing is
//! held in memory beyond the stated limits, whatever the size of a trace.

mod arrows;
pub mod convert;
mod fasten;
pub mod filter;
mod log;
mod merge;
mod plan;
mod ranks;
pub mod read;
mod source;
pub mod split;
pub mod statistics;
mod survey;
mod target;

pub use self::merge::MergeFault;
pub use self::plan::MOST_PARTS;
