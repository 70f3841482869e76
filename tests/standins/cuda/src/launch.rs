//! Launches: seen by CUPTI, then run or, while their stream is captured, put into its graph.

use std::ffi::{CStr, c_void};

use crate::capture;
use crate::execute;
use crate::graph::KernelNode;
use crate::hook::{Api, traced};
use crate::init::ready;
use crate::registry;
use crate::result::{CUresult, INVALID_VALUE, SUCCESS, code};

/// `cuLaunchKernel_params` (generated_cuda_meta.h); the cooperative one ends before `extra`.
#[repr(C)]
struct LaunchParams {
    function: *mut c_void,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: *mut c_void,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
}

/// `cuLaunchKernelEx_params` (generated_cuda_meta.h).
#[repr(C)]
struct LaunchExParams {
    config: *const LaunchConfig,
    function: *mut c_void,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
}

/// `CUlaunchConfig` (cuda.h).
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) stream: *mut c_void,
    pub(crate) attributes: *const LaunchAttribute,
    pub(crate) attribute_count: u32,
}

/// `CUlaunchAttribute` (cuda.h): an id, padding, and a union of 64 bytes.
#[repr(C)]
pub(crate) struct LaunchAttribute {
    id: u32,
    padding: [u8; 4],
    value: [u32; 16],
}

const _: () = {
    assert!(size_of::<LaunchParams>() == 64);
    assert!(size_of::<LaunchExParams>() == 32);
    assert!(size_of::<LaunchConfig>() == 56);
    assert!(size_of::<LaunchAttribute>() == 72);
};

impl LaunchConfig {
    /// How many blocks make a cluster; 1 where no attribute says so.
    ///
    /// # Safety
    /// `attributes` points to `attribute_count` attributes.
    pub(crate) unsafe fn blocks_per_cluster(&self) -> u32 {
        /// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
        const CLUSTER_DIMENSION: u32 = 4;
        for index in 0..self.attribute_count as usize {
            // SAFETY: within the attributes that the caller promises.
            let attribute = unsafe { self.attributes.add(index) };
            // SAFETY: as above.
            let attribute = unsafe { &*attribute };
            if let (CLUSTER_DIMENSION, [x, y, z, ..]) = (attribute.id, attribute.value) {
                return x * y * z;
            }
        }
        1
    }
}

const LAUNCH: Api = Api { name: c"cuLaunchKernel", cbid: 307 };
const LAUNCH_PTSZ: Api = Api { name: c"cuLaunchKernel_ptsz", cbid: 442 };
const COOPERATIVE: Api = Api { name: c"cuLaunchCooperativeKernel", cbid: 477 };
const COOPERATIVE_PTSZ: Api = Api { name: c"cuLaunchCooperativeKernel_ptsz", cbid: 478 };
const EX: Api = Api { name: c"cuLaunchKernelEx", cbid: 652 };
const EX_PTSZ: Api = Api { name: c"cuLaunchKernelEx_ptsz", cbid: 653 };

/// Refuses what NVIDIA's driver refuses.
pub(crate) fn check(function: *mut c_void, grid: [u32; 3], block: [u32; 3]) -> CUresult {
    code(ready().and_then(|()| {
        registry::current()?;
        registry::function(function as usize)?;
        let threads = block.iter().map(|&length| u64::from(length)).product::<u64>();
        if grid.contains(&0) || threads == 0 || threads > 1024 {
            return Err(INVALID_VALUE);
        }
        Ok(())
    }))
}

fn launch(api: Api, params: &LaunchParams) -> CUresult {
    let symbol = symbol_of(params.function);
    traced(api, (&raw const *params).cast(), symbol, || {
        submit(params.stream, params.function, params.grid, params.block, params.shared)
    })
}

/// Runs a kernel, or captures it.
fn submit(
    stream: *mut c_void,
    function: *mut c_void,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
) -> CUresult {
    let refused = check(function, grid, block);
    if refused == SUCCESS {
        let node = KernelNode { function: function as usize, grid, block, shared };
        if !capture::add(stream as usize, &node) {
            execute::run(node.function, grid, block, shared);
        }
    }
    refused
}

fn symbol_of(function: *mut c_void) -> Option<&'static CStr> {
    registry::function(function as usize).ok().map(|function| function.kernel.name.as_c_str())
}

fn launch_ex(
    api: Api,
    config: *const LaunchConfig,
    function: *mut c_void,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    if config.is_null() {
        return INVALID_VALUE;
    }
    let params = LaunchExParams { config, function, kernel_params, extra };
    traced(api, (&raw const params).cast(), symbol_of(function), || {
        // SAFETY: not null, and the caller passes a valid configuration, as the C interface asks.
        let config = unsafe { &*config };
        submit(config.stream, function, config.grid, config.block, config.shared)
    })
}

/// The two variants of a launch with dimensions as arguments.
macro_rules! launches {
    ($($name:ident, $api:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            function: *mut c_void,
            grid_x: u32,
            grid_y: u32,
            grid_z: u32,
            block_x: u32,
            block_y: u32,
            block_z: u32,
            shared: u32,
            stream: *mut c_void,
            kernel_params: *mut *mut c_void,
            extra: *mut *mut c_void,
        ) -> CUresult {
            let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
            launch(
                $api,
                &LaunchParams { function, grid, block, shared, stream, kernel_params, extra },
            )
        }
    )*};
}

launches! {
    cuLaunchKernel, LAUNCH;
    cuLaunchKernel_ptsz, LAUNCH_PTSZ;
}

/// The two variants of a cooperative launch, which has no `extra`.
macro_rules! cooperative_launches {
    ($($name:ident, $api:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            function: *mut c_void,
            grid_x: u32,
            grid_y: u32,
            grid_z: u32,
            block_x: u32,
            block_y: u32,
            block_z: u32,
            shared: u32,
            stream: *mut c_void,
            kernel_params: *mut *mut c_void,
        ) -> CUresult {
            let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
            let extra = std::ptr::null_mut();
            launch(
                $api,
                &LaunchParams { function, grid, block, shared, stream, kernel_params, extra },
            )
        }
    )*};
}

cooperative_launches! {
    cuLaunchCooperativeKernel, COOPERATIVE;
    cuLaunchCooperativeKernel_ptsz, COOPERATIVE_PTSZ;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernelEx(
    config: *const LaunchConfig,
    function: *mut c_void,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    launch_ex(EX, config, function, kernel_params, extra)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernelEx_ptsz(
    config: *const LaunchConfig,
    function: *mut c_void,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    launch_ex(EX_PTSZ, config, function, kernel_params, extra)
}
