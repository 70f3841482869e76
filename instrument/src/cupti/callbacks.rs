//! What happens on the host's threads, around its calls.
//!
//! A launch is counted after the driver has accepted it: one that is refused never ran, and before
//! the call nobody can tell. The parameters still stand, because the call has not returned to the
//! host. Nothing here allocates, locks or writes; a name that CUPTI brings along is never read, as
//! it may be an invalid pointer.
#![allow(unsafe_code, reason = "CUPTI hands over pointers")]

use std::ffi::c_void;

use crate::cupti::types::{
    API_EXIT, CLUSTER_DIMENSION, CallbackData, LaunchAttribute, LaunchConfig, LaunchExParams,
    LaunchParams, domain, launch_id,
};
use crate::guard::{Entry, guard};
use crate::launch::Launch;
use crate::lifecycle::LIFECYCLE;
use crate::observer;

/// More attributes than CUDA has.
const MAX_ATTRIBUTES: u32 = 64;

/// The function that CUPTI calls.
///
/// # Safety
/// `data` is what CUPTI documents for the domain and the id.
pub unsafe extern "C" fn on_callback(
    _user: *mut c_void,
    domain: u32,
    id: u32,
    data: *const c_void,
) {
    guard(Entry::Callback, (), || {
        if !LIFECYCLE.is_measuring() {
            return;
        }
        match domain {
            // SAFETY: in this domain, data points to a CUpti_CallbackData.
            domain::DRIVER_API => unsafe { on_driver_call(id, data.cast()) },
            domain::RESOURCE => observer::functions_changed(),
            _ => {}
        }
    });
}

/// # Safety
/// `data` is null or valid for the duration of the callback, with the parameters of call `id`.
unsafe fn on_driver_call(id: u32, data: *const CallbackData) {
    if data.is_null() {
        return;
    }
    // SAFETY: not null and valid; the site is the first field, read as the number that it is.
    let site = unsafe { data.cast::<u32>().read() };
    if site != API_EXIT {
        return;
    }
    // SAFETY: not null and valid.
    let result = unsafe { (*data).functionReturnValue }.cast::<u32>();
    // SAFETY: after the call, the return value of a driver function is a CUresult or absent.
    if result.is_null() || unsafe { result.read() } != 0 {
        return;
    }
    // SAFETY: not null and valid.
    let context = unsafe { (*data).context } as u64;
    // SAFETY: not null and valid.
    let params = unsafe { (*data).functionParams };
    if params.is_null() {
        return;
    }
    let launch = if launch_id::EX.contains(&id) {
        // SAFETY: the call is cuLaunchKernelEx, whose parameters these are.
        unsafe { launch_ex(context, params.cast()) }
    } else if launch_id::PLAIN.contains(&id) || launch_id::COOPERATIVE.contains(&id) {
        // SAFETY: the call is cuLaunchKernel or the cooperative one, alike up to the shared memory.
        Some(unsafe { launch_plain(context, params.cast()) })
    } else {
        None
    };
    if let Some(launch) = launch {
        observer::launched(&launch);
    }
}

/// # Safety
/// `params` is valid up to and including the shared memory.
unsafe fn launch_plain(context: u64, params: *const LaunchParams) -> Launch {
    // Fields are read one by one: the cooperative structure is shorter than the type.
    macro_rules! read {
        ($field:ident) => {
            // SAFETY: the caller promises this part of the structure.
            unsafe { (*params).$field }
        };
    }
    Launch {
        context,
        function: read!(f) as u64,
        grid: [read!(gridDimX), read!(gridDimY), read!(gridDimZ)],
        block: [read!(blockDimX), read!(blockDimY), read!(blockDimZ)],
        shared: read!(sharedMemBytes),
        cluster: 1,
        config: std::ptr::null(),
    }
}

/// # Safety
/// `params` is valid; its configuration is null or valid.
unsafe fn launch_ex(context: u64, params: *const LaunchExParams) -> Option<Launch> {
    // SAFETY: the caller promises the structure.
    let config = unsafe { (*params).config };
    // SAFETY: as above.
    let function = unsafe { (*params).f } as u64;
    // SAFETY: null or valid, and made of plain numbers and pointers.
    let shape = unsafe { config.as_ref() }?;
    Some(Launch {
        context,
        function,
        grid: [shape.gridDimX, shape.gridDimY, shape.gridDimZ],
        block: [shape.blockDimX, shape.blockDimY, shape.blockDimZ],
        shared: shape.sharedMemBytes,
        // SAFETY: the configuration is valid, hence its attributes.
        cluster: unsafe { blocks_per_cluster(shape) },
        config,
    })
}

/// # Safety
/// The configuration has as many attributes as it says.
unsafe fn blocks_per_cluster(config: &LaunchConfig) -> u32 {
    if config.attrs.is_null() {
        return 1;
    }
    for index in 0..config.numAttrs.min(MAX_ATTRIBUTES) as usize {
        // SAFETY: within the attributes that the caller promises.
        let attribute: *const LaunchAttribute = unsafe { config.attrs.add(index) };
        // SAFETY: within the array; the id is the first field, read as the number that it is.
        if unsafe { attribute.cast::<u32>().read() } != CLUSTER_DIMENSION {
            continue;
        }
        // SAFETY: behind this id and its padding, the union holds three numbers.
        let [_id, _padding, x, y, z] = unsafe { attribute.cast::<[u32; 5]>().read() };
        return x.saturating_mul(y).saturating_mul(z).max(1);
    }
    1
}
