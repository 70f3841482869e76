//! The pieces of JSON text, appended to a buffer that the caller keeps and reuses.

/// Appends a whole number.
pub fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a double in the shortest form that reads back the same; `null` where it is not finite,
/// because JSON has no word for that.
pub fn float(out: &mut Vec<u8>, value: f64) {
    use std::io::Write as _;
    if !value.is_finite() {
        out.extend_from_slice(b"null");
        return;
    }
    // Writing to a vector does not fail.
    let _ = if value.fract() == 0.0 && value.abs() < 1e15 {
        write!(out, "{value:.1}")
    } else {
        write!(out, "{value}")
    };
}

/// Appends `true` or `false`.
pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Appends a text in quotes; quotes, backslashes and control characters are escaped, all else
/// stands as it is.
pub fn text(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    let mut rest = value.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')) {
        let (plain, tail) = rest.split_at(at);
        out.extend_from_slice(plain);
        if let Some((byte, tail)) = tail.split_first() {
            escape(out, *byte);
            rest = tail;
        }
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Writes the members of one object, commas and braces included.
///
/// Texts that are keys are written as they stand: they come from this crate and need no escape.
#[derive(Debug)]
pub struct Object<'b> {
    out: &'b mut Vec<u8>,
    first: bool,
}

impl<'b> Object<'b> {
    /// Opens an object at the end of `out`.
    #[must_use]
    pub fn open(out: &'b mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// Goes on with an object of which `beginning` are the brace and at least one member.
    #[must_use]
    pub fn resume(out: &'b mut Vec<u8>, beginning: &[u8]) -> Self {
        out.extend_from_slice(beginning);
        Self { out, first: false }
    }

    /// Writes a key, and gives the buffer for its value, which must follow.
    pub fn key(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// A member whose value is a text.
    pub fn text(&mut self, name: &str, value: &str) -> &mut Self {
        text(self.key(name), value);
        self
    }

    /// A member whose value is a whole number.
    pub fn integer(&mut self, name: &str, value: impl itoa::Integer) -> &mut Self {
        integer(self.key(name), value);
        self
    }

    /// A member whose value is a double.
    pub fn float(&mut self, name: &str, value: f64) -> &mut Self {
        float(self.key(name), value);
        self
    }

    /// A member whose value is `true` or `false`.
    pub fn boolean(&mut self, name: &str, value: bool) -> &mut Self {
        boolean(self.key(name), value);
        self
    }

    /// A member whose value is an array of whole numbers.
    pub fn integers<T: itoa::Integer>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> &mut Self {
        let out = self.key(name);
        out.push(b'[');
        for (position, value) in values.into_iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            integer(out, value);
        }
        out.push(b']');
        self
    }

    /// A member whose value is an array of objects, one for each item.
    pub fn objects<T>(
        &mut self,
        name: &str,
        items: &[T],
        write: impl Fn(&mut Object<'_>, &T),
    ) -> &mut Self {
        let out = self.key(name);
        out.push(b'[');
        for (position, item) in items.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            let mut entry = Object::open(out);
            write(&mut entry, item);
            entry.close();
        }
        out.push(b']');
        self
    }

    /// A whole number that may be absent; then there is no member.
    pub fn some_integer(&mut self, name: &str, value: Option<i64>) -> &mut Self {
        if let Some(value) = value {
            self.integer(name, value);
        }
        self
    }

    /// A text that may be absent; then there is no member.
    pub fn some_text(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            self.text(name, value);
        }
        self
    }

    /// Closes the object and the line that it is.
    pub fn close_line(self) {
        self.out.extend_from_slice(b"}\n");
    }

    /// Closes the object.
    pub fn close(self) {
        self.out.push(b'}');
    }
}
