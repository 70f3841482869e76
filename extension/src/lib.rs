//! warpgauge's extension: one pass a minute from process groups to OTLP.
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod atomic_file;
pub mod carried;
pub mod cli;
pub mod config;
pub mod containers;
pub mod control;
pub mod devices;
pub mod event_logs;
pub mod event_metrics;
pub mod events;
pub mod follow;
pub mod forward;
pub mod groups;
pub mod health;
pub mod instrument_health;
pub mod listing;
pub mod lock;
pub mod measurements;
pub mod metrics;
pub mod otlp;
pub mod pass;
pub mod procfs;
pub mod report;
pub mod setup;
pub mod skips;
pub mod spool;
pub mod traces;
pub mod unmeasured;
