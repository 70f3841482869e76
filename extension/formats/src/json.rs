//! A pull reader for JSON text (RFC 8259) that allocates nothing, and a writer of its pieces.
//!
//! ```text
//! {"dt":[1,-2.5e3],"name":"a\u00e9"}
//! │ │    ││        │      └─ text      borrowed, or owned where an escape had to be undone
//! │ │    │└─ number         the digits as they stand: integers and decimals stay exact
//! │ │    └─ enter_array, next_item ...
//! │ └─ next_key
//! └─ enter_object
//! ```
//!
//! A general parser into a tree reads an event log several times slower and loses what this project
//! must keep: a timestamp with 19 digits does not fit a double, and an error has to name the byte.
//!
//! Refused, as the RFC does: `NaN`, leading zeros, trailing commas, bare control characters in a
//! text, halves of a surrogate pair. Nesting is limited to [`MAX_DEPTH`].

mod number;
pub mod stream;
mod text;
pub mod write;

use std::borrow::Cow;

pub use number::Number;

/// Deepest nesting of objects and arrays that is read.
pub const MAX_DEPTH: u32 = 128;

/// What a value is, told by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `{...}`
    Object,
    /// `[...]`
    Array,
    /// `"..."`
    Text,
    /// `-1.5e3`
    Number,
    /// `true` or `false`
    Boolean,
    /// `null`
    Null,
}

impl Kind {
    /// The kind as a person would call it, with its article.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::Text => "a string",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::Null => "null",
        }
    }
}

/// Why a text is no JSON, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}")]
pub struct Fault {
    /// What stands there and what should.
    pub what: &'static str,
    /// Bytes before the fault.
    pub offset: usize,
    /// Whether the text may only have been cut off: more of it could still be right.
    pub torn: bool,
}

/// What reading gives.
pub type Result<T> = std::result::Result<T, Fault>;

/// Walks over one JSON value and all within it.
///
/// Containers are entered and then asked for their next key or item until they say that they have
/// ended. A value that is asked for as something else than it is stays where it is, so that the
/// caller can [`skip`](Reader::skip) it.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    /// A container has just been entered: its first element has no comma before it.
    fresh: bool,
}

