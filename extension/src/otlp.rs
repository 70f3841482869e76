//! Export over OTLP: from tallies to encoded requests, and from there to a destination.
//!
//! [`mapping`], [`event_mapping`], [`device_mapping`], [`resource`], [`cumulative`] and [`chunks`] are
//! pure and make the requests.
//! [`settings`] resolves `[export]` and the environment into one answer, [`sender::open`] turns
//! that into a [`sender::Sender`], and each send ends in a [`sender::Outcome`] that says what may
//! happen to the request next: forget it, keep it, or set it aside.

pub mod attribute_list;
pub mod chunks;
pub mod credentials;
pub mod cumulative;
pub mod device_mapping;
pub(crate) mod diagnosis;
pub mod endpoint;
pub mod event_mapping;
mod file;
mod grpc;
pub(crate) mod http;
mod json;
pub mod mapping;
pub(crate) mod network;
pub mod resource;
mod rpc_status;
pub mod sender;
pub mod settings;
pub mod tls;

/// How requests name their sender (`User-Agent`).
pub(crate) const PRODUCT: &str = concat!("warpgauge/", env!("CARGO_PKG_VERSION"));
