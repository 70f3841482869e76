//! How many blocks of a kernel fit on one multiprocessor.
//!
//! The rules are those of the occupancy calculator in Nsight Compute: registers are handed out to
//! warps in units of 256, warps in groups of four, shared memory in units of 128 bytes (256 before
//! compute capability 8.0), and from 8.0 on one kilobyte of shared memory for each block belongs to
//! the system.

use std::ffi::c_void;

use crate::launch::LaunchConfig;
use crate::registry;
use crate::result::{CUresult, INVALID_VALUE, answer_or};
use crate::script::{Device, Kernel};

const WARP: u32 = 32;
const REGISTER_UNIT: u32 = 256;
const WARP_UNIT: u32 = 4;

/// The unit in which shared memory is handed out, and the bytes of each block that belong to the
/// system.
fn shared_allocation(device: &Device) -> (u32, u32) {
    if device.compute_capability < (8, 0) { (256, 0) } else { (128, 1024) }
}

/// Bytes of shared memory for each block that belong to the system.
pub(crate) fn reserved_shared(device: &Device) -> u32 {
    shared_allocation(device).1
}

/// Blocks that are resident at once, 0 where not even one fits.
pub(crate) fn blocks_per_multiprocessor(
    device: &Device,
    kernel: &Kernel,
    threads: u32,
    dynamic_shared: u32,
) -> u32 {
    let warps = threads.div_ceil(WARP).max(1);
    let by_warps = device.warps / warps;
    let registers_per_warp = (kernel.registers * WARP).next_multiple_of(REGISTER_UNIT).max(1);
    let by_registers = device.registers / registers_per_warp / WARP_UNIT * WARP_UNIT / warps;
    let (unit, reserved) = shared_allocation(device);
    let shared = kernel.shared.saturating_add(dynamic_shared).saturating_add(reserved);
    let shared = shared.checked_next_multiple_of(unit).unwrap_or(shared);
    let by_shared = device.shared.checked_div(shared).unwrap_or(u32::MAX);
    device.blocks.min(by_warps).min(by_registers).min(by_shared)
}

fn resident_blocks(
    function: *mut c_void,
    threads: u32,
    shared: u32,
) -> Result<(u32, &'static Device), CUresult> {
    let function = registry::function(function as usize)?;
    if threads == 0 || threads > 1024 {
        return Err(INVALID_VALUE);
    }
    let device = function.device;
    Ok((blocks_per_multiprocessor(device, function.kernel, threads, shared), device))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut i32,
    function: *mut c_void,
    threads: i32,
    dynamic_shared: usize,
) -> CUresult {
    let found = u32::try_from(threads)
        .ok()
        .zip(u32::try_from(dynamic_shared).ok())
        .ok_or(INVALID_VALUE)
        .and_then(|(threads, shared)| resident_blocks(function, threads, shared))
        .map(|(blocks, _)| blocks.cast_signed());
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(blocks, found) }
}

/// Clusters live inside a group of multiprocessors on real devices; here the whole device is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxActiveClusters(
    clusters: *mut i32,
    function: *mut c_void,
    config: *const LaunchConfig,
) -> CUresult {
    if config.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, and the caller passes a valid configuration, as the C interface asks.
    let config = unsafe { &*config };
    let [x, y, z] = config.block;
    // SAFETY: the attributes belong to the caller's valid configuration.
    let cluster = unsafe { config.blocks_per_cluster() }.max(1);
    let found = resident_blocks(function, x * y * z, config.shared)
        .map(|(blocks, device)| (blocks * device.multiprocessors / cluster).cast_signed());
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(clusters, found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    fn blocks(registers: u32, static_shared: u32, threads: u32, dynamic_shared: u32) -> u32 {
        let device = &Script::of_this_process().devices[0];
        let kernel = Kernel { registers, shared: static_shared, ..Kernel::named(c"k".to_owned()) };
        blocks_per_multiprocessor(device, &kernel, threads, dynamic_shared)
    }

    /// Numbers of the spreadsheet calculator for compute capability 9.0.
    #[test]
    fn the_limits_are_those_of_the_occupancy_calculator() {
        assert_eq!(blocks(32, 0, 256, 0), 8, "warps limit: 64 of 64 warps");
        assert_eq!(blocks(64, 0, 256, 0), 4, "registers limit: 32 warps");
        assert_eq!(blocks(40, 0, 1024, 0), 1, "48 warps by registers, one block of 32");
        assert_eq!(blocks(16, 0, 32, 0), 32, "blocks limit: 32 of 64 warps");
        assert_eq!(blocks(32, 48 * 1024, 128, 0), 4, "shared memory limit: 49 KiB each");
        assert_eq!(blocks(32, 0, 128, 227 * 1024), 1, "the most that one block may ask for");
        assert_eq!(blocks(32, 0, 128, 228 * 1024), 0, "does not fit");
    }
}
