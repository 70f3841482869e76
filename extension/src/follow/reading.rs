//! Reads the lines of one file behind its cursor.

use std::time::Instant;

use memchr::memchr;
use warpgauge_formats::lines::{LONGEST_LINE, Line};

use super::assign::unreadable;
use super::content::Content;
use super::cursors::Cursor;
use super::discover::{Found, NotOpened};
use super::fingerprint::Ends;
use super::{FileId, Flow};

/// What is read at a time, in bytes.
const BLOCK: usize = 256 << 10;

/// Bytes of a line that is too long, for a message.
const SHOWN: usize = 64;

/// What may be read, and of whom.
pub(super) struct Turn<'t> {
    pub(super) file: &'t FileId,
    pub(super) found: &'t Found,
    /// What the file must begin with, where nothing of it has been taken.
    pub(super) head: &'t [u8],
    /// Bytes; a single line is always read to its end.
    pub(super) budget: u64,
    pub(super) deadline: Instant,
    /// When the files were looked at, nanoseconds since the epoch.
    pub(super) now_ns: u64,
    /// Whether nobody will end the last line any more.
    pub(super) is_final: bool,
}

/// Why reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// There is no further line now.
    Drained,
    /// There may be more.
    Budget,
    /// [`Flow::WaitHere`].
    Waits,
    /// [`Flow::Stop`].
    Stopped,
}

/// One file while it is read.
struct Reading<'r, 't> {
    cursor: &'r mut Cursor,
    ends: Ends,
    turn: &'r Turn<'t>,
    /// Bytes behind the cursor.
    buffer: Vec<u8>,
    /// How many of them have been taken.
    start: usize,
    lines: u64,
}

/// Hands on the lines behind the cursor and moves it.
pub(super) fn read(
    turn: &Turn<'_>,
    cursor: &mut Cursor,
    take: &mut dyn FnMut(&FileId, Line<'_>) -> Flow,
) -> Result<Ended, NotOpened> {
    let (file, state) = turn.found.open()?;
    let mut content = Content::new(file, turn.found.is_packed);
    let (ends, length) = content.ends(cursor.offset).map_err(|fault| unreadable(&fault))?;
    if length != cursor.offset || !cursor.is_behind(&ends) {
        return Err(NotOpened::Vanished);
    }
    if cursor.offset == 0 && !turn.found.is_packed {
        let head = content.stretch(0, turn.head.len()).map_err(|fault| unreadable(&fault))?;
        if head != turn.head {
            return Err(NotOpened::Vanished);
        }
    }
    let mut reading = Reading { cursor, ends, turn, buffer: Vec::new(), start: 0, lines: 0 };
    let ended = reading.run(&mut content, take);
    let Reading { cursor, ends, .. } = reading;
    cursor.take_ends(&ends);
    cursor.drained = match ended {
        Ok(Ended::Drained) => Some((state.size, state.modified_ns)),
        _ => None,
    };
    cursor.drained_at_ns = turn.now_ns;
    ended
}

impl Reading<'_, '_> {
    fn run(
        &mut self,
        content: &mut Content,
        take: &mut dyn FnMut(&FileId, Line<'_>) -> Flow,
    ) -> Result<Ended, NotOpened> {
        let mut read = 0;
        loop {
            if let Some(ended) = self.whole_lines(take) {
                return Ok(ended);
            }
            let is_late = read >= self.turn.budget || Instant::now() >= self.turn.deadline;
            if is_late && (self.lines > 0 || read > LONGEST_LINE as u64) {
                return Ok(Ended::Budget);
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            let filled = self.buffer.len();
            let position = self.cursor.offset + filled as u64;
            self.buffer.resize(filled + BLOCK, 0);
            let free = self.buffer.get_mut(filled..).unwrap_or_default();
            let count = content.read_at(free, position).map_err(|fault| unreadable(&fault))?;
            self.buffer.truncate(filled + count);
            read += count as u64;
            // Cut off or overwritten meanwhile: what was just read may be of another content.
            if !self.still_begins(content, position) {
                return Err(NotOpened::Vanished);
            }
            if position == 0 && !self.buffer.starts_with(self.turn.head) {
                return Err(NotOpened::Vanished);
            }
            if count == 0 {
                return Ok(self.last_line(take));
            }
        }
    }

    fn still_begins(&self, content: &mut Content, position: u64) -> bool {
        let Content::Plain(file) = &*content else { return true };
        file.metadata().is_ok_and(|metadata| metadata.len() >= position)
            && content.stretch(0, self.ends.head.len()).is_ok_and(|head| head == self.ends.head)
    }

    /// Hands on every line that has its end.
    fn whole_lines(&mut self, take: &mut dyn FnMut(&FileId, Line<'_>) -> Flow) -> Option<Ended> {
        loop {
            self.pass_over_nuls();
            let waiting = self.buffer.get(self.start..).unwrap_or_default();
            match memchr(b'\n', waiting) {
                Some(at) => {
                    if let Some(ended) = self.hand_on(at, 1, false, take) {
                        return Some(ended);
                    }
                }
                None if self.cursor.in_long_line => {
                    let length = waiting.len();
                    self.consume(length);
                    return None;
                }
                None if waiting.len() > LONGEST_LINE => {
                    let length = waiting.len();
                    return self.hand_on(length, 0, true, take);
                }
                None => return None,
            }
        }
    }

    /// The rest of the file, behind which there is no newline.
    fn last_line(&mut self, take: &mut dyn FnMut(&FileId, Line<'_>) -> Flow) -> Ended {
        let length = self.buffer.len() - self.start;
        if length > 0 && self.turn.is_final {
            return self.hand_on(length, 0, false, take).unwrap_or(Ended::Drained);
        }
        Ended::Drained
    }

    /// Who writes on at its old place after the file was cut off leaves a hole of NULs at the
    /// beginning of a line. It is no text.
    fn pass_over_nuls(&mut self) {
        if !self.cursor.in_long_line {
            let waiting = self.buffer.get(self.start..).unwrap_or_default();
            let nuls = waiting.iter().take_while(|byte| **byte == 0).count();
            self.consume(nuls);
        }
    }

    /// Hands on `length` bytes as a line, behind which `newline` bytes end it.
    fn hand_on(
        &mut self,
        length: usize,
        newline: usize,
        too_long: bool,
        take: &mut dyn FnMut(&FileId, Line<'_>) -> Flow,
    ) -> Option<Ended> {
        let is_end_of_long_line = std::mem::take(&mut self.cursor.in_long_line);
        if !is_end_of_long_line {
            let mut bytes = self.buffer.get(self.start..self.start + length).unwrap_or_default();
            let too_long = too_long || length > LONGEST_LINE;
            if too_long {
                bytes = bytes.get(..SHOWN).unwrap_or_default();
            } else {
                bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
            }
            if self.cursor.offset == 0 {
                bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            }
            let (number, offset) = (self.cursor.lines + 1, self.cursor.offset);
            let line = Line { number, offset, bytes, ended: newline == 1, too_long };
            match take(self.turn.file, line) {
                Flow::Next => {}
                Flow::WaitHere => return Some(Ended::Waits),
                Flow::Stop => return Some(Ended::Stopped),
            }
            self.cursor.lines += 1;
            self.lines += 1;
        }
        self.consume(length + newline);
        self.cursor.in_long_line = too_long;
        None
    }

    fn consume(&mut self, count: usize) {
        let bytes = self.buffer.get(self.start..self.start + count).unwrap_or_default();
        self.ends.extend(bytes);
        self.start += count;
        self.cursor.offset += count as u64;
    }
}
