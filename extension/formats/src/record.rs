//! JSON objects with known keys, read into a struct of slots.
//!
//! A slot says whether its key was there and whether its value had the expected type. The checks
//! that depend on the event's type come afterwards, so that one pass over the line is enough
//! wherever in the line its type stands. Of a key that comes twice, the last value counts, as every
//! JSON parser that builds a tree has it.

use std::borrow::Cow;

use crate::event::{Dim3, Text};
use crate::json::{self, Kind, Number, Reader};

/// What stands under a key.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Slot<'a, T> {
    /// The key is not there.
    #[default]
    Absent,
    /// A value of another type, as it is written.
    Wrong(&'a str),
    /// The value.
    Is(T),
}

impl<T> Slot<'_, T> {
    /// The value, if it is there and right.
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Is(value) => Some(value),
            _ => None,
        }
    }

    /// Takes the value out, if it is there and right.
    pub(crate) fn take(&mut self) -> Option<T> {
        match std::mem::take(self) {
            Self::Is(value) => Some(value),
            _ => None,
        }
    }

    /// Whether the key is there at all.
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

/// A type of value that stands under a key.
pub(crate) trait Field<'a>: Sized {
    /// What the value should be, for messages.
    const EXPECTED: &'static str;

    /// Reads the value; where it is of another type, gives `None` and takes nothing.
    fn read(reader: &mut Reader<'a>) -> json::Result<Option<Self>>;

    /// The value or what stands in its place.
    fn slot(reader: &mut Reader<'a>) -> json::Result<Slot<'a, Self>> {
        let before = reader.clone();
        if let Some(value) = Self::read(reader)? {
            return Ok(Slot::Is(value));
        }
        *reader = before;
        reader.skip().map(Slot::Wrong)
    }
}

impl<'a> Field<'a> for Text<'a> {
    const EXPECTED: &'static str = "a string";

    fn read(reader: &mut Reader<'a>) -> json::Result<Option<Self>> {
        if reader.peek()? == Kind::Text { reader.text().map(Some) } else { Ok(None) }
    }
}

/// A whole number in any spelling and of any size: JSON Schema's `integer`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Whole<'a> {
    Fits(i64),
    /// Beyond 64 bits.
    Beyond(Number<'a>),
}

impl Whole<'_> {
    pub(crate) fn is_negative(self) -> bool {
        match self {
            Self::Fits(value) => value < 0,
            Self::Beyond(number) => number.is_negative(),
        }
    }

    pub(crate) fn fits(self) -> Option<i64> {
        match self {
            Self::Fits(value) => Some(value),
            Self::Beyond(_) => None,
        }
    }
}

impl<'a> Field<'a> for Whole<'a> {
    const EXPECTED: &'static str = "an integer";

    fn read(reader: &mut Reader<'a>) -> json::Result<Option<Self>> {
        if let Some(value) = reader.plain_integer() {
            return Ok(Some(Self::Fits(value)));
        }
        if reader.peek()? != Kind::Number {
            return Ok(None);
        }
        let number = reader.number()?;
        Ok(match number.whole() {
            Some(value) => Some(Self::Fits(value)),
            None => number.is_whole().then_some(Self::Beyond(number)),
        })
    }
}

/// A whole number of 64 bits.
impl<'a> Field<'a> for i64 {
    const EXPECTED: &'static str = "an integer of 64 bits";

    fn read(reader: &mut Reader<'a>) -> json::Result<Option<Self>> {
        Ok(Whole::read(reader)?.and_then(Whole::fits))
    }
}

/// Any number.
impl<'a> Field<'a> for Number<'a> {
    const EXPECTED: &'static str = "a number";

    fn read(reader: &mut Reader<'a>) -> json::Result<Option<Self>> {
        if reader.peek()? == Kind::Number { reader.number().map(Some) } else { Ok(None) }
    }
}

impl<'a> Field<'a> for f64 {
    const EXPECTED: &'static str = "a number";

    fn read(reader: &mut Reader<'a>) -> json::Result<Option<Self>> {
        Ok(Number::read(reader)?.map(Number::as_f64).filter(|value| value.is_finite()))
    }
}

impl<'a> Field<'a> for bool {
    const EXPECTED: &'static str = "true or false";

    fn read(reader: &mut Reader<'a>) -> json::Result<Option<Self>> {
        if reader.peek()? == Kind::Boolean { reader.boolean().map(Some) } else { Ok(None) }
    }
}

/// Extents as `[x,y,z]` or, from later producers, as `"(x,y,z)"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Extents {
    List(Dim3),
    Text(Dim3),
    /// A list of three integers that are not negative, at least one of them beyond 64 bits.
    Beyond,
}

