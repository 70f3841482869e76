//! Executed instructions of a launch (id 0), as `smsp__sass_inst_executed` counts them.

use std::ffi::CStr;

use warpgauge_wire::Function;

use crate::probes::{Counted, Counting, Probe};

/// Counts instructions, per warp unless the settings say per thread.
#[derive(Debug, Clone, Copy)]
pub struct Instructions;

impl Probe for Instructions {
    fn function(&self) -> Function {
        Function::Instructions
    }
}

impl Counted for Instructions {
    fn metrics(&self, counting: Counting) -> &'static [&'static CStr] {
        match counting {
            Counting::Warps => &[c"smsp__sass_inst_executed"],
            Counting::Threads => &[c"smsp__sass_thread_inst_executed"],
            Counting::PredicatedThreads => &[c"smsp__sass_thread_inst_executed_pred_on"],
        }
    }

    fn value(&self, counters: &[u64]) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "one launch executes far fewer than 2^53")]
        counters.first().map(|&count| count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_the_count() {
        assert_eq!(Instructions.value(&[12]), Some(12.0));
        assert_eq!(Instructions.value(&[]), None);
    }
}
