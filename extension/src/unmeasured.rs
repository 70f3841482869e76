//! Why a process is not measured: `warpgauge check --pid N`.
//!
//! ```text
//! /proc/<pid>, runtime configuration, health file ── gather ──> Evidence ── findings ──> Finding...
//! ```
//!
//! [`gather`] reads and judges nothing; [`findings`] judges and reads nothing. The findings follow
//! the chain that has to hold for a measurement to come about, link by link ([`finding::Link`]).

pub mod evidence;
pub mod finding;
pub mod findings;
pub mod gather;
pub mod startup;

pub use evidence::Evidence;
pub use finding::{Finding, Link, Weight};
