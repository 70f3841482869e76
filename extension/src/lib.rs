//! warpgauge's extension: one pass a minute from process groups to OTLP.
#![forbid(unsafe_code)]

pub mod config;
pub mod procfs;
