//! Device memory, which is host memory here. Copies are checked against what is allocated.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use crate::hook::transferred;
use crate::interface::Transfer;
use crate::registry;
use crate::result::{CUresult, INVALID_VALUE, OUT_OF_MEMORY, SUCCESS, answer_or, code};

/// `CUPTI_ACTIVITY_MEMCPY_KIND_HTOD` and `..._DTOH` (cupti_activity.h).
const HOST_TO_DEVICE: u8 = 1;
const DEVICE_TO_HOST: u8 = 2;

/// What a device has.
const TOTAL: usize = 80 << 30;

/// More than any test needs, and less than hurts.
const LARGEST: usize = 64 << 20;

static ALLOCATIONS: Mutex<BTreeMap<u64, Vec<u8>>> = Mutex::new(BTreeMap::new());

fn allocate(bytes: usize) -> Result<u64, CUresult> {
    registry::current()?;
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    if bytes > LARGEST {
        return Err(OUT_OF_MEMORY);
    }
    let memory = vec![0_u8; bytes];
    let address = memory.as_ptr() as u64;
    ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner).insert(address, memory);
    Ok(address)
}

/// Gives a part of the device's memory to `copy`.
fn with(address: u64, bytes: usize, copy: impl FnOnce(&mut [u8])) -> CUresult {
    let mut allocations = ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let part = allocations.range_mut(..=address).next_back().and_then(|(start, memory)| {
        let offset = usize::try_from(address - start).ok()?;
        memory.get_mut(offset..offset.checked_add(bytes)?)
    });
    match part {
        Some(part) => {
            copy(part);
            SUCCESS
        }
        None => INVALID_VALUE,
    }
}

/// Says that a copy has ended well.
fn copied(outcome: CUresult, kind: u8, bytes: usize) -> CUresult {
    if outcome == SUCCESS {
        let device = registry::current().map_or(0, |context| context.ordinal.cast_unsigned());
        transferred(&Transfer { kind, bytes: bytes as u64, device });
    }
    outcome
}

/// All devices together are one here.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> CUresult {
    let used: usize =
        ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner).values().map(Vec::len).sum();
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    let first = unsafe { answer_or(free, registry::current().map(|_| TOTAL - used)) };
    if first != SUCCESS {
        return first;
    }
    // SAFETY: as above.
    unsafe { answer_or(total, Ok(TOTAL)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> CUresult {
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(address, allocate(bytes)) }
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> CUresult {
    let removed = ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
    code(removed.map(drop).ok_or(INVALID_VALUE))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> CUresult {
    let outcome = with(to, bytes, |part| {
        // SAFETY: the caller's buffer holds `bytes` bytes and cannot overlap with ours.
        unsafe { part.as_mut_ptr().copy_from_nonoverlapping(from.cast(), bytes) };
    });
    copied(outcome, HOST_TO_DEVICE, bytes)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> CUresult {
    let outcome = with(from, bytes, |part| {
        // SAFETY: the caller's buffer has room for `bytes` bytes and cannot overlap with ours.
        unsafe { to.cast::<u8>().copy_from_nonoverlapping(part.as_ptr(), bytes) };
    });
    copied(outcome, DEVICE_TO_HOST, bytes)
}
