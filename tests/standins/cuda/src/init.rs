//! `cuInit`, and the injection inside it.

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::libc;

use crate::result::{CUresult, INVALID_VALUE, NOT_INITIALIZED, SUCCESS, answer};

/// CUDA 13.0.
const DRIVER_VERSION: i32 = 13000;

/// The process that called `cuInit`; 0 before. A forked child has another id and is refused, as
/// with NVIDIA's driver.
static INITIALIZED_BY: AtomicU32 = AtomicU32::new(0);

/// Whether other calls may be made.
pub(crate) fn ready() -> Result<(), CUresult> {
    if INITIALIZED_BY.load(Ordering::Acquire) == std::process::id() {
        Ok(())
    } else {
        Err(NOT_INITIALIZED)
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: u32) -> CUresult {
    static ONCE: Once = Once::new();
    if flags != 0 {
        return INVALID_VALUE;
    }
    let own = std::process::id();
    let owner = INITIALIZED_BY.load(Ordering::Acquire);
    if owner != 0 && owner != own {
        return NOT_INITIALIZED;
    }
    ONCE.call_once(|| {
        inject();
        INITIALIZED_BY.store(own, Ordering::Release);
    });
    SUCCESS
}

/// Loads the library that `CUDA_INJECTION64_PATH` names and calls its `InitializeInjection`. A
/// library that cannot be loaded is left out, and the program goes on.
fn inject() {
    let Some(path) = std::env::var_os("CUDA_INJECTION64_PATH") else { return };
    let Ok(path) = CString::new(path.as_bytes()) else { return };
    // SAFETY: the path is a C string; what the library's constructors do is the user's wish.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return;
    }
    // SAFETY: the handle is open and the name is a C string.
    let entry = unsafe { libc::dlsym(library, c"InitializeInjection".as_ptr()) };
    if entry.is_null() {
        return;
    }
    // SAFETY: this is the type that every injection library gives the symbol.
    let entry = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> i32>(entry) };
    entry();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut i32) -> CUresult {
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer(version, DRIVER_VERSION) }
}
