//! Runs a kernel, which means to count what the script says it does.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::hook::executed;
use crate::interface::Execution;
use crate::registry;
use crate::script::Kernel;

const WARP: u32 = 32;

/// How often each kernel has run.
static RUNS: Mutex<Option<HashMap<CString, u64>>> = Mutex::new(None);
/// Instructions of all kernels that have run.
static INSTRUCTIONS: AtomicU64 = AtomicU64::new(0);

/// The truth that an estimate is compared with: executed instructions since the program began,
/// counted once per warp.
#[unsafe(no_mangle)]
extern "C" fn standin_executed_instructions() -> u64 {
    INSTRUCTIONS.load(Ordering::Acquire)
}

/// Runs a function of a handle that was checked.
pub(crate) fn run(function: usize, grid: [u32; 3], block: [u32; 3], dynamic_shared: u32) {
    let Ok(function) = registry::function(function) else { return };
    let kernel = function.kernel;
    let count = |lengths: [u32; 3]| lengths.iter().map(|&n| u64::from(n)).product::<u64>();
    let warps = count(grid) * count(block).div_ceil(WARP.into());
    let run = {
        let mut runs = RUNS.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = runs.get_or_insert_default().entry(kernel.name.clone()).or_default();
        *runs += 1;
        *runs - 1
    };
    let of = |per_warp: u64| work(kernel, per_warp, warps, run);
    let execution = Execution {
        name: kernel.name.as_ptr(),
        grid,
        block,
        registers: kernel.registers,
        static_shared: kernel.shared,
        dynamic_shared,
        device: registry::current().map_or(0, |context| context.ordinal.cast_unsigned()),
        duration: kernel.duration,
        instructions: of(kernel.instructions),
        global: of(kernel.global),
        lines: of(kernel.lines),
        branches: of(kernel.branches),
        divergent: of(kernel.divergent),
    };
    INSTRUCTIONS.fetch_add(execution.instructions, Ordering::AcqRel);
    executed((&raw const execution).cast());
}

/// What all warps of a kernel's run number `run` do together.
fn work(kernel: &Kernel, per_warp: u64, warps: u64, run: u64) -> u64 {
    let exact = per_warp * warps;
    if kernel.spread == 0.0 && kernel.drift == 0.0 {
        return exact;
    }
    #[expect(clippy::cast_precision_loss, reason = "a script has small numbers")]
    let (exact, run_number) = (exact as f64, run as f64);
    let factor = 1.0 + kernel.spread * even(run) + kernel.drift * run_number;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative and small"
    )]
    let work = (exact * factor).round().max(0.0) as u64;
    work
}

/// A number from -1 to 1 that looks random and is the same for the same run: SplitMix64 (Steele,
/// Lea and Flood, 2014).
fn even(run: u64) -> f64 {
    let mut mixed = run.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    #[expect(clippy::cast_precision_loss, reason = "53 bits are left")]
    let unit = (mixed >> 11) as f64 / (1_u64 << 53) as f64;
    2.0 * unit - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_constant_or_spreads_evenly_or_drifts() {
        let kernel = Kernel::named(c"k".to_owned());
        assert_eq!(work(&kernel, 12, 8, 7), 96);
        let drifting = Kernel { drift: 0.5, ..kernel.clone() };
        assert_eq!([0, 1, 2].map(|run| work(&drifting, 10, 1, run)), [10, 15, 20]);
        let spread = Kernel { spread: 0.5, ..kernel };
        let total: u64 = (0..10_000).map(|run| work(&spread, 1000, 1, run)).sum();
        assert!((9_900_000..10_100_000).contains(&total), "{total}");
        assert!((0..1000).all(|run| (500..=1500).contains(&work(&spread, 1000, 1, run))));
    }
}
