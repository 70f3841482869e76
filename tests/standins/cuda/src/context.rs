//! Contexts and streams.

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::capture;
use crate::device::device;
use crate::hook::{CONTEXT_DESTROY_STARTING, resource};
use crate::init::ready;
use crate::registry;
use crate::result::{
    CUresult, INVALID_CONTEXT, STREAM_CAPTURE_UNSUPPORTED, answer, answer_or, code,
};

/// Handle and holders of each device's primary context.
static PRIMARY: Mutex<Vec<(i32, usize, usize)>> = Mutex::new(Vec::new());

fn create(ordinal: i32) -> Result<*mut c_void, CUresult> {
    let handle = registry::add_context(ordinal, device(ordinal)?);
    registry::set_current(handle);
    Ok(handle as *mut c_void)
}

fn destroy(handle: usize) -> Result<(), CUresult> {
    ready()?;
    registry::context(handle)?;
    resource(CONTEXT_DESTROY_STARTING, handle);
    registry::remove_context(handle)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v2(
    context: *mut *mut c_void,
    _flags: u32,
    ordinal: i32,
) -> CUresult {
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(context, create(ordinal)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v3(
    context: *mut *mut c_void,
    _affinity: *mut c_void,
    _affinities: i32,
    _flags: u32,
    ordinal: i32,
) -> CUresult {
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(context, create(ordinal)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v4(
    context: *mut *mut c_void,
    _params: *mut c_void,
    _flags: u32,
    ordinal: i32,
) -> CUresult {
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(context, create(ordinal)) }
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxDestroy_v2(context: *mut c_void) -> CUresult {
    code(destroy(context as usize))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut *mut c_void) -> CUresult {
    let found = ready().map(|()| registry::current_handle() as *mut c_void);
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(context, found) }
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> CUresult {
    let handle = context as usize;
    code(ready().and_then(|()| {
        if handle != 0 {
            registry::context(handle)?;
        }
        registry::set_current(handle);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetDevice(ordinal: *mut i32) -> CUresult {
    let found = ready().and_then(|()| registry::current()).map(|context| context.ordinal);
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(ordinal, found) }
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> CUresult {
    if capture::is_active() {
        return STREAM_CAPTURE_UNSUPPORTED;
    }
    code(ready().and_then(|()| registry::current()).map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, ordinal: i32) -> CUresult {
    let retain = || {
        let device = device(ordinal)?;
        let mut primary = PRIMARY.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, handle, holders)) = primary.iter_mut().find(|entry| entry.0 == ordinal) {
            *holders += 1;
            return Ok(*handle as *mut c_void);
        }
        let handle = registry::add_context(ordinal, device);
        primary.push((ordinal, handle, 1));
        Ok(handle as *mut c_void)
    };
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(context, retain()) }
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(ordinal: i32) -> CUresult {
    let mut primary = PRIMARY.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(slot) = primary.iter().position(|entry| entry.0 == ordinal) else {
        return INVALID_CONTEXT;
    };
    let Some((_, handle, holders)) = primary.get_mut(slot) else { return INVALID_CONTEXT };
    *holders -= 1;
    if *holders > 0 {
        return 0;
    }
    let handle = *handle;
    primary.swap_remove(slot);
    drop(primary);
    code(destroy(handle))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(stream: *mut *mut c_void, _flags: u32) -> CUresult {
    static STREAMS: AtomicUsize = AtomicUsize::new(0x4000_0000);
    if let Err(error) = registry::current() {
        return error;
    }
    let handle = STREAMS.fetch_add(16, Ordering::Relaxed);
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer(stream, handle as *mut c_void) }
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(_stream: *mut c_void) -> CUresult {
    code(ready())
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(_stream: *mut c_void) -> CUresult {
    code(ready())
}
