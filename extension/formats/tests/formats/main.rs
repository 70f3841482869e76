//! The formats as their users meet them: logs of real producers, broken logs, and every event there
//! and back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[cfg(feature = "parquet")]
#[path = "../../examples/session_report/forms.rs"]
#[allow(dead_code, reason = "the report uses more of it")]
mod forms;
#[cfg(feature = "parquet")]
#[path = "../../examples/session_report/truth.rs"]
mod truth;

mod bounds;
mod collect;
mod gpu_flight_logs;
mod gpumon_logs;
mod gpumon_schema;
mod model;
mod round_trips;
#[cfg(feature = "parquet")]
mod session_hour;
mod stand_alone;
