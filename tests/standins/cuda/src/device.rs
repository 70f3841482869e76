//! Devices and their attributes.

use std::ffi::c_char;

use crate::init::ready;
use crate::occupancy::reserved_shared;
use crate::result::{CUresult, INVALID_DEVICE, INVALID_VALUE, SUCCESS, answer_or};
use crate::script::{Device, Script};

/// The device of an ordinal.
pub(crate) fn device(ordinal: i32) -> Result<&'static Device, CUresult> {
    ready()?;
    usize::try_from(ordinal)
        .ok()
        .and_then(|index| Script::of_this_process().devices.get(index))
        .ok_or(INVALID_DEVICE)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut i32) -> CUresult {
    let devices = Script::of_this_process().devices.len();
    let found = ready().and_then(|()| i32::try_from(devices).or(Err(INVALID_VALUE)));
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(count, found) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(handle: *mut i32, ordinal: i32) -> CUresult {
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(handle, device(ordinal).map(|_| ordinal)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: i32, ordinal: i32) -> CUresult {
    let device = match device(ordinal) {
        Ok(device) => device,
        Err(error) => return error,
    };
    let text = device.name.as_bytes_with_nul();
    let Some(room) = usize::try_from(length).ok().filter(|room| *room >= text.len()) else {
        return INVALID_VALUE;
    };
    if name.is_null() || room == 0 {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives room for `length` bytes and the name is no longer than that.
    unsafe { name.copy_from_nonoverlapping(text.as_ptr().cast(), text.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut i32,
    attribute: i32,
    ordinal: i32,
) -> CUresult {
    let found = device(ordinal).and_then(|device| self::attribute(device, attribute));
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(value, found) }
}

/// `CUdevice_attribute` by number (cuda.h).
fn attribute(device: &Device, attribute: i32) -> Result<i32, CUresult> {
    let value = match attribute {
        1 => 1024,                    // MAX_THREADS_PER_BLOCK
        8 => 48 * 1024,               // MAX_SHARED_MEMORY_PER_BLOCK
        10 => 32,                     // WARP_SIZE
        16 => device.multiprocessors, // MULTIPROCESSOR_COUNT
        39 => device.warps * 32,      // MAX_THREADS_PER_MULTIPROCESSOR
        75 => device.compute_capability.0.cast_unsigned(),
        76 => device.compute_capability.1.cast_unsigned(),
        81 => device.shared,    // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
        82 => device.registers, // MAX_REGISTERS_PER_MULTIPROCESSOR
        97 => device.shared - reserved_shared(device), // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        106 => device.blocks,   // MAX_BLOCKS_PER_MULTIPROCESSOR
        111 => reserved_shared(device), // RESERVED_SHARED_MEMORY_PER_BLOCK
        _ => return Err(INVALID_VALUE),
    };
    i32::try_from(value).or(Err(INVALID_VALUE))
}
