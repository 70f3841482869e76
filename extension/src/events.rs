//! Event logs in files: found, unpacked, read, converted and summed up.
//!
//! ```text
//! file or pipe ── input (unpacks) ── reader ── joins ── output: nothing, or whole
//!                                        └──── statistics
//! ```
//!
//! The formats themselves are those of `warpgauge_formats`; here is what touches the disk. Nothing
//! is held in memory beyond the stated limits, whatever the size of a log.

pub mod bounds;
pub mod clock;
pub mod convert;
pub mod format;
pub mod input;
pub mod log;
pub mod order;
pub mod output;
pub mod reader;
pub mod statistics;
pub mod tables;
pub mod unknown;
