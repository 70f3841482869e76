//! Pieces of trace records as JSON text, for the formats that are JSON.

use super::{Id, Track, Value};
use crate::event::{Dim3, Text};
use crate::json::write;
use crate::time::Timestamp;

/// Appends nanoseconds as microseconds with three decimals: exactly.
pub(crate) fn microseconds(out: &mut Vec<u8>, nanoseconds: i64) {
    if nanoseconds < 0 {
        out.push(b'-');
    }
    let nanoseconds = nanoseconds.unsigned_abs();
    write::integer(out, nanoseconds / 1000);
    out.push(b'.');
    for unit in [100, 10, 1] {
        out.push(b'0' + (nanoseconds / unit % 10) as u8);
    }
}

/// Appends a double so that it reads back as the same double, and not as a whole number: with a point
/// or an exponent.
pub(crate) fn float(out: &mut Vec<u8>, value: f64) {
    use std::io::Write as _;
    if value.is_finite() && (value.abs() >= 1e15 || value != 0.0 && value.abs() < 1e-5) {
        // Writing to a vector does not fail.
        let _ = write!(out, "{value:e}");
    } else {
        write::float(out, value);
    }
}

/// Appends a value in the type that it has.
pub(crate) fn value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Integer(number) => write::integer(out, *number),
        Value::Unsigned(number) => write::integer(out, *number),
        Value::Float(number) => float(out, *number),
        Value::Boolean(flag) => write::boolean(out, *flag),
        Value::Text(text) => write::text(out, text),
        Value::Json(json) => out.extend_from_slice(json.as_bytes()),
        Value::List(items) => {
            out.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                self::value(out, item);
            }
            out.push(b']');
        }
    }
}

/// Writes the members of one object whose names may hold anything.
pub(crate) struct Members<'b> {
    out: &'b mut Vec<u8>,
    first: bool,
}

impl<'b> Members<'b> {
    /// Opens an object at the end of `out`.
    pub(crate) fn open(out: &'b mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// Goes on with an object that has members already.
    pub(crate) fn following(out: &'b mut Vec<u8>) -> Self {
        Self { out, first: false }
    }

    /// Where in the buffer the next member will stand.
    pub(crate) fn position(&self) -> usize {
        self.out.len()
    }

    /// Writes a name, and gives the buffer for its value, which must follow.
    pub(crate) fn key(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        write::text(self.out, name);
        self.out.push(b':');
        self.out
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) -> &mut Self {
        write::text(self.key(name), text);
        self
    }

    pub(crate) fn integer(&mut self, name: &str, number: impl itoa::Integer) -> &mut Self {
        write::integer(self.key(name), number);
        self
    }

    pub(crate) fn boolean(&mut self, name: &str, flag: bool) -> &mut Self {
        write::boolean(self.key(name), flag);
        self
    }

    pub(crate) fn integer_if(
        &mut self,
        name: &str,
        number: Option<impl itoa::Integer>,
    ) -> &mut Self {
        if let Some(number) = number {
            self.integer(name, number);
        }
        self
    }

    pub(crate) fn time(&mut self, name: &str, time: Timestamp) -> &mut Self {
        microseconds(self.key(name), time.0);
        self
    }

    pub(crate) fn extents(&mut self, name: &str, extents: Option<Dim3>) -> &mut Self {
        if let Some(extents) = extents {
            let items = extents.map(Value::Integer).to_vec();
            value(self.key(name), &Value::List(items));
        }
        self
    }

    pub(crate) fn id(&mut self, name: &str, id: &Id<'_>) -> &mut Self {
        match id {
            Id::None => self,
            Id::Number(number) => self.integer(name, *number),
            Id::Text(text) => self.text(name, text),
        }
    }

    /// `pid` and `tid`.
    pub(crate) fn track(&mut self, track: &Track<'_>) -> &mut Self {
        self.id("pid", &track.process).id("tid", &track.row)
    }

    /// Every value under its name.
    pub(crate) fn all(&mut self, metadata: &[(Text<'_>, Value<'_>)]) -> &mut Self {
        for (name, item) in metadata {
            value(self.key(name), item);
        }
        self
    }

    /// Writes an object as a member.
    pub(crate) fn object(&mut self, name: &str, write: impl FnOnce(&mut Members<'_>)) -> &mut Self {
        let mut inner = Members::open(self.key(name));
        write(&mut inner);
        inner.close();
        self
    }

    /// Closes the object.
    pub(crate) fn close(self) {
        self.out.push(b'}');
    }
}
