//! Mends texts whose inner quotes were escaped with a slash.
//!
//! ```text
//! "note": "say /"hi/"",        what Kineto writes for the metadata  say "hi"
//!              ↑    ↑          these become \"
//!                    └─ this one ends the text: a comma and a new member follow
//! ```
//!
//! Kineto turns every backslash of a text into a slash, also those before its inner quotes. A quote
//! behind a slash is taken for an inner one unless what follows can only follow a text's end: a
//! colon, a closing bracket, or a comma before another value. A text that truly ends in a slash
//! (`"path": "/tmp/",`) is thereby left alone. Where an inner quote is itself followed by such a
//! character the two cannot be told apart, and the document stays as it is.

use std::io::{self, Read};

/// Bytes behind a quote that are looked at. Kineto indents by some ten blanks.
const AHEAD: usize = 256;
const CHUNK: usize = 64 << 10;

/// Gives the bytes of `input` with such quotes mended. Right JSON passes as it is, unless one of its
/// texts ends in a slash before something that cannot follow a text, which right JSON has not.
#[derive(Debug)]
pub struct Repaired<R> {
    input: R,
    waiting: Vec<u8>,
    /// Bytes of `waiting` that have been handed out.
    at: usize,
    at_end: bool,
    in_text: bool,
    /// Whether the next byte is escaped.
    escaped: bool,
    mended: u64,
}

impl<R: Read> Repaired<R> {
    /// Mends what `input` gives.
    pub fn new(input: R) -> Self {
        Self {
            input,
            waiting: vec![],
            at: 0,
            at_end: false,
            in_text: false,
            escaped: false,
            mended: 0,
        }
    }

    /// How many quotes have been mended.
    #[must_use]
    pub fn mended(&self) -> u64 {
        self.mended
    }

    /// Holds at least [`AHEAD`] bytes, or all that are left.
    fn fill(&mut self) -> io::Result<()> {
        while !self.at_end && self.waiting.len() - self.at <= AHEAD {
            self.waiting.drain(..self.at);
            self.at = 0;
            let count = (&mut self.input).take(CHUNK as u64).read_to_end(&mut self.waiting)?;
            self.at_end = count == 0;
        }
        Ok(())
    }

    /// The next byte as it should stand.
    fn next(&mut self) -> Option<u8> {
        let rest = self.waiting.get(self.at..).unwrap_or_default();
        let (byte, rest) = rest.split_first()?;
        self.at += 1;
        if std::mem::take(&mut self.escaped) {
            return Some(*byte);
        }
        match byte {
            b'"' => self.in_text = !self.in_text,
            b'\\' => self.escaped = self.in_text,
            b'/' if self.in_text && is_inner_quote(rest) => {
                self.escaped = true;
                self.mended += 1;
                return Some(b'\\');
            }
            _ => {}
        }
        Some(*byte)
    }
}

/// Whether these bytes, which follow a slash within a text, begin with a quote that does not end it.
fn is_inner_quote(bytes: &[u8]) -> bool {
    bytes.split_first().is_some_and(|(byte, behind)| *byte == b'"' && !ends_text(behind))
}

/// Whether a quote before these bytes can be the end of a text.
fn ends_text(behind: &[u8]) -> bool {
    let mut bytes = behind.iter().take(AHEAD).filter(|byte| !byte.is_ascii_whitespace());
    match bytes.next() {
        None | Some(b':' | b'}' | b']') => true,
        Some(b',') => matches!(
            bytes.next(),
            None | Some(b'"' | b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n')
        ),
        Some(_) => false,
    }
}

impl<R: Read> Read for Repaired<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        for slot in into {
            if self.waiting.len() - self.at <= AHEAD && !self.at_end {
                if count > 0 {
                    break;
                }
                self.fill()?;
            }
            let Some(byte) = self.next() else { break };
            *slot = byte;
            count += 1;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mend(text: &str) -> (String, u64) {
        let mut repaired = Repaired::new(text.as_bytes());
        let mut mended = String::new();
        repaired.read_to_string(&mut mended).unwrap();
        (mended, repaired.mended())
    }

    #[test]
    fn inner_quotes_behind_a_slash_are_escaped() {
        let (mended, count) = mend("{\n \"note\": \"say /\"hi/\"\",\n \"b\": [\"/\"x/\"\", 1]}");
        assert_eq!(mended, "{\n \"note\": \"say \\\"hi\\\"\",\n \"b\": [\"\\\"x\\\"\", 1]}");
        assert_eq!(count, 4);
    }

    #[test]
    fn a_text_that_ends_in_a_slash_is_left_alone() {
        for right in
            ["{\"path\": \"/tmp/\",\n  \"n/\": 1}", "[\"a/\", \"/\"]", "[\"\\\\/\", \"\\\"\"]"]
        {
            assert_eq!(mend(right), (right.to_owned(), 0));
        }
    }

    proptest! {
        #[test]
        fn right_json_passes_as_it_is(texts in prop::collection::vec("[/\"\\\\, a\n]{0,6}", 0..8)) {
            let right = serde_json::to_string(&texts).unwrap();
            // `/\"` within a text: the escape belongs to the quote, the slash to nobody.
            prop_assert_eq!(mend(&right), (right, 0));
        }
    }
}
