//! Texts: passed over eight bytes at a time, copied only where an escape has to be undone.

use std::borrow::Cow;

type Scanned<'a> = Result<(Cow<'a, str>, usize), (&'static str, usize)>;

const UNENDED: &str = "the string does not end";
const CONTROL: &str = "a control character has to be escaped";

/// A text that is more than plain bytes up to a quote: the text that `rest` begins with (its opening
/// quote already taken) and the number of bytes up to and with its closing quote; or what is wrong,
/// and behind how many bytes.
#[cold]
pub(super) fn scan(rest: &str) -> Scanned<'_> {
    let at = plain(rest.as_bytes());
    match rest.as_bytes().get(at) {
        Some(b'"') => Ok((Cow::Borrowed(rest.get(..at).unwrap_or_default()), at + 1)),
        Some(b'\\') => escaped(rest, at),
        Some(_) => Err((CONTROL, at)),
        None => Err((UNENDED, rest.len())),
    }
}

/// How many bytes stand before the first quote, backslash or control character.
#[inline]
pub(super) fn plain(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((word, behind)) = rest.split_first_chunk() {
        let found = special(u64::from_le_bytes(*word));
        if found != 0 {
            return bytes.len() - rest.len() + found.trailing_zeros() as usize / 8;
        }
        rest = behind;
    }
    let is_plain = |byte: &&u8| **byte >= 0x20 && !matches!(**byte, b'"' | b'\\');
    bytes.len() - rest.len() + rest.iter().take_while(is_plain).count()
}

/// The high bit of each byte that is a quote, a backslash or a control character. Bytes above the
/// lowest such byte may be marked too.
fn special(word: u64) -> u64 {
    const fn all(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    // Turning the second bit makes a quote, 0x22, a 0x20 and keeps control characters among them.
    let quote_or_control = (word ^ all(0x02)).wrapping_sub(all(0x21));
    let backslash = (word ^ all(b'\\')).wrapping_sub(all(0x01));
    // Subtracting borrows from the high bit of a byte that is smaller, unless the bit was set.
    (quote_or_control | backslash) & !word & all(0x80)
}

/// A text with at least one escape, the first of which stands at `at`.
fn escaped(rest: &str, mut at: usize) -> Scanned<'_> {
    let bytes = rest.as_bytes();
    let mut text = rest.get(..at).unwrap_or_default().to_owned();
    loop {
        match bytes.get(at) {
            None => return Err((UNENDED, bytes.len())),
            Some(b'"') => return Ok((Cow::Owned(text), at + 1)),
            Some(b'\\') => {
                let (letter, length) = escape(bytes, at)?;
                text.push(letter);
                at += length;
            }
            Some(_) => {
                let length = plain(bytes.get(at..).unwrap_or_default());
                if length == 0 {
                    return Err((CONTROL, at));
                }
                text.push_str(rest.get(at..at + length).unwrap_or_default());
                at += length;
            }
        }
    }
}

/// The letter that the escape at `at` means, and the escape's length.
fn escape(bytes: &[u8], at: usize) -> Result<(char, usize), (&'static str, usize)> {
    let letter = match bytes.get(at + 1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(bytes, at),
        Some(_) => return Err(("this escape has no meaning", at)),
        None => return Err((UNENDED, bytes.len())),
    };
    Ok((letter, 2))
}

fn unicode(bytes: &[u8], at: usize) -> Result<(char, usize), (&'static str, usize)> {
    let unit = hex4(bytes, at + 2)?;
    let is_high = (0xd800..0xdc00).contains(&unit);
    if is_high && bytes.get(at + 6) == Some(&b'\\') && bytes.get(at + 7) == Some(&b'u') {
        let low = hex4(bytes, at + 8)?;
        if (0xdc00..0xe000).contains(&low) {
            let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            return char::from_u32(code).map(|letter| (letter, 12)).ok_or((HALF, at));
        }
    }
    if is_high && bytes.len() < at + 12 && bytes.get(at + 6).is_none_or(|byte| *byte == b'\\') {
        return Err((UNENDED, bytes.len()));
    }
    char::from_u32(unit).map(|letter| (letter, 6)).ok_or((HALF, at))
}

const HALF: &str = "half of a surrogate pair is no character";

fn hex4(bytes: &[u8], at: usize) -> Result<u32, (&'static str, usize)> {
    let mut unit = 0;
    for place in at..at + 4 {
        let Some(byte) = bytes.get(place) else {
            return Err((UNENDED, bytes.len()));
        };
        let Some(digit) = char::from(*byte).to_digit(16) else {
            return Err(("four hexadecimal digits were expected", place));
        };
        unit = unit * 16 + digit;
    }
    Ok(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn plain_bytes_end_at_a_quote_a_backslash_or_a_control_character(
            bytes in prop::collection::vec(prop_oneof![6 => b'!'..=0xff, 1 => any::<u8>()], 0..40),
        ) {
            let is_special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
            let expected = bytes.iter().position(is_special).unwrap_or(bytes.len());
            prop_assert_eq!(plain(&bytes), expected);
        }
    }

    #[test]
    fn every_byte_is_told_from_the_others_at_every_place() {
        for byte in 0..=u8::MAX {
            for place in 0..9 {
                let mut bytes = [b'a'; 9];
                bytes[place] = byte;
                let is_special = byte < 0x20 || matches!(byte, b'"' | b'\\');
                assert_eq!(plain(&bytes), if is_special { place } else { 9 }, "{byte} at {place}");
            }
        }
    }
}
