//! One JSON document that is larger than memory, walked key by key and item by item.
//!
//! ```text
//! input ── chunks ──> [ read | the item that is being read ...          ]
//!                            └─ from here a `Reader` runs; where its fault says `torn`, the next
//!                               chunk is appended and it runs again from here
//! ```
//!
//! Containers that may be of any size are walked with [`Stream::enter_object`],
//! [`Stream::next_key`], [`Stream::enter_array`] and [`Stream::next_item`]; what fits memory is read
//! whole by a closure over a [`Reader`], with [`Stream::value`].
//!
//! Memory: two buffers of 64 KiB, of which one grows to the longest value, at most [`LONGEST_VALUE`].

use std::io::{self, Read};

use memchr::{memchr_iter, memrchr};

use super::{Fault, Kind, Reader};

/// Longest value that is read whole. PyTorch's longest events, with their inputs' shapes and a call
/// stack, have some kilobytes.
pub const LONGEST_VALUE: usize = 16 << 20;

/// Bytes that are asked of the input at once.
const CHUNK: usize = 64 << 10;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A place in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// Counted from 1.
    pub line: u64,
    /// Bytes from the beginning of the line, counted from 1.
    pub column: u64,
    /// Bytes before the place.
    pub offset: u64,
}

impl std::fmt::Display for Position {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, column, offset } = self;
        write!(formatter, "line {line}, column {column} (byte {offset})")
    }
}

/// Why a document cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is no JSON.
    #[error("{position}: {what}")]
    Syntax {
        /// What stands there and what should.
        what: &'static str,
        /// Where.
        position: Position,
    },
    /// The document ends in its middle: its producer was stopped, or the copy was.
    #[error("{position}: the document ends here, but {what}")]
    CutOff {
        /// What should follow.
        what: &'static str,
        /// Where.
        position: Position,
    },
    /// A byte that belongs to no UTF-8 text.
    #[error("{position}: the text is not UTF-8")]
    NotUtf8 {
        /// Where.
        position: Position,
    },
    /// One value is longer than [`LONGEST_VALUE`].
    #[error("{position}: the value that begins here is longer than {} MiB", LONGEST_VALUE >> 20)]
    TooLong {
        /// Where the value begins.
        position: Position,
    },
    /// The input gave no more.
    #[error("{position}: reading on failed: {source}")]
    Input {
        /// Where.
        position: Position,
        /// What the input answered.
        source: io::Error,
    },
}

/// What walking gives.
pub type Result<T> = std::result::Result<T, Error>;

/// Walks over the one JSON document that an input holds.
#[derive(Debug)]
pub struct Stream<R> {
    input: R,
    text: String,
    /// Bytes of `text` that have been read.
    at: usize,
    /// What the readers that run over `text` know of the containers around it.
    depth: u32,
    fresh: bool,
    /// The first bytes of a character whose others the next chunk brings.
    partial: Vec<u8>,
    chunk: Vec<u8>,
    source: Source,
    counted: Counted,
}

/// Whether the input gives more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Nothing has been read yet: a byte order mark may come.
    Unread,
    Open,
    Ended,
    /// What follows is no UTF-8. Values before it are still good.
    Spoiled,
}

/// How far lines have been counted.
#[derive(Debug, Clone, Copy)]
struct Counted {
    /// Bytes of the document before the text in the buffer.
    before: u64,
    /// Bytes of the buffer's text up to which lines were counted.
    at: usize,
    line: u64,
    /// Offset of that line's first byte.
    line_start: u64,
}

