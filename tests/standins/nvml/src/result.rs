//! `nvmlReturn_t` values, and the few lines that every entry point shares.

use std::ffi::c_char;

/// `nvmlReturn_t` (nvml.h).
pub(crate) type Return = u32;

pub(crate) type Result<T> = std::result::Result<T, Return>;

const SUCCESS: Return = 0;
pub(crate) const UNINITIALIZED: Return = 1;
pub(crate) const INVALID_ARGUMENT: Return = 2;
pub(crate) const NOT_SUPPORTED: Return = 3;
pub(crate) const NOT_FOUND: Return = 6;
pub(crate) const INSUFFICIENT_SIZE: Return = 7;

/// The result as the interface has it.
pub(crate) fn code(result: Result<()>) -> Return {
    result.err().unwrap_or(SUCCESS)
}

/// Stores an answer where the caller wants it.
///
/// # Safety
/// `out` is null or may be written.
pub(crate) unsafe fn answer<T>(out: *mut T, value: T) -> Result<()> {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not null, and the caller promises that it may be written.
    unsafe { out.write(value) };
    Ok(())
}

/// Stores a text with its final zero.
///
/// # Safety
/// `out` is null or has room for `length` characters.
pub(crate) unsafe fn answer_text(out: *mut c_char, length: u32, text: &str) -> Result<()> {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    if text.len() >= length as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    for (place, byte) in text.bytes().chain([0]).enumerate() {
        // SAFETY: the text and its zero fit, see above.
        let place = unsafe { out.add(place) };
        // SAFETY: within the room that the caller promises.
        unsafe { place.write(byte.cast_signed() as c_char) };
    }
    Ok(())
}
