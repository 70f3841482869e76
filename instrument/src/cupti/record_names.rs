//! The function names that come with counted records: ours to free, if they are what they should be.
//!
//! cupti_sass_metrics.h: each record's `functionName` is allocated for the caller to free. A pointer
//! that is not one, or that comes twice, would end the program inside `free`. So each is freed once,
//! and only if it can have come from an allocator: aligned like one's, mapped, and in no library.
//! What does not look like that is left alone, at the cost of its few bytes.
#![allow(unsafe_code, reason = "the names are C strings of CUPTI's")]

use std::ffi::{CStr, c_char, c_void};

use nix::libc;

use crate::dynamic_library::is_in_a_library;

/// What every allocator aligns to on a 64-bit system (glibc: `MALLOC_ALIGNMENT`).
const ALIGNMENT: usize = 16;

const PAGE: usize = 4096;

/// The name at an address, empty where it cannot be one.
///
/// # Safety
/// An address that an allocator can have given is that of a C string, which outlives `'a`.
pub(super) unsafe fn read<'a>(name: *const c_char) -> &'a CStr {
    if !is_allocated(name as usize) {
        return c"";
    }
    // SAFETY: the caller promises that it is a C string.
    unsafe { CStr::from_ptr(name) }
}

/// Frees names that CUPTI allocated.
///
/// # Safety
/// Those that point to allocated memory are nobody else's.
pub(super) unsafe fn free(mut names: Vec<*mut c_void>) {
    names.sort_unstable();
    names.dedup();
    for name in names {
        if is_allocated(name as usize) {
            // SAFETY: the caller promises that the string is ours; it is freed once.
            unsafe { libc::free(name) };
        }
    }
}

/// Whether an address can have come from an allocator, so that it may be read and freed.
fn is_allocated(address: usize) -> bool {
    // The allocator's own words stand before the string.
    let Some(block) = address.checked_sub(ALIGNMENT) else { return false };
    address.is_multiple_of(ALIGNMENT)
        && block >= PAGE
        && is_mapped(block / PAGE)
        && is_mapped(address / PAGE)
        && !is_in_a_library(address)
}

fn is_mapped(page: usize) -> bool {
    let mut residence = 0;
    // SAFETY: the address is a page's; one that is not mapped gives ENOMEM (mincore(2)).
    unsafe { libc::mincore((page * PAGE) as *mut c_void, 1, &raw mut residence) == 0 }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn names_are_freed_once_and_what_is_none_is_left_alone() {
        // SAFETY: a C string.
        let name = unsafe { libc::strdup(c"kernel".as_ptr()) }.cast::<c_void>();
        let not_allocated = [0, 8, 16, 4096, 1 << 46, usize::MAX & !15];
        let mut names: Vec<*mut c_void> =
            not_allocated.iter().map(|address| ptr::without_provenance_mut(*address)).collect();
        names.extend([name, name]);
        static OF_A_LIBRARY: [u8; 64] = [0; 64];
        let aligned = (OF_A_LIBRARY.as_ptr() as usize).next_multiple_of(ALIGNMENT);
        names.push(ptr::without_provenance_mut(aligned));
        // SAFETY: the one that is allocated is nobody else's.
        unsafe { free(names) };
    }
}
