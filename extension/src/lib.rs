//! warpgauge's extension: one pass a minute from process groups to OTLP.
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod atomic_file;
pub mod carried;
pub mod cli {
    //! What people see.

    pub mod groups;
}
pub mod config;
pub mod control;
pub mod groups;
pub mod health;
pub mod listing;
pub mod lock;
pub mod measurements;
pub mod metrics;
pub mod otlp;
pub mod procfs;
pub mod skips;
pub mod spool;
