//! `CUresult` values and the few lines that every entry point shares.

use std::ffi::{CStr, c_char};

pub(crate) type CUresult = i32;

pub(crate) const SUCCESS: CUresult = 0;
pub(crate) const INVALID_VALUE: CUresult = 1;
pub(crate) const OUT_OF_MEMORY: CUresult = 2;
pub(crate) const NOT_INITIALIZED: CUresult = 3;
pub(crate) const INVALID_DEVICE: CUresult = 101;
pub(crate) const INVALID_CONTEXT: CUresult = 201;
pub(crate) const INVALID_HANDLE: CUresult = 400;
pub(crate) const NOT_FOUND: CUresult = 500;
pub(crate) const STREAM_CAPTURE_UNSUPPORTED: CUresult = 900;

const NAMES: [(CUresult, &CStr, &CStr); 9] = [
    (SUCCESS, c"CUDA_SUCCESS", c"no error"),
    (INVALID_VALUE, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (OUT_OF_MEMORY, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (NOT_INITIALIZED, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
    (INVALID_DEVICE, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
    (INVALID_CONTEXT, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
    (INVALID_HANDLE, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
    (NOT_FOUND, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
    (
        STREAM_CAPTURE_UNSUPPORTED,
        c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        c"operation not permitted when stream is capturing",
    ),
];

/// Stores an answer where the caller wants it.
///
/// # Safety
/// `out` is null or may be written.
pub(crate) unsafe fn answer<T>(out: *mut T, value: T) -> CUresult {
    if out.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, and the caller promises that it may be written.
    unsafe { out.write(value) };
    SUCCESS
}

/// Stores the answer of a look-up that may have failed.
///
/// # Safety
/// As for [`answer`].
pub(crate) unsafe fn answer_or<T>(out: *mut T, found: Result<T, CUresult>) -> CUresult {
    match found {
        // SAFETY: passed on from the caller.
        Ok(value) => unsafe { answer(out, value) },
        Err(error) => error,
    }
}

/// The result of something that yields nothing but success or an error.
pub(crate) fn code(result: Result<(), CUresult>) -> CUresult {
    result.err().unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(error: CUresult, text: *mut *const c_char) -> CUresult {
    let found = NAMES.iter().find(|entry| entry.0 == error).ok_or(INVALID_VALUE);
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(text, found.map(|entry| entry.1.as_ptr())) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(error: CUresult, text: *mut *const c_char) -> CUresult {
    let found = NAMES.iter().find(|entry| entry.0 == error).ok_or(INVALID_VALUE);
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(text, found.map(|entry| entry.2.as_ptr())) }
}