impl<'a> Reader<'a> {
    /// Reads the one value that `text` is.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0, fresh: false }
    }

    /// How many bytes have been read.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    fn fault<T>(&self, what: &'static str) -> Result<T> {
        let torn = self.at >= self.text.len();
        Err(Fault { what, offset: self.at, torn })
    }

    #[inline]
    fn blanks(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// What the next value is. Takes nothing but blanks.
    ///
    /// # Errors
    /// Where no value begins.
    pub fn peek(&mut self) -> Result<Kind> {
        match self.blanks() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::Text),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Boolean),
            Some(b'n') => Ok(Kind::Null),
            _ => self.fault("a value was expected"),
        }
    }

    fn enter(&mut self, bracket: u8, expected: &'static str) -> Result<()> {
        if self.blanks() != Some(bracket) {
            return self.fault(expected);
        }
        if self.depth == MAX_DEPTH {
            return self.fault("nested more than 128 deep");
        }
        self.at += 1;
        self.depth += 1;
        self.fresh = true;
        Ok(())
    }

    /// Enters an object.
    ///
    /// # Errors
    /// Where none begins, or it is nested too deep.
    pub fn enter_object(&mut self) -> Result<()> {
        self.enter(b'{', "an object was expected")
    }

    /// Enters an array.
    ///
    /// # Errors
    /// Where none begins, or it is nested too deep.
    pub fn enter_array(&mut self) -> Result<()> {
        self.enter(b'[', "an array was expected")
    }

    /// Goes to the next element of the container, or leaves it.
    #[inline]
    fn next(&mut self, end: u8, expected: &'static str) -> Result<bool> {
        let fresh = std::mem::take(&mut self.fresh);
        match self.blanks() {
            Some(byte) if byte == end => {
                self.at += 1;
                self.depth -= 1;
                Ok(false)
            }
            Some(b',') if !fresh => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if fresh => Ok(true),
            _ => self.fault(expected),
        }
    }

    /// The next key of the object, behind whose colon the reader then stands; `None` where the
    /// object ends.
    ///
    /// # Errors
    /// Where neither a key nor the end stands.
    #[inline]
    pub fn next_key(&mut self) -> Result<Option<Cow<'a, str>>> {
        match self.plain_key() {
            Some(key) => Ok(Some(Cow::Borrowed(key))),
            None => self.any_key(),
        }
    }

    /// A key as nearly all are written: no blank between the value before it and the comma, none
    /// between the key and its colon, and no escape in it. Takes nothing where the next bytes are
    /// anything else.
    #[inline]
    fn plain_key(&mut self) -> Option<&'a str> {
        let mut rest = self.text.as_bytes().get(self.at..)?;
        if !self.fresh {
            rest = rest.strip_prefix(b",")?;
        }
        while let [b' ' | b'\n', behind @ ..] = rest {
            rest = behind;
        }
        let rest = rest.strip_prefix(b"\"")?;
        let start = self.text.len() - rest.len();
        let length = text::plain(rest);
        if !rest.get(length..)?.starts_with(b"\":") {
            return None;
        }
        let key = self.text.get(start..start + length)?;
        self.at = start + length + 2;
        self.fresh = false;
        Some(key)
    }

    fn any_key(&mut self) -> Result<Option<Cow<'a, str>>> {
        if !self.next(b'}', "',' or '}' was expected")? {
            return Ok(None);
        }
        if self.blanks() != Some(b'"') {
            return self.fault("a key in double quotes was expected");
        }
        let key = self.text()?;
        if self.blanks() != Some(b':') {
            return self.fault("':' was expected");
        }
        self.at += 1;
        Ok(Some(key))
    }

    /// Whether the array has another item, before which the reader then stands.
    ///
    /// # Errors
    /// Where neither a comma nor the end stands.
    pub fn next_item(&mut self) -> Result<bool> {
        self.next(b']', "',' or ']' was expected")
    }

    /// A number, as its digits stand.
    ///
    /// # Errors
    /// Where none begins, or one that JSON does not know, such as `01` or `1.`.
    pub fn number(&mut self) -> Result<Number<'a>> {
        self.blanks();
        let rest = self.text.get(self.at..).unwrap_or_default();
        match number::scan(rest.as_bytes()) {
            Ok(length) => {
                self.at += length;
                Ok(Number::scanned(rest.get(..length).unwrap_or_default()))
            }
            Err((what, length)) => {
                self.at += length;
                self.fault(what)
            }
        }
    }

    /// A whole number between -(2^63) and 2^63 - 1, in the spelling that all writers use.
    ///
    /// Gives `None`, and takes nothing, where the next value is anything else; it may still be a
    /// number with another spelling.
    pub fn plain_integer(&mut self) -> Option<i64> {
        self.blanks();
        let rest = self.text.as_bytes().get(self.at..)?;
        let (value, length) = number::plain_integer(rest)?;
        self.at += length;
        Some(value)
    }

    /// A text, with its escapes undone.
    ///
    /// # Errors
    /// Where none begins, it does not end, or an escape in it has no meaning.
    #[inline]
    pub fn text(&mut self) -> Result<Cow<'a, str>> {
        if self.blanks() != Some(b'"') {
            return self.fault("a string was expected");
        }
        let start = self.at + 1;
        let bytes = self.text.as_bytes().get(start..).unwrap_or_default();
        let length = text::plain(bytes);
        if bytes.get(length) == Some(&b'"')
            && let Some(text) = self.text.get(start..start + length)
        {
            self.at = start + length + 1;
            return Ok(Cow::Borrowed(text));
        }
        self.odd_text()
    }

    /// A text, before whose opening quote the reader stands, with escapes or faults in it.
    #[cold]
    fn odd_text(&mut self) -> Result<Cow<'a, str>> {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        match text::scan(rest) {
            Ok((text, length)) => {
                self.at += length + 1;
                Ok(text)
            }
            Err((what, length)) => {
                self.at += length + 1;
                self.fault(what)
            }
        }
    }

    fn literal(&mut self, word: &'static str, expected: &'static str) -> Result<()> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        let torn = word.as_bytes().starts_with(rest);
        Err(Fault { what: expected, offset: self.at, torn })
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// Where neither stands.
    pub fn boolean(&mut self) -> Result<bool> {
        match self.blanks() {
            Some(b't') => self.literal("true", "true was expected").map(|()| true),
            Some(b'f') => self.literal("false", "false was expected").map(|()| false),
            _ => self.fault("true or false was expected"),
        }
    }

    /// `null`.
    ///
    /// # Errors
    /// Where something else stands.
    pub fn null(&mut self) -> Result<()> {
        self.blanks();
        self.literal("null", "null was expected")
    }

    /// Passes over the next value, whatever it is, and gives it as it stands.
    ///
    /// # Errors
    /// Where it is no JSON: a value that nobody asks for is checked all the same.
    pub fn skip(&mut self) -> Result<&'a str> {
        self.blanks();
        let start = self.at;
        match self.peek()? {
            Kind::Object => {
                self.enter_object()?;
                while self.next_key()?.is_some() {
                    self.skip()?;
                }
            }
            Kind::Array => {
                self.enter_array()?;
                while self.next_item()? {
                    self.skip()?;
                }
            }
            Kind::Text => drop(self.text()?),
            Kind::Number => drop(self.number()?),
            Kind::Boolean => drop(self.boolean()?),
            Kind::Null => self.null()?,
        }
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// The end of the text.
    ///
    /// # Errors
    /// Where anything but blanks is left.
    pub fn end(&mut self) -> Result<()> {
        match self.blanks() {
            None => Ok(()),
            Some(_) => self.fault("something stands behind the value"),
        }
    }
}

#[cfg(test)]
mod tests;
