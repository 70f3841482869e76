//! TelemetryEvent v2 as its users meet it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod canonical;
mod drawn;
mod files;
mod model;
mod records;
mod reference_verdicts;
mod rules;
mod schema;
#[cfg(feature = "parquet")]
mod tables;
