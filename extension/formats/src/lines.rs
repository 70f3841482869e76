//! Lines of a stream, one buffer for all.

use std::io::{self, Read};

use memchr::memchr;

/// Longest line that is read; longer ones are passed over and named. A batch of 2,048 rows is a
/// tenth of a megabyte.
pub const LONGEST_LINE: usize = 4 << 20;

const FIRST_BUFFER: usize = 256 << 10;

/// One line, without its newline and without the carriage return before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Counted from 1.
    pub number: u64,
    /// Bytes of the stream before the line.
    pub offset: u64,
    /// The line's bytes; without a byte order mark where it is the first.
    pub bytes: &'a [u8],
    /// Whether a newline ended it. The last line of a log that is still being written has none.
    pub ended: bool,
    /// Whether the line is longer than [`LONGEST_LINE`]; `bytes` then holds its beginning.
    pub too_long: bool,
}

/// Cuts a stream into lines.
///
/// Memory: one buffer of 256 KiB, which grows to the longest line, at most [`LONGEST_LINE`].
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// The part of `buffer` that is filled and not yet handed out.
    start: usize,
    end: usize,
    offset: u64,
    number: u64,
    at_end: bool,
}

impl<R: Read> Lines<R> {
    /// The lines of `input`.
    pub fn new(input: R) -> Self {
        Self::continued(input, 0, 0)
    }

    /// The lines of an input that begins behind `offset` bytes and `lines` lines.
    pub fn continued(input: R, offset: u64, lines: u64) -> Self {
        let buffer = vec![0; FIRST_BUFFER];
        Self { input, buffer, start: 0, end: 0, offset, number: lines, at_end: false }
    }

    /// The next line, or `None` at the end.
    ///
    /// # Errors
    /// What the input answers; an interrupted read is tried again.
    #[expect(clippy::should_implement_trait, reason = "a line borrows from the buffer")]
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        loop {
            let waiting = self.buffer.get(self.start..self.end).unwrap_or_default();
            let unsearched = waiting.get(searched..).unwrap_or_default();
            if let Some(at) = memchr(b'\n', unsearched) {
                return Ok(Some(self.take(searched + at, 1, false)));
            }
            searched = waiting.len();
            if searched >= LONGEST_LINE {
                return self.pass_over().map(Some);
            }
            if self.at_end {
                return Ok((searched > 0).then(|| self.take(searched, 0, false)));
            }
            self.fill()?;
        }
    }

    /// Hands out `length` bytes, behind which `newline` more end the line.
    fn take(&mut self, length: usize, newline: usize, too_long: bool) -> Line<'_> {
        let (start, offset) = (self.start, self.offset);
        self.start += length + newline;
        self.offset += (length + newline) as u64;
        self.number += 1;
        let mut bytes = self.buffer.get(start..start + length).unwrap_or_default();
        bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if offset == 0 {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        Line { number: self.number, offset, bytes, ended: newline == 1, too_long }
    }

    /// Drops the rest of a line that is too long; keeps its beginning for the message.
    fn pass_over(&mut self) -> io::Result<Line<'_>> {
        const KEPT: usize = 64;
        let (offset, mut dropped) = (self.offset, 0);
        let mut head = [0; KEPT];
        if let Some(beginning) = self.buffer.get(self.start..self.start + KEPT) {
            head.copy_from_slice(beginning);
        }
        let ended = loop {
            let waiting = self.buffer.get(self.start..self.end).unwrap_or_default();
            if let Some(at) = memchr(b'\n', waiting) {
                self.start += at + 1;
                dropped += at + 1;
                break true;
            }
            dropped += waiting.len();
            self.start = self.end;
            if self.at_end {
                break false;
            }
            self.fill()?;
        };
        self.offset += dropped as u64;
        self.number += 1;
        // What lies before `start` has been handed out, so that its place is free.
        let kept = self.buffer.get_mut(..KEPT.min(self.start)).unwrap_or_default();
        kept.copy_from_slice(head.get(..kept.len()).unwrap_or_default());
        Ok(Line { number: self.number, offset, bytes: kept, ended, too_long: true })
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let free = self.buffer.get_mut(self.end..).unwrap_or_default();
        loop {
            match self.input.read(free) {
                Ok(0) => self.at_end = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives a few bytes at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(into.len());
            (&mut self.0).take(count as u64).read(into)
        }
    }

    fn all(bytes: &[u8], drip: usize) -> Vec<(u64, Vec<u8>, bool)> {
        let mut lines = Lines::new(Drip(bytes, drip));
        let mut all = vec![];
        while let Some(line) = lines.next().unwrap() {
            all.push((line.offset, line.bytes.to_vec(), line.ended));
        }
        all
    }

    proptest! {
        #[test]
        fn the_lines_are_those_between_newlines(
            text in "[ab\n\r]{0,200}", drip in 1..50_usize,
        ) {
            let lines = all(text.as_bytes(), drip);
            let expected: Vec<_> = text.split_inclusive('\n').map(|line| {
                let ended = line.ends_with('\n');
                let line = line.strip_suffix('\n').unwrap_or(line);
                (line.strip_suffix('\r').unwrap_or(line).as_bytes().to_vec(), ended)
            }).collect();
            let got: Vec<_> = lines.iter().map(|(_, line, ended)| (line.clone(), *ended)).collect();
            prop_assert_eq!(got, expected);
            for (offset, line, _) in lines {
                prop_assert!(text.as_bytes()[offset as usize..].starts_with(&line));
            }
        }
    }

    #[test]
    fn a_byte_order_mark_belongs_to_no_line() {
        assert_eq!(all(b"\xef\xbb\xbf{}\r\n\n", 2), [(0, b"{}".to_vec(), true), (7, vec![], true)]);
    }

    #[test]
    fn a_line_that_is_too_long_is_named_and_the_next_one_stands() {
        let mut text = vec![b'x'; LONGEST_LINE + 5];
        text.extend_from_slice(b"\nnext");
        let mut lines = Lines::new(&*text);
        let long = lines.next().unwrap().unwrap();
        assert!(long.too_long && long.ended && long.bytes.starts_with(b"xxx"));
        let next = lines.next().unwrap().unwrap();
        assert_eq!((next.number, next.bytes, next.too_long), (2, &b"next"[..], false));
        assert_eq!(next.offset, LONGEST_LINE as u64 + 6);
        assert!(lines.next().unwrap().is_none());
    }
}
