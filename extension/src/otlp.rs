//! Export over OTLP: the way of an encoded request to its destination.
//!
//! [`settings`] resolves `[export]` and the environment into one answer, [`sender::open`] turns
//! that into a [`sender::Sender`], and each send ends in a [`sender::Outcome`] that says what may
//! happen to the request next: forget it, keep it, or set it aside.

pub mod credentials;
mod diagnosis;
pub mod endpoint;
mod file;
mod grpc;
mod http;
mod json;
mod network;
mod rpc_status;
pub mod sender;
pub mod settings;
pub mod tls;

/// How requests name their sender (`User-Agent`).
const PRODUCT: &str = concat!("warpgauge/", env!("CARGO_PKG_VERSION"));
