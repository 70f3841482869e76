//! Stand-in for `libnvidia-ml.so.1`: devices of which a script tells, and their faults.
//!
//! Programs find the symbols, results and structures of NVIDIA's library, as far as `warpgauge` asks
//! for them. Handles are numbers that are checked. `STANDIN_NVML_SCRIPT` names a script (see
//! [`script`]); without it there is one device that nothing is wrong with.
//!
//! The driver is as old as its symbols: to play one that lacks a function, change the function's name
//! in a copy of this library to another of the same length.
//!
//! Layouts and numbers are those of nvml.h (CUDA 13.0).
#![allow(non_snake_case, reason = "the exported names are the library's")]
#![allow(unsafe_code, reason = "a C interface: pointers come from the caller")]

mod device;
mod mig;
mod processes;
mod result;
mod script;
mod system;
