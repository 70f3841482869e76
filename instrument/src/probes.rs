//! What can be measured, and how: one probe for each function.

pub mod occupancy;

use warpgauge_wire::{Function, FunctionSet};

use crate::driver::{Driver, DriverError};
use crate::launch::Launch;
use crate::probes::occupancy::Occupancy;

/// Measures one function.
pub trait Probe: Sync {
    /// What it measures.
    fn function(&self) -> Function;

    /// The value that stands for every launch of a shape, asked at the first one, on the thread
    /// that launches, before the launch returns to its caller.
    ///
    /// # Errors
    /// What the driver returned; the shape then goes without a value.
    fn at_first_launch(&self, driver: &Driver, launch: &Launch) -> Result<f64, DriverError>;
}

/// Every probe there is.
pub static PROBES: [&dyn Probe; 1] = [&Occupancy];

/// The functions that can be measured.
#[must_use]
pub fn measurable() -> FunctionSet {
    PROBES.iter().map(|probe| probe.function()).collect()
}
