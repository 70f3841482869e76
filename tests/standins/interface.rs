//! The private line between the two stand-ins: what the stand-in driver tells the stand-in CUPTI.
//!
//! NVIDIA's libraries talk through tables that they do not publish; the stand-ins need one symbol.
//! The driver exports `standin_set_hook`, which takes an `Option<Hook>`; CUPTI looks it up and hands
//! over a function that is called around every traced call. Both stand-ins include this file, so the layout cannot drift apart.

use std::ffi::{c_char, c_void};

/// `CUPTI_CB_DOMAIN_DRIVER_API` (cupti_callbacks.h).
pub(crate) const DOMAIN_DRIVER_API: u32 = 1;
/// `CUPTI_CB_DOMAIN_RESOURCE` (cupti_callbacks.h).
pub(crate) const DOMAIN_RESOURCE: u32 = 3;

/// Ours: a kernel has run. `function_params` of the event points to an [`Execution`].
pub(crate) const DOMAIN_EXECUTION: u32 = 1000;

/// Ours: memory was copied. `function_params` of the event points to a [`Transfer`].
pub(crate) const DOMAIN_TRANSFER: u32 = 1001;

/// What a kernel has done, of all its warps together.
#[repr(C)]
pub(crate) struct Execution {
    /// The kernel's name.
    pub(crate) name: *const c_char,
    /// Blocks along x, y and z.
    pub(crate) grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub(crate) block: [u32; 3],
    /// Registers per thread.
    pub(crate) registers: u32,
    /// Shared memory that the kernel declares, bytes per block.
    pub(crate) static_shared: u32,
    /// Shared memory asked for at launch, bytes per block.
    pub(crate) dynamic_shared: u32,
    /// The ordinal of the device.
    pub(crate) device: u32,
    /// How long it ran, in nanoseconds.
    pub(crate) duration: u64,
    /// Executed instructions, counted once per warp.
    pub(crate) instructions: u64,
    /// Those of them that access global memory.
    pub(crate) global: u64,
    /// Cache lines that they touch.
    pub(crate) lines: u64,
    /// Branches.
    pub(crate) branches: u64,
    /// Branches whose threads diverged.
    pub(crate) divergent: u64,
}

/// What a copy has done.
#[repr(C)]
pub(crate) struct Transfer {
    /// `CUpti_ActivityMemcpyKind` (cupti_activity.h).
    pub(crate) kind: u8,
    /// Bytes copied.
    pub(crate) bytes: u64,
    /// The ordinal of the device.
    pub(crate) device: u32,
}

/// Something that CUPTI would issue a callback for.
#[repr(C)]
pub(crate) struct Event {
    /// Driver API or resource.
    pub(crate) domain: u32,
    /// The callback id within the domain.
    pub(crate) cbid: u32,
    /// 0 before the call, 1 after it.
    pub(crate) site: u32,
    /// The name of the API function.
    pub(crate) function_name: *const c_char,
    /// Its parameters, laid out as in generated_cuda_meta.h.
    pub(crate) function_params: *const c_void,
    /// What it returned; meaningful after the call.
    pub(crate) return_value: *mut i32,
    /// The kernel that is launched.
    pub(crate) symbol_name: *const c_char,
    /// The current context, or the one that a resource event is about.
    pub(crate) context: *mut c_void,
    /// The context's number.
    pub(crate) context_uid: u32,
    /// The same number before and after one call and for what it runs, different for any two calls.
    pub(crate) correlation_id: u32,
    /// Room that the subscriber may use between the two.
    pub(crate) correlation_data: *mut u64,
}

/// Called for every event, on the thread that made the call.
pub(crate) type Hook = unsafe extern "C" fn(*const Event);
