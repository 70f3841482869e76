//! Values as the rules of the format tell them apart.

use std::borrow::Cow;

use crate::json::{self, Kind, Number, Reader};

/// A value of a record.
///
/// The format's reference is written in Python: an integer is a number without fraction and
/// exponent, of any size; `2.0` is none, and neither is `true`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Boolean,
    Integer(i128),
    /// The digits of an integer beyond 128 bits.
    Huge(Cow<'a, str>),
    /// A number with a fraction or an exponent; infinite beyond the range of doubles.
    Float(f64),
    Text(Cow<'a, str>),
    Array,
    Object,
}

impl<'a> Value<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        if let Some(value) = reader.plain_integer() {
            return Ok(Self::Integer(value.into()));
        }
        Ok(match reader.peek()? {
            Kind::Text => Self::Text(reader.text()?),
            Kind::Null => reader.null().map(|()| Self::Null)?,
            Kind::Boolean => reader.boolean().map(|_| Self::Boolean)?,
            Kind::Number => Self::number(reader.number()?),
            Kind::Object => reader.skip().map(|_| Self::Object)?,
            Kind::Array => reader.skip().map(|_| Self::Array)?,
        })
    }

    fn number(number: Number<'a>) -> Self {
        if number.as_str().contains(['.', 'e', 'E']) {
            return Self::Float(number.as_f64());
        }
        number.whole().map_or(Self::Huge(number.as_str().into()), Self::Integer)
    }

    /// The double nearest to a number; infinite beyond their range.
    pub(super) fn as_f64(&self) -> Option<f64> {
        match self {
            // Both conversions round to the nearest double, ties to even.
            Self::Integer(value) => Some(*value as f64),
            Self::Huge(digits) => digits.parse().ok(),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Boolean => Value::Boolean,
            Self::Integer(value) => Value::Integer(value),
            Self::Huge(digits) => Value::Huge(digits.into_owned().into()),
            Self::Float(value) => Value::Float(value),
            Self::Text(text) => Value::Text(text.into_owned().into()),
            Self::Array => Value::Array,
            Self::Object => Value::Object,
        }
    }
}

/// Whether nothing is left of a text once Python's `str.strip` has been over it.
///
/// That takes Unicode's white space and the separators U+001C to U+001F.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(is_python_space)
}

/// What Python's `str.strip` leaves of a text.
pub(super) fn stripped(text: &str) -> &str {
    text.trim_matches(is_python_space)
}

fn is_python_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}
