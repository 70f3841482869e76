//! The event formats of the field and the model that they have in common.
//!
//! ```text
//! bytes ── lines ── json ── adapter (gpumon, gpu_flight) ── event::Event ── adapter ── bytes
//! bytes ── json::stream ─── adapter (kineto) ── trace::Record ── adapter (kineto, chrome, perfetto) ── bytes
//! event::Event ── timeline ── trace::Record
//! bytes ── lines or json::stream ── telemetry::TelemetryEvent ── bytes
//! ```
//!
//! Every adapter streams: it is fed lines and hands on events one by one, whose texts borrow from
//! the line or from the session's dictionary. Nothing here opens a file, prints, or keeps more than
//! the stated limits in memory. Whatever cannot be read becomes a [`finding::Finding`] that names
//! the line; whatever a format cannot hold is counted in a [`loss::Losses`].
#![forbid(unsafe_code)]

pub mod chrome;
pub mod event;
pub mod finding;
pub mod gpu_flight;
pub mod gpumon;
pub mod interner;
pub mod join;
pub mod json;
pub mod kineto;
pub mod lines;
pub mod loss;
pub mod perfetto;
mod record;
#[cfg(feature = "parquet")]
pub mod tables;
pub mod telemetry;
pub mod time;
pub mod timeline;
pub mod trace;
