//! Brings together what a log tells in different lines.
//!
//! Both joins are sinks before a sink, keep a bounded number of events, and hand on what finds no
//! partner as it is.

mod details;
mod sample_scopes;

pub use details::KernelDetailsJoin;
pub use sample_scopes::SampleScopes;
