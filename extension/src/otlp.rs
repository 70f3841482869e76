//! OTLP: the pure mapping, and the ways out.

pub mod chunks;
pub mod cumulative;
pub mod mapping;
pub mod resource;
