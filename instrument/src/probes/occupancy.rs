//! Theoretical occupancy (id 1): how full of warps a multiprocessor can be with this launch.
//!
//! ```text
//! 100 x blocks x ceil(threads per block / 32) / (maximum threads per multiprocessor / 32)
//! ```
//!
//! `blocks` is what the driver's occupancy calculator says. A launch in clusters holds whole
//! clusters at once, so there the blocks of the whole device are compared with the warps of the
//! whole device. A kernel whose cluster size was fixed when it was compiled and that is launched
//! without saying so counts by its blocks.
#![allow(unsafe_code, reason = "a launch's configuration is handed on to the driver")]

use cudarc::driver::sys::CUdevice_attribute;
use warpgauge_wire::Function;

use crate::driver::{Driver, DriverError};
use crate::launch::Launch;
use crate::probes::{Calculated, Probe};

const WARP_THREADS: u32 = 32;

/// Asks the driver's calculator; needs no counters and no privileges.
#[derive(Debug, Clone, Copy)]
pub struct Occupancy;

impl Probe for Occupancy {
    fn function(&self) -> Function {
        Function::Occupancy
    }
}

impl Calculated for Occupancy {
    fn at_first_launch(&self, driver: &Driver, launch: &Launch) -> Result<f64, DriverError> {
        let device = driver.current_device()?;
        let threads = launch.threads();
        let max_threads = driver.attribute(
            device,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        )?;
        if launch.cluster > 1 && !launch.config.is_null() {
            // SAFETY: the launch has not returned to its caller, who holds the configuration.
            let clusters = unsafe { driver.max_active_clusters(launch.function, launch.config) }?;
            if let Some(clusters) = clusters {
                let multiprocessors = driver.attribute(
                    device,
                    CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                )?;
                let blocks = clusters.saturating_mul(launch.cluster);
                return Ok(percent(blocks, threads, max_threads, multiprocessors));
            }
        }
        let blocks = driver.max_active_blocks(launch.function, threads, launch.shared)?;
        Ok(percent(blocks, threads, max_threads, 1))
    }
}

/// Warps that are resident of those that could be, in percent, 0 to 100: `blocks` of `threads`
/// threads on `multiprocessors` that hold `max_threads` each.
#[must_use]
pub fn percent(blocks: u32, threads: u32, max_threads: u32, multiprocessors: u32) -> f64 {
    let resident = f64::from(blocks) * f64::from(threads.div_ceil(WARP_THREADS));
    let possible = f64::from(max_threads / WARP_THREADS) * f64::from(multiprocessors);
    if possible == 0.0 { 0.0 } else { (100.0 * resident / possible).clamp(0.0, 100.0) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compute capability 9.0: 2,048 threads, hence 64 warps per multiprocessor.
    #[test]
    fn full_blocks_fill_a_multiprocessor_and_a_broken_warp_counts_whole() {
        assert_eq!(percent(8, 256, 2048, 1), 100.0);
        assert_eq!(percent(4, 256, 2048, 1), 50.0);
        assert_eq!(percent(32, 32, 2048, 1), 50.0);
        assert_eq!(percent(32, 33, 2048, 1), 100.0);
        assert_eq!(percent(0, 1024, 2048, 1), 0.0);
    }

    #[test]
    fn clusters_are_compared_with_the_whole_device() {
        // 211 clusters of 5 blocks of 8 warps on 132 multiprocessors of 64 warps.
        let expected = 100.0 * f64::from(211 * 5 * 8) / f64::from(132 * 64);
        assert_eq!(percent(211 * 5, 256, 2048, 132), expected);
    }

    proptest! {
        #[test]
        fn it_is_a_percentage_whatever_a_driver_answers(
            blocks: u32, threads: u32, max_threads: u32, multiprocessors: u32
        ) {
            let percent = percent(blocks, threads, max_threads, multiprocessors);
            prop_assert!((0.0..=100.0).contains(&percent));
        }
    }
}
