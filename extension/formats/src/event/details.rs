//! What only some kernels tell: their shape, their occupancy and where they were launched.

use super::owned::keep_some;
use super::{Dim3, Text};

/// More about a kernel. Occupancies are shares from 0 to 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KernelDetails<'a> {
    /// The kernel's correlation id. All nodes of one graph launch share it.
    pub correlation: Option<i64>,
    /// Blocks of the grid.
    pub grid: Option<Dim3>,
    /// Threads of a block.
    pub block: Option<Dim3>,
    /// Shared memory that the kernel declares, bytes a block.
    pub static_shared_bytes: Option<i64>,
    /// Local memory, bytes.
    pub local_bytes: Option<i64>,
    /// Constant memory, bytes.
    pub const_bytes: Option<i64>,
    /// Resident warps of a multiprocessor in its greatest number.
    pub occupancy: Option<f64>,
    /// The same, as far as registers allow.
    pub register_occupancy: Option<f64>,
    /// The same, as far as shared memory allows.
    pub shared_memory_occupancy: Option<f64>,
    /// The same, as far as the number of warps allows.
    pub warp_occupancy: Option<f64>,
    /// The same, as far as the number of blocks allows.
    pub block_occupancy: Option<f64>,
    /// What allows the least: `REGISTERS`, `SHARED_MEM`, `WARPS`, `BLOCKS`.
    pub limiting_resource: Option<Text<'a>>,
    /// Resident blocks of a multiprocessor.
    pub max_active_blocks: Option<i64>,
    /// Local memory of all threads, bytes.
    pub local_total_bytes: Option<i64>,
    /// Local memory of one thread, bytes.
    pub local_bytes_per_thread: Option<i64>,
    /// `CUfunc_cache` that was asked for.
    pub cache_config_requested: Option<i64>,
    /// `CUfunc_cache` that was used.
    pub cache_config_executed: Option<i64>,
    /// Shared memory that the device set aside, bytes a block.
    pub shared_executed_bytes: Option<i64>,
    /// Names of the open scopes, outermost first, with `|` between.
    pub scope_path: Option<Text<'a>>,
    /// Names of the calling functions, outermost first, with `|` between.
    pub stack: Option<Text<'a>>,
}

impl KernelDetails<'_> {
    /// Details that tell nothing.
    pub(crate) const NONE: KernelDetails<'static> = KernelDetails {
        correlation: None,
        grid: None,
        block: None,
        static_shared_bytes: None,
        local_bytes: None,
        const_bytes: None,
        occupancy: None,
        register_occupancy: None,
        shared_memory_occupancy: None,
        warp_occupancy: None,
        block_occupancy: None,
        limiting_resource: None,
        max_active_blocks: None,
        local_total_bytes: None,
        local_bytes_per_thread: None,
        cache_config_requested: None,
        cache_config_executed: None,
        shared_executed_bytes: None,
        scope_path: None,
        stack: None,
    };

    /// Whether they tell nothing but whose they are.
    pub(crate) fn is_bare(&self) -> bool {
        *self == KernelDetails { correlation: self.correlation, ..KernelDetails::NONE }
    }

    /// The same details with texts of their own.
    #[must_use]
    pub fn into_owned(self) -> KernelDetails<'static> {
        KernelDetails {
            limiting_resource: keep_some(self.limiting_resource),
            scope_path: keep_some(self.scope_path),
            stack: keep_some(self.stack),
            ..self
        }
    }
}
