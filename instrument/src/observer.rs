//! Where the callbacks leave what they saw, and the worker picks it up.
//!
//! Both sides meet here alone. The callbacks' side ([`launched`], [`functions_changed`]) runs on the
//! host's threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

use warpgauge_wire::{Function, FunctionSet};

use crate::driver::{Driver, DriverError};
use crate::launch::Launch;
use crate::ledger::{Drained, Ledger};
use crate::probes::Probe;
use crate::probes::occupancy::Occupancy;

static LEDGER: Ledger = Ledger::new();
static DRIVER: OnceLock<Driver> = OnceLock::new();
/// The functions asked for, as [`FunctionSet::bits`].
static WANTED: AtomicU8 = AtomicU8::new(0);
/// The `CUresult` with which the occupancy of a shape was last refused; 0 for none.
static REFUSAL: AtomicI32 = AtomicI32::new(0);

/// A launch that the driver has accepted and that has not returned to its caller.
pub fn launched(launch: &Launch) {
    LEDGER.record(launch, occupancy);
}

fn occupancy(launch: &Launch) -> Option<f64> {
    let wanted = FunctionSet::from_bits(WANTED.load(Ordering::Relaxed));
    if !wanted.contains(Function::Occupancy) {
        return None;
    }
    match Occupancy.at_first_launch(DRIVER.get()?, launch) {
        Ok(percent) => Some(percent),
        Err(DriverError::Call { code, .. }) => {
            REFUSAL.store(code, Ordering::Relaxed);
            None
        }
        Err(_) => None,
    }
}

/// A module or a context is about to go, and with it the meaning of kernel handles.
pub fn functions_changed() {
    LEDGER.forget_functions();
}

/// Says what to measure from now on, before the first callback comes. What was learnt about kernel
/// handles is forgotten: they may have changed hands while nobody looked.
pub fn measure(functions: FunctionSet, driver: Driver) {
    DRIVER.get_or_init(|| driver);
    WANTED.store(functions.bits(), Ordering::Relaxed);
    LEDGER.forget_functions();
}

/// Takes out what was counted; for one thread at a time. See [`Ledger::drain`].
pub fn drain(each: impl FnMut(Option<f64>, u64)) -> Drained {
    LEDGER.drain(each)
}

/// The `CUresult` with which the driver last refused to tell an occupancy; once.
pub fn take_refusal() -> Option<i32> {
    match REFUSAL.swap(0, Ordering::Relaxed) {
        0 => None,
        code => Some(code),
    }
}
