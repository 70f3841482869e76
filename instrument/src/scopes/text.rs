//! Texts of a program, as it hands them over: bytes or wide characters up to a zero.
#![allow(unsafe_code, reason = "texts are pointers to us")]

use std::ffi::{c_char, c_int};

use nix::libc;

use super::skipped::{Reason, count};
use crate::names::{MAX_NAME_BYTES, NameId};

/// `wchar_t` on Linux.
pub type WideCharacter = c_int;

/// The number of a text's name; none, and counted, where there is no text. Of a long text no more is
/// read than is kept.
///
/// # Safety
/// `text` is null or ends in a zero.
pub unsafe fn name_of_text(text: *const c_char) -> NameId {
    if text.is_null() {
        count(Reason::Malformed);
        return NameId::NONE;
    }
    // SAFETY: not null; reads up to the zero and no further than the limit.
    let length = unsafe { libc::strnlen(text, MAX_NAME_BYTES + 1) };
    // SAFETY: so many bytes were just read.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    super::intern(bytes)
}

/// The same for wide characters; what is none becomes U+FFFD.
///
/// # Safety
/// `text` is null or ends in a zero.
pub unsafe fn name_of_wide_text(text: *const WideCharacter) -> NameId {
    if text.is_null() {
        count(Reason::Malformed);
        return NameId::NONE;
    }
    // One character more than is kept: what is longer is cut, and counted, where all names are.
    let mut bytes = [0; MAX_NAME_BYTES + 4];
    let mut length = 0;
    let mut next = text;
    while length <= MAX_NAME_BYTES {
        // SAFETY: no zero has come yet; nobody promises the alignment.
        let wide = unsafe { next.read_unaligned() };
        if wide == 0 {
            break;
        }
        // SAFETY: what follows a character that is no zero is another one.
        next = unsafe { next.add(1) };
        let character = u32::try_from(wide).ok().and_then(char::from_u32);
        let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
        let Some(place) = bytes.get_mut(length..length + character.len_utf8()) else { break };
        length += character.encode_utf8(place).len();
    }
    super::intern(bytes.get(..length).unwrap_or_default())
}

/// As much of a name as is kept: no character of UTF-8 is cut in two.
pub(super) fn cut(name: &[u8]) -> &[u8] {
    let is_continuation = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let mut end = MAX_NAME_BYTES;
    while end > MAX_NAME_BYTES - 3 && name.get(end).is_some_and(is_continuation) {
        end -= 1;
    }
    name.get(..end).filter(|_| name.len() > MAX_NAME_BYTES).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::NAMES;

    fn written(name: NameId) -> String {
        let mut text = Vec::new();
        assert!(NAMES.copy(name, &mut text));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_long_name_is_cut_between_two_characters() {
        assert_eq!(cut(b"short"), b"short");
        assert_eq!(cut(&[b'a'; MAX_NAME_BYTES]), [b'a'; MAX_NAME_BYTES]);
        let text = "a".to_owned() + &"\u{e9}".repeat(MAX_NAME_BYTES);
        let kept = std::str::from_utf8(cut(text.as_bytes())).unwrap();
        assert_eq!(kept.len(), MAX_NAME_BYTES - 1);
        let no_text = [0x80; 2 * MAX_NAME_BYTES];
        assert!(cut(&no_text).len() <= MAX_NAME_BYTES);
    }

    #[test]
    fn wide_characters_become_the_name_that_narrow_ones_give() {
        let wide: Vec<WideCharacter> =
            "d\u{e9}j\u{e0} \u{1f525}\0".chars().map(|c| c as i32).collect();
        // SAFETY: both end in a zero.
        let from_wide = unsafe { name_of_wide_text(wide.as_ptr()) };
        let narrow = c"d\u{e9}j\u{e0} \u{1f525}".as_ptr();
        // SAFETY: as above.
        assert_eq!(from_wide, unsafe { name_of_text(narrow) });
        let broken = [i32::from(b'a'), -1, 0xd800, i32::from(b'b'), 0];
        // SAFETY: as above.
        let name = unsafe { name_of_wide_text(broken.as_ptr()) };
        assert_eq!(written(name), "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn no_more_is_read_of_a_text_than_is_kept() {
        // No zero comes: a checker of memory sees a read beyond.
        let text = [b'x'; MAX_NAME_BYTES + 1];
        // SAFETY: the limit is reached before the end.
        let name = unsafe { name_of_text(text.as_ptr().cast()) };
        assert_eq!(written(name).len(), MAX_NAME_BYTES);
        let wide = [i32::from(b'x'); MAX_NAME_BYTES + 1];
        // SAFETY: as above.
        assert_eq!(unsafe { name_of_wide_text(wide.as_ptr()) }, name);
    }
}
