//! The instances that a device is divided into.

use crate::device::{Handle, handle, of, place};
use crate::result::{INVALID_ARGUMENT, NOT_FOUND, Return, answer, code};

/// As many as a GPU has at most.
const MOST: u32 = 7;

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigMode(
    device: Handle,
    current: *mut u32,
    pending: *mut u32,
) -> Return {
    code(of("nvmlDeviceGetMigMode", device).and_then(|device| {
        let mode = u32::from(!device.instances.is_empty());
        // SAFETY: the caller passes a pointer to be written, as the C interface asks.
        unsafe { answer(current, mode) }?;
        // SAFETY: as above.
        unsafe { answer(pending, mode) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMaxMigDeviceCount(device: Handle, out: *mut u32) -> Return {
    code(of("nvmlDeviceGetMaxMigDeviceCount", device).and_then(|_| {
        // SAFETY: the caller passes a pointer to be written, as the C interface asks.
        unsafe { answer(out, MOST) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    parent: Handle,
    index: u32,
    out: *mut Handle,
) -> Return {
    code(of("nvmlDeviceGetMigDeviceHandleByIndex", parent).and_then(|device| {
        if index >= MOST {
            return Err(INVALID_ARGUMENT);
        }
        let index = index as usize;
        device.instances.get(index).ok_or(NOT_FOUND)?;
        let (parent, _) = place(parent)?;
        // SAFETY: the caller passes a pointer to be written, as the C interface asks.
        unsafe { answer(out, handle(parent, Some(index))) }
    }))
}
