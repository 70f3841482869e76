//! What can be measured, and how: one probe for each function.
//!
//! ```text
//! calculated   from a launch's shape, for every launch               occupancy
//! counted      by a window around one launch, standing for others    instructions, coalescence,
//!                                                                    divergence
//! ```

pub mod coalescence;
pub mod divergence;
pub mod instructions;
pub mod occupancy;

use std::ffi::CStr;

use warpgauge_wire::{Function, FunctionSet};

use crate::driver::{Driver, DriverError};
use crate::launch::Launch;
use crate::probes::coalescence::Coalescence;
use crate::probes::divergence::Divergence;
use crate::probes::instructions::Instructions;
use crate::probes::occupancy::Occupancy;

/// Measures one function.
pub trait Probe: Sync {
    /// What it measures.
    fn function(&self) -> Function;
}

/// A probe that knows the value from the shape of a launch.
pub trait Calculated: Probe {
    /// The value that stands for every launch of a shape, asked at the first one, on the thread
    /// that launches, before the launch returns to its caller.
    ///
    /// # Errors
    /// What the driver returned; the shape then goes without a value.
    fn at_first_launch(&self, driver: &Driver, launch: &Launch) -> Result<f64, DriverError>;
}

/// A probe that reads counters of one launch.
pub trait Counted: Probe {
    /// The counters that it needs, by CUPTI's names for SASS metrics.
    fn metrics(&self, counting: Counting) -> &'static [&'static CStr];

    /// The value of a launch, from its counters in the order of [`Self::metrics`]; `None` where the
    /// launch has none, as a kernel without a branch has no divergence.
    fn value(&self, counters: &[u64]) -> Option<f64>;
}

/// What counts as an instruction (id 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counting {
    /// Once for each warp that executes it.
    #[default]
    Warps,
    /// Once for each thread of the warp that is active.
    Threads,
    /// Once for each active thread whose predicate is on.
    PredicatedThreads,
}

impl Counting {
    /// What the settings `count_warp_level` and `exclude_pred_off` ask for. A warp's instruction
    /// is executed whatever its threads' predicates are, so the second counts at thread level alone.
    #[must_use]
    pub const fn from_settings(count_warp_level: bool, exclude_pred_off: bool) -> Self {
        match (count_warp_level, exclude_pred_off) {
            (true, _) => Self::Warps,
            (false, false) => Self::Threads,
            (false, true) => Self::PredicatedThreads,
        }
    }
}

/// How many probes count.
pub const COUNTED_PROBES: usize = 3;

/// The probes that count, in the order in which [`counted_index`] numbers them.
pub static COUNTED: [&dyn Counted; COUNTED_PROBES] = [&Instructions, &Coalescence, &Divergence];

/// The place of a function among [`COUNTED`].
#[must_use]
pub fn counted_index(function: Function) -> Option<usize> {
    COUNTED.iter().position(|probe| probe.function() == function)
}

/// The functions that windows are needed for.
#[must_use]
pub fn counted_functions() -> FunctionSet {
    COUNTED.iter().map(|probe| probe.function()).collect()
}

/// The functions that need no window.
#[must_use]
pub fn calculated_functions() -> FunctionSet {
    [Occupancy.function()].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_one_probe() {
        for function in Function::ALL {
            let counted = counted_functions().contains(function);
            assert_ne!(counted, calculated_functions().contains(function), "{function}");
            assert_eq!(counted_index(function).is_some(), counted);
        }
    }

    #[test]
    fn the_predicate_matters_where_threads_are_counted() {
        assert_eq!(Counting::from_settings(true, false), Counting::Warps);
        assert_eq!(Counting::from_settings(true, true), Counting::Warps);
        assert_eq!(Counting::from_settings(false, false), Counting::Threads);
        assert_eq!(Counting::from_settings(false, true), Counting::PredicatedThreads);
    }
}
