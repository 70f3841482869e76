//! Typed configuration.

pub mod export;
pub mod process_group;
