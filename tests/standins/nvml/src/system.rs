//! The library itself: its beginning and end, its versions, how many devices there are.

use std::ffi::c_char;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::result::{Result, Return, UNINITIALIZED, answer, answer_text, code};
use crate::script::{Script, script};

/// How often it was initialised and not shut down, as with NVIDIA's library.
static USERS: AtomicU32 = AtomicU32::new(0);

/// The script, if the library is initialised and no fault is played instead.
pub(crate) fn ready(call: &str, device: Option<usize>) -> Result<&'static Script> {
    if USERS.load(Ordering::Acquire) == 0 {
        return Err(UNINITIALIZED);
    }
    script().play(call, device)?;
    Ok(script())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> Return {
    code(script().play("nvmlInit_v2", None).map(|()| {
        USERS.fetch_add(1, Ordering::AcqRel);
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> Return {
    code(ready("nvmlShutdown", None).map(|_| {
        USERS.fetch_sub(1, Ordering::AcqRel);
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetDriverVersion(out: *mut c_char, length: u32) -> Return {
    code(ready("nvmlSystemGetDriverVersion", None).and_then(|script| {
        // SAFETY: the caller passes room of that length, as the C interface asks.
        unsafe { answer_text(out, length, &script.driver) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetNVMLVersion(out: *mut c_char, length: u32) -> Return {
    code(ready("nvmlSystemGetNVMLVersion", None).and_then(|script| {
        // SAFETY: the caller passes room of that length, as the C interface asks.
        unsafe { answer_text(out, length, &script.nvml) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCount_v2(out: *mut u32) -> Return {
    code(ready("nvmlDeviceGetCount_v2", None).and_then(|script| {
        let count = u32::try_from(script.devices.len()).unwrap_or(u32::MAX);
        // SAFETY: the caller passes a pointer to be written, as the C interface asks.
        unsafe { answer(out, count) }
    }))
}
