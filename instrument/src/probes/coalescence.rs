//! Coalescence of global memory accesses (id 2).
//!
//! ```text
//! 100 x global memory instructions / 128-byte cache lines touched
//! ```
//!
//! A line that is touched is a tag that the L1 cache looks up. 100 is an access of a warp to one
//! line; a warp whose threads each touch a line of their own has 100 / 32.

use std::ffi::CStr;

use warpgauge_wire::Function;

use crate::probes::{Counted, Counting, Probe};

/// Counts global memory instructions and the tags that they look up.
#[derive(Debug, Clone, Copy)]
pub struct Coalescence;

impl Probe for Coalescence {
    fn function(&self) -> Function {
        Function::Coalescence
    }
}

impl Counted for Coalescence {
    fn metrics(&self, _counting: Counting) -> &'static [&'static CStr] {
        &[c"smsp__sass_inst_executed_op_global", c"smsp__sass_l1tex_tags_mem_global"]
    }

    fn value(&self, counters: &[u64]) -> Option<f64> {
        match *counters {
            // A launch whose instructions were all predicated off touched nothing.
            [instructions, tags] if instructions > 0 && tags > 0 =>
            {
                #[expect(clippy::cast_precision_loss, reason = "a quotient of two counts")]
                Some((100.0 * instructions as f64 / tags as f64).min(100.0))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_instruction_is_a_hundred_percent_and_thirty_two_are_three() {
        assert_eq!(Coalescence.value(&[10, 10]), Some(100.0));
        assert_eq!(Coalescence.value(&[10, 320]), Some(3.125));
        assert_eq!(Coalescence.value(&[11, 10]), Some(100.0), "some were predicated off");
    }

    #[test]
    fn a_kernel_that_touches_no_global_memory_has_no_coalescence() {
        assert_eq!(Coalescence.value(&[0, 0]), None);
        assert_eq!(Coalescence.value(&[3, 0]), None);
    }
}