impl Extents {
    pub(crate) fn fits(self) -> Option<Dim3> {
        match self {
            Self::List(extents) | Self::Text(extents) => Some(extents),
            Self::Beyond => None,
        }
    }
}

impl<'a> Field<'a> for Extents {
    const EXPECTED: &'static str = "three integers >= 0";

    fn read(reader: &mut Reader<'a>) -> json::Result<Option<Self>> {
        match reader.peek()? {
            Kind::Text => Ok(extents(&reader.text()?).map(Self::Text)),
            Kind::Array => list(reader),
            _ => Ok(None),
        }
    }
}

fn list(reader: &mut Reader<'_>) -> json::Result<Option<Extents>> {
    let mut extents = [0; 3];
    let (mut count, mut right, mut beyond) = (0, true, false);
    reader.enter_array()?;
    while reader.next_item()? {
        match Whole::slot(reader)? {
            Slot::Is(value) if !value.is_negative() => match (extents.get_mut(count), value.fits())
            {
                (Some(place), Some(value)) => *place = value,
                (_, fits) => beyond |= fits.is_none(),
            },
            _ => right = false,
        }
        count += 1;
    }
    Ok((right && count == 3).then_some(if beyond {
        Extents::Beyond
    } else {
        Extents::List(extents)
    }))
}

/// Reads `(64,1,1)`.
pub(crate) fn extents(text: &str) -> Option<Dim3> {
    let mut numbers = text.strip_prefix('(')?.strip_suffix(')')?.split(',').map(str::trim);
    let mut next = || numbers.next()?.parse().ok().filter(|number: &i64| *number >= 0);
    let extents = [next()?, next()?, next()?];
    numbers.next().is_none().then_some(extents)
}

/// A list of objects; only the list itself has to be right, each object has slots of its own.
impl<'a, T: Record<'a>> Field<'a> for Vec<T> {
    const EXPECTED: &'static str = "an array of objects";

    fn read(reader: &mut Reader<'a>) -> json::Result<Option<Self>> {
        if reader.peek()? != Kind::Array {
            return Ok(None);
        }
        let mut items = vec![];
        reader.enter_array()?;
        while reader.next_item()? {
            if reader.peek()? != Kind::Object {
                return Ok(None);
            }
            items.push(T::read_record(reader)?);
        }
        Ok(Some(items))
    }
}

/// An object with known keys. See [`record!`](crate::record::record).
pub(crate) trait Record<'a>: Sized {
    /// Reads the object before which the reader stands.
    fn read_record(reader: &mut Reader<'a>) -> json::Result<Self>;
}

/// Keys that no slot is for, in the order in which they came.
pub(crate) type Unknown<'a> = Vec<Cow<'a, str>>;

/// Declares a struct of slots and how it is read: one line for each key, with its type.
///
/// A key that has several spellings names them all. Keys without a slot are checked as JSON and
/// collected in `unknown`.
macro_rules! record {
    (
        $(#[$attribute:meta])*
        struct $name:ident<$lifetime:lifetime> {
            $($(#[$doc:meta])* $field:ident: $type:ty = $key:literal $(| $alias:literal)*,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub(crate) struct $name<$lifetime> {
            $($(#[$doc])* pub(crate) $field: $crate::record::Slot<$lifetime, $type>,)*
            /// Keys that no slot is for.
            pub(crate) unknown: $crate::record::Unknown<$lifetime>,
        }

        impl<$lifetime> $crate::record::Record<$lifetime> for $name<$lifetime> {
            fn read_record(
                reader: &mut $crate::json::Reader<$lifetime>,
            ) -> $crate::json::Result<Self> {
                use $crate::record::Field as _;
                let mut record = Self::default();
                reader.enter_object()?;
                while let Some(key) = reader.next_key()? {
                    match key.as_ref() {
                        $($key $(| $alias)* => record.$field = <$type>::slot(reader)?,)*
                        _ => {
                            reader.skip()?;
                            record.unknown.push(key);
                        }
                    }
                }
                Ok(record)
            }
        }

        impl<$lifetime> $crate::record::Field<$lifetime> for $name<$lifetime> {
            const EXPECTED: &'static str = "an object";

            fn read(
                reader: &mut $crate::json::Reader<$lifetime>,
            ) -> $crate::json::Result<Option<Self>> {
                use $crate::record::Record as _;
                if reader.peek()? != $crate::json::Kind::Object {
                    return Ok(None);
                }
                Self::read_record(reader).map(Some)
            }
        }
    };
}
pub(crate) use record;
