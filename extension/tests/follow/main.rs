//! Logs are followed through every way of rotating them: each line comes once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod hostile;
mod log;
#[path = "../support/rotated_log.rs"]
mod rotated_log;
mod rotation;
