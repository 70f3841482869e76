//! `CUptiResult` values, and the two calls that need no subscriber.

use std::ffi::{CStr, c_char};

use crate::fault::fault;

pub(crate) type CUptiResult = u32;

pub(crate) const SUCCESS: CUptiResult = 0;
pub(crate) const INVALID_PARAMETER: CUptiResult = 1;
pub(crate) const INVALID_DEVICE: CUptiResult = 2;
pub(crate) const INVALID_CONTEXT: CUptiResult = 3;
pub(crate) const INVALID_OPERATION: CUptiResult = 7;
pub(crate) const MAX_LIMIT_REACHED: CUptiResult = 12;
pub(crate) const INVALID_KIND: CUptiResult = 21;
pub(crate) const NOT_INITIALIZED: CUptiResult = 15;
pub(crate) const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: CUptiResult = 39;

/// `CUPTI_API_VERSION` of CUDA 13.0.
const API_VERSION: u32 = 130_001;

const NAMES: [(CUptiResult, &CStr); 10] = [
    (SUCCESS, c"CUPTI_SUCCESS"),
    (INVALID_PARAMETER, c"CUPTI_ERROR_INVALID_PARAMETER"),
    (INVALID_DEVICE, c"CUPTI_ERROR_INVALID_DEVICE"),
    (INVALID_CONTEXT, c"CUPTI_ERROR_INVALID_CONTEXT"),
    (INVALID_OPERATION, c"CUPTI_ERROR_INVALID_OPERATION"),
    (8, c"CUPTI_ERROR_OUT_OF_MEMORY"),
    (14, c"CUPTI_ERROR_NOT_COMPATIBLE"),
    (NOT_INITIALIZED, c"CUPTI_ERROR_NOT_INITIALIZED"),
    (35, c"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"),
    (MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"),
];

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiGetVersion(version: *mut u32) -> CUptiResult {
    if version.is_null() {
        return INVALID_PARAMETER;
    }
    // SAFETY: not null, and the caller passes a pointer to be written.
    unsafe { version.write(fault("version").unwrap_or(API_VERSION)) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiGetResultString(
    result: CUptiResult,
    text: *mut *const c_char,
) -> CUptiResult {
    let Some((_, name)) = NAMES.iter().find(|entry| entry.0 == result) else {
        return INVALID_PARAMETER;
    };
    if text.is_null() {
        return INVALID_PARAMETER;
    }
    // SAFETY: not null, and the caller passes a pointer to be written.
    unsafe { text.write(name.as_ptr()) };
    SUCCESS
}
