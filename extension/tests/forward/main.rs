//! Event logs on their way to a backend that is slow, choosy, away, or not the right one; by passes
//! of the real binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod backend;
#[allow(dead_code, reason = "not every certificate is needed here")]
#[path = "../otlp_transport/certificates.rs"]
mod certificates;
mod delivery;
mod faults;
mod killed;
mod limits;
mod logs;
#[path = "../support/mod.rs"]
mod support;
mod transport;
