//! Traces as their users meet them: of real profilers, broken ones, and every record there and back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod chrome_round_trip;
mod collect;
mod every_form;
mod kineto_faults;
mod kineto_fixtures;
mod kineto_kinds;
mod kineto_round_trip;
mod model;
mod packets;
mod perfetto_traces;
mod timelines;
