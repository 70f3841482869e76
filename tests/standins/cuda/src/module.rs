//! Modules and functions. Any image is accepted; kernels are known by name.

use std::ffi::{CStr, c_char, c_void};

use crate::hook::{MODULE_LOADED, MODULE_UNLOAD_STARTING, resource};
use crate::init::ready;
use crate::registry;
use crate::result::{CUresult, INVALID_VALUE, answer_or, code};

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(module: *mut *mut c_void, image: *const c_void) -> CUresult {
    if image.is_null() {
        return INVALID_VALUE;
    }
    let added = ready().and_then(|()| registry::add_module()).map(|handle| handle as *mut c_void);
    if added.is_ok() {
        resource(MODULE_LOADED, registry::current_handle());
    }
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(module, added) }
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: *mut c_void) -> CUresult {
    code(ready().and_then(|()| {
        resource(MODULE_UNLOAD_STARTING, registry::current_handle());
        registry::remove_module(module as usize)
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(
    function: *mut *mut c_void,
    module: *mut c_void,
    name: *const c_char,
) -> CUresult {
    if name.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller passes a C string, as the C interface asks.
    let name = unsafe { CStr::from_ptr(name) };
    let found = registry::function_of(module as usize, name).map(|handle| handle as *mut c_void);
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(function, found) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetAttribute(
    value: *mut i32,
    attribute: i32,
    function: *mut c_void,
) -> CUresult {
    let found = registry::function(function as usize).and_then(|function| {
        let value = match attribute {
            0 => 1024,                      // MAX_THREADS_PER_BLOCK
            1 => function.kernel.shared,    // SHARED_SIZE_BYTES
            2 | 3 => 0,                     // CONST_SIZE_BYTES, LOCAL_SIZE_BYTES
            4 => function.kernel.registers, // NUM_REGS
            _ => return Err(INVALID_VALUE),
        };
        i32::try_from(value).or(Err(INVALID_VALUE))
    });
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(value, found) }
}

/// The stand-in has no carve-out to change: every launch may use all of the shared memory.
#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(function: *mut c_void, _attribute: i32, _value: i32) -> CUresult {
    code(registry::function(function as usize).map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetName(name: *mut *const c_char, function: *mut c_void) -> CUresult {
    let found = registry::function(function as usize).map(|function| function.kernel.name.as_ptr());
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(name, found) }
}
