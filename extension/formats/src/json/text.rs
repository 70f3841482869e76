//! Texts: found with two byte searches, copied only where an escape has to be undone.

use std::borrow::Cow;

use memchr::memchr2;

type Scanned<'a> = Result<(Cow<'a, str>, usize), (&'static str, usize)>;

/// The text that `rest` begins with (its opening quote already taken), and the number of bytes up
/// to and with its closing quote; or what is wrong, and behind how many bytes.
pub(super) fn scan(rest: &str) -> Scanned<'_> {
    let bytes = rest.as_bytes();
    let Some(at) = memchr2(b'"', b'\\', bytes) else {
        return Err(("the string does not end", bytes.len()));
    };
    let head = rest.get(..at).unwrap_or_default();
    no_control_characters(head, 0)?;
    if bytes.get(at) == Some(&b'"') {
        return Ok((Cow::Borrowed(head), at + 1));
    }
    escaped(rest, at)
}

/// A text with at least one escape, the first of which stands at `at`.
#[cold]
fn escaped(rest: &str, mut at: usize) -> Scanned<'_> {
    let bytes = rest.as_bytes();
    let mut text = rest.get(..at).unwrap_or_default().to_owned();
    loop {
        match bytes.get(at) {
            None => return Err(("the string does not end", bytes.len())),
            Some(b'"') => return Ok((Cow::Owned(text), at + 1)),
            Some(b'\\') => {
                let (letter, length) = escape(bytes, at)?;
                text.push(letter);
                at += length;
            }
            Some(_) => {
                let tail = bytes.get(at..).unwrap_or_default();
                let length = memchr2(b'"', b'\\', tail).unwrap_or(tail.len());
                let piece = rest.get(at..at + length).unwrap_or_default();
                no_control_characters(piece, at)?;
                text.push_str(piece);
                at += length;
            }
        }
    }
}

fn no_control_characters(piece: &str, at: usize) -> Result<(), (&'static str, usize)> {
    // Without an early end the loop runs over many bytes at once.
    if !piece.bytes().fold(false, |found, byte| found | (byte < 0x20)) {
        return Ok(());
    }
    let before = piece.bytes().take_while(|byte| *byte >= 0x20).count();
    Err(("a control character has to be escaped", at + before))
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
        None => return Err(("the string does not end", bytes.len())),
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
        return Err(("the string does not end", bytes.len()));
    }
    char::from_u32(unit).map(|letter| (letter, 6)).ok_or((HALF, at))
}

const HALF: &str = "half of a surrogate pair is no character";

fn hex4(bytes: &[u8], at: usize) -> Result<u32, (&'static str, usize)> {
    let mut unit = 0;
    for place in at..at + 4 {
        let Some(byte) = bytes.get(place) else {
            return Err(("the string does not end", bytes.len()));
        };
        let Some(digit) = char::from(*byte).to_digit(16) else {
            return Err(("four hexadecimal digits were expected", place));
        };
        unit = unit * 16 + digit;
    }
    Ok(unit)
}
