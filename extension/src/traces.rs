//! Traces in files: unpacked, read, and written in another form.
//!
//! ```text
//! file or pipe ── events::input (unpacks) ── read ── target: nothing, or whole
//! ```
//!
//! The formats themselves are those of `warpgauge_formats`; here is what touches the disk.

pub mod convert;
pub mod read;
pub mod statistics;
mod target;
