//! Copies between the host and a device.
#![allow(unsafe_code, reason = "the driver is a C library")]

use std::ffi::c_void;

use crate::driver::{Driver, DriverError, checked, symbol};

const BYTES: usize = 4096;

/// Copies to the current device and back so many times.
pub(crate) fn copy(driver: &Driver, times: u64) -> Result<(), DriverError> {
    type Allocate = unsafe extern "C" fn(*mut u64, usize) -> i32;
    type Free = unsafe extern "C" fn(u64) -> i32;
    type ToDevice = unsafe extern "C" fn(u64, *const c_void, usize) -> i32;
    type ToHost = unsafe extern "C" fn(*mut c_void, u64, usize) -> i32;
    if times == 0 {
        return Ok(());
    }
    let library = driver.library();
    // SAFETY: the type is that of cuda.h.
    let allocate: Allocate = unsafe { symbol(library, c"cuMemAlloc_v2") }?;
    // SAFETY: the type is that of cuda.h.
    let free: Free = unsafe { symbol(library, c"cuMemFree_v2") }?;
    // SAFETY: the type is that of cuda.h.
    let to_device: ToDevice = unsafe { symbol(library, c"cuMemcpyHtoD_v2") }?;
    // SAFETY: the type is that of cuda.h.
    let to_host: ToHost = unsafe { symbol(library, c"cuMemcpyDtoH_v2") }?;
    let (mut address, mut here) = (0, [0_u8; BYTES]);
    // SAFETY: the place may be written.
    checked("cuMemAlloc", unsafe { allocate(&raw mut address, BYTES) })?;
    for _ in 0..times {
        // SAFETY: both sides have so many bytes.
        let code = unsafe { to_device(address, here.as_ptr().cast(), BYTES) };
        checked("cuMemcpyHtoD", code)?;
        // SAFETY: as above.
        let code = unsafe { to_host(here.as_mut_ptr().cast(), address, BYTES) };
        checked("cuMemcpyDtoH", code)?;
    }
    // SAFETY: the memory is not used any more.
    checked("cuMemFree", unsafe { free(address) })
}
