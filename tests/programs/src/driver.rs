//! The CUDA driver, found at run time.
#![allow(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use nix::libc;

use crate::arguments::{Api, Shape};
use crate::image::IMAGE;

/// What went wrong with the driver.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriverError {
    #[error("libcuda.so.1 cannot be loaded: is a driver installed?")]
    NoDriver,
    #[error("the driver has no {0:?}")]
    NoSymbol(&'static CStr),
    #[error("{call} failed with CUresult {code}")]
    Failed { call: &'static str, code: i32 },
}

/// `CUlaunchConfig` (cuda.h).
#[repr(C)]
struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: *mut c_void,
    attributes: *mut LaunchAttribute,
    attribute_count: u32,
}

/// `CUlaunchAttribute` (cuda.h).
#[repr(C)]
struct LaunchAttribute {
    id: u32,
    padding: [u8; 4],
    value: [u32; 16],
}

type LaunchKernel = unsafe extern "C" fn(
    *mut c_void,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> i32;
type LaunchCooperative = unsafe extern "C" fn(
    *mut c_void,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    *mut c_void,
    *mut *mut c_void,
) -> i32;
type LaunchEx = unsafe extern "C" fn(
    *const LaunchConfig,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> i32;

/// The functions of the driver that the program uses.
pub(crate) struct Driver {
    library: Handle,
    init: unsafe extern "C" fn(u32) -> i32,
    device_get: unsafe extern "C" fn(*mut i32, i32) -> i32,
    primary_retain: unsafe extern "C" fn(*mut *mut c_void, i32) -> i32,
    set_current: unsafe extern "C" fn(*mut c_void) -> i32,
    synchronize: unsafe extern "C" fn() -> i32,
    module_load: unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> i32,
    module_unload: unsafe extern "C" fn(*mut c_void) -> i32,
    get_function: unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> i32,
    set_attribute: unsafe extern "C" fn(*mut c_void, i32, i32) -> i32,
    launch: LaunchKernel,
    launch_ptsz: LaunchKernel,
    cooperative: LaunchCooperative,
    cooperative_ptsz: LaunchCooperative,
    ex: LaunchEx,
    ex_ptsz: LaunchEx,
    /// Of the stand-in alone.
    executed: Option<unsafe extern "C" fn() -> u64>,
}

/// A handle of the driver, which may be used from any thread.
#[derive(Clone, Copy)]
pub(crate) struct Handle(pub(crate) *mut c_void);

// SAFETY: contexts, modules and functions belong to no thread; the driver locks where it must.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

pub(crate) fn checked(call: &'static str, code: i32) -> Result<(), DriverError> {
    if code == 0 { Ok(()) } else { Err(DriverError::Failed { call, code }) }
}

/// A symbol as a function of type `F`.
///
/// # Safety
/// `F` is the type that cuda.h gives the symbol.
pub(crate) unsafe fn symbol<F: Copy>(
    library: *mut c_void,
    name: &'static CStr,
) -> Result<F, DriverError> {
    // SAFETY: the handle is open and the name is a C string.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    if address.is_null() {
        return Err(DriverError::NoSymbol(name));
    }
    // SAFETY: a function pointer is as large as an address, and the caller promises its type.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

impl Driver {
    /// Loads the driver and initialises it.
    pub(crate) fn load() -> Result<Self, DriverError> {
        // SAFETY: the name is a C string; loading the driver is what the program is for.
        let library =
            unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(DriverError::NoDriver);
        }
        macro_rules! symbols {
            ($($field:ident: $name:literal,)*) => {
                Self {
                    library: Handle(library),
                    $(// SAFETY: the field has the type that cuda.h gives the symbol.
                    $field: unsafe { symbol(library, $name) }?,)*
                    // SAFETY: the stand-in gives the symbol this type.
                    executed: unsafe { symbol(library, c"standin_executed_instructions") }.ok(),
                }
            };
        }
        Ok(symbols! {
            init: c"cuInit",
            device_get: c"cuDeviceGet",
            primary_retain: c"cuDevicePrimaryCtxRetain",
            set_current: c"cuCtxSetCurrent",
            synchronize: c"cuCtxSynchronize",
            module_load: c"cuModuleLoadData",
            module_unload: c"cuModuleUnload",
            get_function: c"cuModuleGetFunction",
            set_attribute: c"cuFuncSetAttribute",
            launch: c"cuLaunchKernel",
            launch_ptsz: c"cuLaunchKernel_ptsz",
            cooperative: c"cuLaunchCooperativeKernel",
            cooperative_ptsz: c"cuLaunchCooperativeKernel_ptsz",
            ex: c"cuLaunchKernelEx",
            ex_ptsz: c"cuLaunchKernelEx_ptsz",
        })
    }

    /// Initialises the driver, which is when a library is injected.
    pub(crate) fn init(&self) -> Result<(), DriverError> {
        // SAFETY: the function has the type of cuda.h.
        checked("cuInit", unsafe { (self.init)(0) })
    }

    /// The primary context of a device.
    pub(crate) fn context(&self, ordinal: i32) -> Result<Handle, DriverError> {
        let (mut device, mut context) = (0, ptr::null_mut());
        // SAFETY: the pointer may be written.
        checked("cuDeviceGet", unsafe { (self.device_get)(&raw mut device, ordinal) })?;
        // SAFETY: the pointer may be written.
        let code = unsafe { (self.primary_retain)(&raw mut context, device) };
        checked("cuDevicePrimaryCtxRetain", code)?;
        Ok(Handle(context))
    }

    /// Makes a context the calling thread's.
    pub(crate) fn enter(&self, context: Handle) -> Result<(), DriverError> {
        // SAFETY: the context came from the driver.
        checked("cuCtxSetCurrent", unsafe { (self.set_current)(context.0) })
    }

    /// Waits until everything launched has run.
    pub(crate) fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the function has the type of cuda.h.
        checked("cuCtxSynchronize", unsafe { (self.synchronize)() })
    }

    /// The library, to find more functions in.
    pub(crate) fn library(&self) -> *mut c_void {
        self.library.0
    }

    /// Instructions that all kernels have executed so far, where the driver is the stand-in.
    pub(crate) fn executed_instructions(&self) -> Option<u64> {
        // SAFETY: the function has the type of the stand-in.
        self.executed.map(|executed| unsafe { executed() })
    }

    /// Loads the module with the test kernels into the current context.
    pub(crate) fn load_module(&self) -> Result<Handle, DriverError> {
        let mut module = ptr::null_mut();
        // SAFETY: the pointer may be written and the image is a C string of PTX.
        let code = unsafe { (self.module_load)(&raw mut module, IMAGE.as_ptr().cast()) };
        checked("cuModuleLoadData", code)?;
        Ok(Handle(module))
    }

    /// Unloads a module.
    pub(crate) fn unload_module(&self, module: Handle) -> Result<(), DriverError> {
        // SAFETY: the module came from the driver and is not used any more.
        checked("cuModuleUnload", unsafe { (self.module_unload)(module.0) })
    }

    /// A kernel of a module, allowed to use the shared memory that its shape asks for.
    pub(crate) fn function(&self, module: Handle, shape: &Shape) -> Result<Handle, DriverError> {
        /// What a launch may use without asking.
        const DEFAULT_SHARED: u32 = 48 << 10;
        /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
        const MAX_DYNAMIC_SHARED: i32 = 8;
        let mut function = ptr::null_mut();
        // SAFETY: the pointer may be written, the module is loaded and the name is a C string.
        let code =
            unsafe { (self.get_function)(&raw mut function, module.0, shape.kernel.as_ptr()) };
        checked("cuModuleGetFunction", code)?;
        if shape.shared > DEFAULT_SHARED {
            // SAFETY: the function came from the driver.
            let code = unsafe {
                (self.set_attribute)(function, MAX_DYNAMIC_SHARED, shape.shared.cast_signed())
            };
            checked("cuFuncSetAttribute", code)?;
        }
        Ok(Handle(function))
    }

    /// Launches on the default stream; the driver's code where it refuses.
    pub(crate) fn launch(
        &self,
        api: Api,
        cluster: Option<u32>,
        function: Handle,
        shape: &Shape,
    ) -> Result<(), i32> {
        let code = match api {
            Api::Launch => Self::launch_plainly(self.launch, function, shape),
            Api::LaunchPtsz => Self::launch_plainly(self.launch_ptsz, function, shape),
            Api::Cooperative => Self::launch_together(self.cooperative, function, shape),
            Api::CooperativePtsz => Self::launch_together(self.cooperative_ptsz, function, shape),
            Api::Ex => Self::launch_configured(self.ex, cluster, function, shape),
            Api::ExPtsz => Self::launch_configured(self.ex_ptsz, cluster, function, shape),
        };
        if code == 0 { Ok(()) } else { Err(code) }
    }

    fn launch_plainly(launch: LaunchKernel, function: Handle, shape: &Shape) -> i32 {
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        let (stream, none) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the function came from the driver and takes no arguments.
        unsafe { launch(function.0, gx, gy, gz, bx, by, bz, shape.shared, stream, none, none) }
    }

    fn launch_together(launch: LaunchCooperative, function: Handle, shape: &Shape) -> i32 {
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        let (stream, none) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the function came from the driver and takes no arguments.
        unsafe { launch(function.0, gx, gy, gz, bx, by, bz, shape.shared, stream, none) }
    }

    fn launch_configured(
        launch: LaunchEx,
        cluster: Option<u32>,
        function: Handle,
        shape: &Shape,
    ) -> i32 {
        /// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
        const CLUSTER_DIMENSION: u32 = 4;
        let mut value = [0; 16];
        let [x, y, z, ..] = &mut value;
        (*x, *y, *z) = (cluster.unwrap_or(1), 1, 1);
        let mut attribute = LaunchAttribute { id: CLUSTER_DIMENSION, padding: [0; 4], value };
        let config = LaunchConfig {
            grid: shape.grid,
            block: shape.block,
            shared: shape.shared,
            stream: ptr::null_mut(),
            attributes: &raw mut attribute,
            attribute_count: cluster.is_some().into(),
        };
        // SAFETY: the configuration outlives the call; the function takes no arguments.
        unsafe { launch(&raw const config, function.0, ptr::null_mut(), ptr::null_mut()) }
    }
}
