//! One launch, as the ledger tells it from others.

use cudarc::driver::sys::CUlaunchConfig;

/// Words of a [`Launch::key`].
pub const KEY_WORDS: usize = 6;

/// A kernel launch that the driver has accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// The context that it was launched in; the same kernel may have another device in another one.
    pub context: u64,
    /// The kernel's handle (`CUfunction`, or a `CUkernel` in its place).
    pub function: u64,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z; 1,024 together at most.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes per block.
    pub shared: u32,
    /// Blocks of a cluster, 1 where the launch asked for none.
    pub cluster: u32,
    /// The configuration of an Ex launch, alive until the launch returns to its caller; null for
    /// others.
    pub config: *const CUlaunchConfig,
}

impl Launch {
    /// Threads of a block.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// The launch shape as numbers: equal for launches that are alike, and only for those. A handle
    /// may be given to another kernel once its module is unloaded, so the key holds the
    /// `generation` in which it was seen.
    ///
    /// ```text
    /// 0  context          2  grid x | grid y << 32            4  block x | y << 16 | z << 32 | cluster << 48
    /// 1  function         3  grid z | shared memory << 32     5  generation
    /// ```
    #[must_use]
    pub fn key(&self, generation: u64) -> [u64; KEY_WORDS] {
        let [grid_x, grid_y, grid_z] = self.grid.map(u64::from);
        // The driver has refused what does not fit 16 bits.
        let [block_x, block_y, block_z] = self.block.map(|length| u64::from(length & 0xffff));
        let cluster = u64::from(self.cluster & 0xffff);
        [
            self.context,
            self.function,
            grid_x | grid_y << 32,
            grid_z | u64::from(self.shared) << 32,
            block_x | block_y << 16 | block_z << 32 | cluster << 48,
            generation,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAUNCH: Launch = Launch {
        context: 1,
        function: 2,
        grid: [3, 4, 5],
        block: [6, 7, 8],
        shared: 9,
        cluster: 1,
        config: std::ptr::null(),
    };

    #[test]
    fn every_part_of_a_shape_tells_it_from_others() {
        let others = [
            Launch { context: 10, ..LAUNCH },
            Launch { function: 10, ..LAUNCH },
            Launch { grid: [10, 4, 5], ..LAUNCH },
            Launch { grid: [3, 10, 5], ..LAUNCH },
            Launch { grid: [3, 4, 10], ..LAUNCH },
            Launch { block: [10, 7, 8], ..LAUNCH },
            Launch { block: [6, 10, 8], ..LAUNCH },
            Launch { block: [6, 7, 10], ..LAUNCH },
            Launch { shared: 10, ..LAUNCH },
            Launch { cluster: 10, ..LAUNCH },
        ];
        assert_eq!(LAUNCH.key(0), LAUNCH.key(0));
        assert_ne!(LAUNCH.key(0), LAUNCH.key(1));
        for other in others {
            assert_ne!(LAUNCH.key(0), other.key(0), "{other:?}");
        }
        assert_eq!(LAUNCH.threads(), 336);
    }
}
