//! Stand-in for `libcuda.so.1`: a driver whose device is a script.
//!
//! Programs find the same symbols, results and side effects as with NVIDIA's driver, as far as the
//! instrument and the host programs need them: the injection inside `cuInit`, contexts, modules,
//! launches, graphs, occupancy. Nothing is executed but counted as the script says. Handles are numbers that are checked, so a stale one
//! gives an error and not a crash; a freed one is used again at once, as an allocator would.
//!
//! `STANDIN_CUDA_SCRIPT` names a script (see [`script`]); without it the built-in one holds.
//! Layouts and numbers are those of cuda.h (CUDA 13.0).
#![allow(non_snake_case, reason = "the exported names are the driver's")]
#![allow(unsafe_code, reason = "a C interface: pointers come from the caller")]

#[path = "../../interface.rs"]
mod interface;

mod capture;
mod context;
mod device;
mod execute;
mod graph;
mod hook;
mod init;
mod launch;
mod memory;
mod module;
mod occupancy;
mod proc_address;
mod registry;
mod result;
mod script;
