//! Branch divergence (id 3): branches whose threads went different ways, in percent of all that
//! were executed.

use std::ffi::CStr;

use warpgauge_wire::Function;

use crate::probes::{Counted, Counting, Probe};

/// Counts branches and those that diverged.
#[derive(Debug, Clone, Copy)]
pub struct Divergence;

impl Probe for Divergence {
    fn function(&self) -> Function {
        Function::Divergence
    }
}

impl Counted for Divergence {
    fn metrics(&self, _counting: Counting) -> &'static [&'static CStr] {
        &[c"smsp__sass_branch_targets", c"smsp__sass_branch_targets_threads_divergent"]
    }

    fn value(&self, counters: &[u64]) -> Option<f64> {
        match *counters {
            [branches, divergent] if branches > 0 =>
            {
                #[expect(clippy::cast_precision_loss, reason = "a quotient of two counts")]
                Some((100.0 * divergent as f64 / branches as f64).min(100.0))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_share_of_branches_that_diverged() {
        assert_eq!(Divergence.value(&[8, 2]), Some(25.0));
        assert_eq!(Divergence.value(&[8, 0]), Some(0.0), "a measured zero is a measurement");
        assert_eq!(Divergence.value(&[0, 0]), None);
    }
}