impl<R: Read> Stream<R> {
    /// The document in `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            text: String::new(),
            at: 0,
            depth: 0,
            fresh: false,
            partial: vec![],
            chunk: vec![0; CHUNK],
            source: Source::Unread,
            counted: Counted { before: 0, at: 0, line: 1, line_start: 0 },
        }
    }

    /// Where the stream stands.
    pub fn position(&mut self) -> Position {
        self.counted.count(&self.text, self.at);
        self.counted.position(&self.text, self.at)
    }

    /// Goes to the next value and tells where it begins.
    ///
    /// # Errors
    /// Where none begins.
    pub fn value_position(&mut self) -> Result<Position> {
        self.peek()?;
        Ok(self.position())
    }

    /// What the next value is. Takes nothing but blanks.
    ///
    /// # Errors
    /// Where no value begins.
    pub fn peek(&mut self) -> Result<Kind> {
        self.step(|reader| reader.peek())
    }

    /// Enters an object.
    ///
    /// # Errors
    /// Where none begins, or it is nested too deep.
    pub fn enter_object(&mut self) -> Result<()> {
        self.step(|reader| reader.enter_object())
    }

    /// Enters an array.
    ///
    /// # Errors
    /// Where none begins, or it is nested too deep.
    pub fn enter_array(&mut self) -> Result<()> {
        self.step(|reader| reader.enter_array())
    }

    /// The next key of the object, behind whose colon the stream then stands; `None` where the
    /// object ends.
    ///
    /// # Errors
    /// Where neither a key nor the end stands.
    pub fn next_key(&mut self) -> Result<Option<String>> {
        self.step(|reader| Ok(reader.next_key()?.map(std::borrow::Cow::into_owned)))
    }

    /// Whether the array has another item, before which the stream then stands.
    ///
    /// # Errors
    /// Where neither a comma nor the end stands.
    pub fn next_item(&mut self) -> Result<bool> {
        self.step(|reader| reader.next_item())
    }

    /// Reads the next value whole.
    ///
    /// `parse` takes exactly that value. It runs again from the value's beginning where the buffer
    /// held only a part of it: until its last step has succeeded it must change nothing outside.
    ///
    /// # Errors
    /// What `parse` says; where the value ends with the document or is longer than
    /// [`LONGEST_VALUE`].
    pub fn value<T>(
        &mut self,
        parse: impl FnMut(&mut Reader<'_>) -> super::Result<T>,
    ) -> Result<T> {
        if self.peek()? == Kind::Number {
            self.hold_number()?;
        }
        self.step(parse)
    }

    /// The end of the document.
    ///
    /// # Errors
    /// Where anything but blanks is left.
    pub fn end(&mut self) -> Result<()> {
        loop {
            self.step(|reader| {
                reader.blanks();
                Ok(())
            })?;
            match self.source {
                _ if self.at < self.text.len() => return self.step(|reader| reader.end()),
                Source::Ended => return Ok(()),
                _ => self.more()?,
            }
        }
    }

    /// Runs `parse` from where the stream stands, with as much text as it needs.
    fn step<T>(&mut self, mut parse: impl FnMut(&mut Reader<'_>) -> super::Result<T>) -> Result<T> {
        loop {
            let text = self.text.get(self.at..).unwrap_or_default();
            let mut reader = Reader { text, at: 0, depth: self.depth, fresh: self.fresh };
            match parse(&mut reader) {
                Ok(value) => {
                    (self.depth, self.fresh) = (reader.depth, reader.fresh);
                    self.at += reader.at;
                    return Ok(value);
                }
                Err(fault) if fault.torn && self.source != Source::Ended => self.more()?,
                Err(Fault { what, offset, torn }) => {
                    self.at += offset;
                    let position = self.position();
                    return Err(if torn {
                        Error::CutOff { what, position }
                    } else {
                        Error::Syntax { what, position }
                    });
                }
            }
        }
    }

    /// Reads on until the number at the stream's place has ended: a part of its digits is a number
    /// too.
    fn hold_number(&mut self) -> Result<()> {
        let belongs = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
        let mut ahead = 0;
        loop {
            let rest = self.text.as_bytes().get(self.at + ahead..).unwrap_or_default();
            ahead += rest.iter().take_while(|byte| belongs(byte)).count();
            if self.at + ahead < self.text.len() || self.source == Source::Ended {
                return Ok(());
            }
            self.more()?;
        }
    }

    /// Appends text from the input; what has been read makes room for it.
    fn more(&mut self) -> Result<()> {
        self.counted.count(&self.text, self.at);
        self.text.drain(..self.at);
        self.counted.dropped(self.at);
        self.at = 0;
        if self.source == Source::Spoiled {
            let place = self.text.len();
            self.counted.count(&self.text, place);
            let position = self.counted.position(&self.text, place);
            return Err(Error::NotUtf8 { position });
        }
        if self.text.len() >= LONGEST_VALUE {
            return Err(Error::TooLong { position: self.position() });
        }
        // A value that did not fit is read from its beginning again: doubling what there is keeps
        // the work in proportion to the value's length.
        let before = self.text.len();
        let wanted = before.clamp(1, LONGEST_VALUE - before);
        while self.text.len() - before < wanted
            && matches!(self.source, Source::Unread | Source::Open)
        {
            self.fill()?;
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<()> {
        let count = loop {
            match self.input.read(&mut self.chunk) {
                Ok(count) => break count,
                Err(source) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Input { position: self.position(), source }),
            }
        };
        let chunk = self.chunk.get(..count).unwrap_or_default();
        if count == 0 {
            self.source = if self.partial.is_empty() { Source::Ended } else { Source::Spoiled };
            return Ok(());
        }
        let joined;
        let bytes = if self.partial.is_empty() {
            chunk
        } else {
            self.partial.extend_from_slice(chunk);
            joined = std::mem::take(&mut self.partial);
            &joined
        };
        let begins = self.source == Source::Unread;
        self.source = Source::Open;
        match std::str::from_utf8(bytes) {
            Ok(text) => self.text.push_str(text),
            Err(error) => {
                let (good, rest) = bytes.split_at(error.valid_up_to());
                self.text.push_str(std::str::from_utf8(good).unwrap_or_default());
                match error.error_len() {
                    Some(_) => self.source = Source::Spoiled,
                    None => self.partial = rest.to_vec(),
                }
            }
        }
        if begins && self.text.is_empty() && self.source == Source::Open {
            self.source = Source::Unread;
        } else if begins && self.text.starts_with(BYTE_ORDER_MARK) {
            self.at = BYTE_ORDER_MARK.len();
            self.counted.line_start = BYTE_ORDER_MARK.len() as u64;
        }
        Ok(())
    }
}

impl Counted {
    /// Counts the lines up to `at`.
    fn count(&mut self, text: &str, at: usize) {
        let between = text.as_bytes().get(self.at..at).unwrap_or_default();
        if let Some(last) = memrchr(b'\n', between) {
            self.line += memchr_iter(b'\n', between).count() as u64;
            self.line_start = self.before + (self.at + last + 1) as u64;
        }
        self.at = self.at.max(at);
    }

    /// The place `at`, up to which lines have been counted.
    fn position(&self, text: &str, at: usize) -> Position {
        debug_assert!(at <= text.len() && self.at == at, "lines are counted up to the place");
        let offset = self.before + at as u64;
        Position { line: self.line, column: offset - self.line_start + 1, offset }
    }

    fn dropped(&mut self, bytes: usize) {
        self.before += bytes as u64;
        self.at -= bytes;
    }
}

#[cfg(test)]
mod tests;
