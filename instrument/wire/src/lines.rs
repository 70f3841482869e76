//! Cuts a stream of chunks into lines, in bounded memory.
//!
//! ```text
//! chunk 1            chunk 2
//! 1:50\n4:100\n1:7 | 5\n0:12            lines: "1:50" "4:100" "1:75" "0:12"
//!              ^^^ kept until the rest of its line arrives, at most 256 bytes
//! ```

use crate::limits::MAX_LINE_BYTES;
use crate::measurement::{LineFault, Measurement, parse_line};

/// Reads measurement lines out of chunks of any size.
#[derive(Debug, Default)]
pub struct LineReader {
    /// The beginning of a line whose end has not arrived; cut after one byte too many, which is
    /// all that is needed to refuse it.
    torn: Vec<u8>,
    lines: u64,
}

impl LineReader {
    /// A reader at the start of a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the reader ready for the next file, keeping its buffer.
    pub fn reset(&mut self) {
        self.torn.clear();
        self.lines = 0;
    }

    /// Takes the next chunk. `each` is called for every complete line that is not blank, with its
    /// number (from 1) and what it says.
    pub fn push(
        &mut self,
        mut chunk: &[u8],
        mut each: impl FnMut(u64, Result<Measurement, LineFault>),
    ) {
        while let Some(end) = find_newline(chunk) {
            let (line, rest) = chunk.split_at(end);
            chunk = rest.get(1..).unwrap_or_default();
            self.lines += 1;
            if self.torn.is_empty() {
                emit(self.lines, line, &mut each);
            } else {
                self.keep(line);
                emit(self.lines, &self.torn, &mut each);
                self.torn.clear();
            }
        }
        self.keep(chunk);
    }

    /// Takes the end of the file: a last line without newline counts like any other.
    pub fn finish(&mut self, mut each: impl FnMut(u64, Result<Measurement, LineFault>)) {
        if !self.torn.is_empty() {
            self.lines += 1;
            emit(self.lines, &self.torn, &mut each);
        }
        self.reset();
    }

    fn keep(&mut self, part: &[u8]) {
        let room = (MAX_LINE_BYTES + 1).saturating_sub(self.torn.len());
        self.torn.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
    }
}

fn emit(number: u64, line: &[u8], each: &mut impl FnMut(u64, Result<Measurement, LineFault>)) {
    match parse_line(line) {
        Ok(None) => {}
        Ok(Some(measurement)) => each(number, Ok(measurement)),
        Err(fault) => each(number, Err(fault)),
    }
}

/// Lines are a few bytes long, so a vectorised search does not pay for its start-up; eight bytes at
/// a time do. The lowest flag set in `zeros` marks the first byte that is no different from a
/// newline (Warren, "Hacker's Delight", 6-1).
fn find_newline(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = bytes.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let difference = u64::from_le_bytes(*word) ^ (ONES * b'\n' as u64);
        let zeros = difference.wrapping_sub(ONES) & !difference & (ONES << 7);
        if zeros != 0 {
            return Some(index * size_of::<u64>() + zeros.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|&byte| byte == b'\n')?;
    Some(words.len() * size_of::<u64>() + at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Read = Vec<(u64, Result<Measurement, LineFault>)>;

    fn read(chunks: &[&[u8]]) -> Read {
        let mut out = Vec::new();
        let mut reader = LineReader::new();
        for chunk in chunks {
            reader.push(chunk, |number, line| out.push((number, line)));
        }
        reader.finish(|number, line| out.push((number, line)));
        out
    }

    #[test]
    fn line_numbers_count_blank_lines_too() {
        let out = read(&[b"\n1:50\n\r\n1:x"]);
        assert_eq!(out.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(out[1].1, Err(LineFault::NotANumber));
    }

    #[test]
    fn an_endless_line_is_refused_once_in_bounded_memory() {
        let mut reader = LineReader::new();
        let mut seen = Vec::new();
        for _ in 0..1_000 {
            reader.push(&[b'1'; 4_096], |number, line| seen.push((number, line)));
        }
        assert!(reader.torn.capacity() < 4_096);
        reader.push(b"\n1:50\n", |number, line| seen.push((number, line)));
        assert_eq!(seen[0], (1, Err(LineFault::TooLong)));
        assert!(seen[1].1.is_ok());
    }

    proptest! {
        #[test]
        fn the_first_newline_is_found_among_bytes_that_resemble_it(
            bytes in proptest::collection::vec(proptest::sample::select(&b"\n\x0b\x8a\x00\xff"[..]), 0..40),
        ) {
            prop_assert_eq!(find_newline(&bytes), bytes.iter().position(|&byte| byte == b'\n'));
        }

        #[test]
        fn where_the_chunks_are_cut_changes_nothing(
            text in "([0-9]{1,2}:[0-9]{1,3}\r?\n| \n|x){0,40}",
            cuts in proptest::collection::vec(0_usize..200, 0..6),
        ) {
            let whole = read(&[text.as_bytes()]);
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&chunks), whole);
        }
    }
}
