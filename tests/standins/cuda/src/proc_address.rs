//! `cuGetProcAddress`: how statically linked runtimes find the driver's functions.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

use nix::libc;

use crate::result::{CUresult, INVALID_VALUE, NOT_FOUND, SUCCESS, answer};

const PER_THREAD_DEFAULT_STREAM: u64 = 2;

/// The address of one of our own exported functions: the newest version of a name, and the variant
/// for per-thread default streams where that is asked for.
fn find(name: &CStr, flags: u64) -> Option<*mut c_void> {
    let name = name.to_str().ok()?;
    let stream = (flags & PER_THREAD_DEFAULT_STREAM != 0).then_some("_ptsz");
    let suffixes = stream.into_iter().chain(["_v4", "_v2", ""]);
    let this = this_library()?;
    for suffix in suffixes {
        let symbol = CString::new(format!("{name}{suffix}")).ok()?;
        // SAFETY: the handle is open and the name is a C string.
        let address = unsafe { libc::dlsym(this, symbol.as_ptr()) };
        if !address.is_null() {
            return Some(address);
        }
    }
    None
}

fn this_library() -> Option<*mut c_void> {
    let own: *const c_void = (this_library as fn() -> _ as *const ()).cast();
    // SAFETY: the structure holds pointers alone, for which zero is a value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `info` may be written; any address may be asked about.
    let known = unsafe { libc::dladdr(own, &raw mut info) };
    if known == 0 {
        return None;
    }
    // SAFETY: the name came from the loader and lives as long as the library.
    let handle = unsafe { libc::dlopen(info.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_NOW) };
    (!handle.is_null()).then_some(handle)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    address: *mut *mut c_void,
    version: i32,
    flags: u64,
    status: *mut i32,
) -> CUresult {
    /// `CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND`.
    const MISSING: i32 = 1;
    // SAFETY: passed on from the caller.
    let result = unsafe { cuGetProcAddress(symbol, address, version, flags) };
    if !status.is_null() {
        // SAFETY: not null, and the caller passes a pointer to be written.
        unsafe { status.write(if result == NOT_FOUND { MISSING } else { 0 }) };
    }
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress(
    symbol: *const c_char,
    address: *mut *mut c_void,
    _version: i32,
    flags: u64,
) -> CUresult {
    if symbol.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller passes a C string, as the C interface asks.
    let found = find(unsafe { CStr::from_ptr(symbol) }, flags);
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    let stored = unsafe { answer(address, found.unwrap_or(ptr::null_mut())) };
    match found {
        Some(_) => stored,
        None if stored == SUCCESS => NOT_FOUND,
        None => stored,
    }
}
