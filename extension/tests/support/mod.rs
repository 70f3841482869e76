//! What the tests of the pass share: a world of one's own, a receiver that plays faults, and what
//! arrived there, taken apart.

#![allow(dead_code, reason = "not every test file needs all of it")]

pub(crate) mod fake_proc;
#[cfg(target_arch = "x86_64")]
pub(crate) mod kill_points;
pub(crate) mod kills;
pub(crate) mod nvml;
pub(crate) mod points;
pub(crate) mod publisher;
pub(crate) mod receiver;
pub(crate) mod rotated_log;
pub(crate) mod world;
