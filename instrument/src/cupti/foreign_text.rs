//! Text at an address that may be none.
//!
//! A name that comes with a record is CUPTI's; other tools have met pointers that were not valid.
//! The kernel copies from an address without harm (process_vm_readv(2)) and says where it cannot.
#![allow(unsafe_code, reason = "libc takes addresses")]

use nix::libc;

const PAGE: usize = 4096;

/// Copies the C string at an address into `text` and gives its length, at most that of `text`.
/// `None` where nothing is mapped there, or where this process may not ask.
pub(super) fn read_foreign(address: usize, text: &mut [u8]) -> Option<usize> {
    let mut length = 0;
    while length < text.len() {
        let from = address.checked_add(length)?;
        // Up to the end of a page: the next one may not be there.
        let bytes = (PAGE - from % PAGE).min(text.len() - length);
        let part = text.get_mut(length..length + bytes)?;
        if from < PAGE || !copy(from, part) {
            return None;
        }
        if let Some(end) = part.iter().position(|byte| *byte == 0) {
            return Some(length + end);
        }
        length += bytes;
    }
    Some(length)
}

fn copy(from: usize, to: &mut [u8]) -> bool {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = libc::iovec { iov_base: from as *mut _, iov_len: to.len() };
    let pid = std::process::id().cast_signed();
    // SAFETY: the local part may be written; of the remote part the kernel finds out.
    let copied =
        unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(copied) == Ok(to.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_to_its_end_or_to_the_limit_and_a_wrong_address_is_none() {
        let mut text = [0; 16];
        let read = |text: &mut [u8], address: usize| {
            read_foreign(address, text).map(|bytes| text[..bytes].to_vec())
        };
        assert_eq!(read(&mut text, c"saxpy".as_ptr() as usize).unwrap(), b"saxpy");
        let long = [b'x'; 3 * PAGE];
        assert_eq!(read(&mut text, long.as_ptr() as usize).unwrap(), [b'x'; 16]);
        for address in [0, 8, PAGE - 1, 1 << 46, usize::MAX - 3, usize::MAX] {
            assert_eq!(read(&mut text, address), None, "{address:#x}");
        }
    }
}
