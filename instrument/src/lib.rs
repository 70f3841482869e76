//! The library that the CUDA driver injects into a process: `libwarpgauge_instrument.so`.
//!
//! `CUDA_INJECTION64_PATH` names it; the driver loads it inside `cuInit` and calls
//! [`InitializeInjection`]. It reads its start-up settings ([`settings`]), then polls the runtime
//! configuration ([`control`]). While the process is listed there, it sees every launch through
//! CUPTI ([`cupti`]), counts it per launch shape ([`ledger`]), measures one launch now and then
//! ([`window`], [`sampler`]) to stand for the others ([`estimator`]), and leaves measurement files
//! behind ([`publisher`]).
//!
//! ```text
//! cuInit ──> InitializeInjection ──> worker thread ── polls ──> control ──> subscribe / unsubscribe
//!                                         │
//! cuLaunchKernel ──> CUPTI callback ──> ledger ── drained by ──> tally ──> publisher ──> file
//!                         │                            │           ^
//!                         └──> window <── sampler <── estimator ───┘
//! ```
//!
//! It is a guest: no fault of its own may be seen by the host program ([`mod@guard`]).

pub mod api;
pub mod collective;
pub mod contexts;
pub mod control;
pub mod cupti;
pub mod descriptors;
pub mod driver;
pub mod dynamic_library;
pub mod estimator;
pub mod events;
pub mod exit;
pub mod graphs;
pub mod guard;
pub mod health;
pub mod kernel_names;
pub mod kernels;
pub mod launch;
pub mod ledger;
pub mod lifecycle;
pub mod log;
pub mod meter;
pub mod mps;
pub mod names;
pub mod nvtx;
pub mod observer;
pub mod probes;
pub mod publisher;
pub mod resident;
pub mod sampler;
pub mod sampling;
pub mod scopes;
pub mod seen;
pub mod session;
pub mod settings;
pub mod signals;
pub mod tally;
pub mod window;
pub mod worker;

use std::ffi::c_int;

use crate::guard::{Entry, guard};

/// Called by the CUDA driver inside `cuInit`, once.
///
/// Always returns 1, which stands for success: the host program goes on whatever becomes of us.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "the driver looks the symbol up by this name")]
pub extern "C" fn InitializeInjection() -> c_int {
    guard(Entry::Injection, (), || {
        guard::silence_panics();
        signals::without(worker::start);
    });
    1
}
