//! Encoded requests on their way to a receiver: over real sockets and files, with every fault that
//! a receiver can have.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod certificates;
mod file;
mod grpc;
mod grpc_receiver;
mod http;
mod http_receiver;
mod requests;
mod settings;
mod tls;
