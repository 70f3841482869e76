//! Values whose type is kept: a number stays a number, a text a text.

use std::borrow::Cow;

use crate::event::Text;

/// Names of values and the values, in the order in which they were written. A name may come twice.
pub type Metadata<'a> = Vec<(Text<'a>, Value<'a>)>;

/// A value of a trace's metadata.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// A whole number.
    Integer(i64),
    /// A whole number above 2^63 - 1, such as an address.
    Unsigned(u64),
    /// A number with a fraction or an exponent; finite.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A text.
    Text(Text<'a>),
    /// Values in a row, none of which is itself a list or an object.
    List(Vec<Value<'a>>),
    /// Anything else, as JSON text: an object, a list of lists, `null`, a number beyond all ranges.
    Json(Text<'a>),
}

impl Value<'_> {
    /// The value as a whole number, where it is one.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The value as a double, where it is a number.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the caller asks for a double")]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Unsigned(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }
}

/// The id of a process or a thread: a number, or a text such as `Spans`. Which of the two is kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub enum Id<'a> {
    /// The record names none.
    #[default]
    None,
    /// A number.
    Number(i64),
    /// A text.
    Text(Text<'a>),
}

impl Id<'_> {
    /// The id where it is a number.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::None | Self::Text(_) => None,
        }
    }

    /// The same id for as long as this one lives.
    #[must_use]
    pub fn borrowed(&self) -> Id<'_> {
        match self {
            Self::None => Id::None,
            Self::Number(number) => Id::Number(*number),
            Self::Text(text) => Id::Text(Cow::Borrowed(text)),
        }
    }
}

impl std::fmt::Display for Id<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Number(number) => number.fmt(formatter),
            Self::Text(text) => text.fmt(formatter),
        }
    }
}
