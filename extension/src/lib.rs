//! warpgauge's extension: one pass a minute from process groups to OTLP.
#![forbid(unsafe_code)]

pub mod cli {
    //! What people see.

    pub mod groups;
}
pub mod config;
pub mod groups;
pub mod procfs;
