//! The members of one record, in whatever order they stand, before they are understood.

use crate::event::Text;
use crate::json::{Fault, Kind, Number, Reader};
use crate::trace::{Id, Metadata, Value};

/// The members of one record.
#[derive(Debug, Default)]
pub(super) struct Members<'a> {
    pub(super) phase: Option<Text<'a>>,
    pub(super) category: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) process: Id<'a>,
    pub(super) row: Id<'a>,
    pub(super) time: Option<Number<'a>>,
    pub(super) duration: Option<Number<'a>>,
    pub(super) id: Option<Value<'a>>,
    pub(super) args: Metadata<'a>,
    pub(super) extra: Metadata<'a>,
    /// The first member whose value is of a kind that it cannot have.
    pub(super) wrong: Option<Wrong>,
}

/// A member that cannot be understood.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrong {
    pub(super) field: &'static str,
    pub(super) expected: &'static str,
    pub(super) found: &'static str,
}

impl<'a> Members<'a> {
    /// Reads the object that stands next.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let mut members = Self::default();
        reader.enter_object()?;
        while let Some(key) = reader.next_key()? {
            members.member(key, reader)?;
        }
        Ok(members)
    }

    fn member(&mut self, key: Text<'a>, reader: &mut Reader<'a>) -> Result<(), Fault> {
        match &*key {
            "ph" => self.text("ph", reader, |members| &mut members.phase),
            "cat" => self.text("cat", reader, |members| &mut members.category),
            "name" => self.text("name", reader, |members| &mut members.name),
            "pid" => self.process("pid", reader, |members| &mut members.process),
            "tid" => self.process("tid", reader, |members| &mut members.row),
            "ts" => self.number("ts", reader, |members| &mut members.time),
            "dur" => self.number("dur", reader, |members| &mut members.duration),
            "id" => {
                self.once("id", self.id.is_some());
                self.id = Some(value(reader)?);
                Ok(())
            }
            "args" => self.args(reader),
            _ => {
                self.extra.push((key, value(reader)?));
                Ok(())
            }
        }
    }

    fn wrong(&mut self, field: &'static str, expected: &'static str, found: &'static str) {
        self.wrong.get_or_insert(Wrong { field, expected, found });
    }

    fn once(&mut self, field: &'static str, there: bool) {
        if there {
            self.wrong(field, "one member of that name", "a second");
        }
    }

    fn text(
        &mut self,
        field: &'static str,
        reader: &mut Reader<'a>,
        slot: impl FnOnce(&mut Self) -> &mut Option<Text<'a>>,
    ) -> Result<(), Fault> {
        let kind = reader.peek()?;
        if kind != Kind::Text {
            self.wrong(field, "a string", kind.as_str());
            return reader.skip().map(drop);
        }
        let text = reader.text()?;
        let there = slot(self).replace(text).is_some();
        self.once(field, there);
        Ok(())
    }

    fn number(
        &mut self,
        field: &'static str,
        reader: &mut Reader<'a>,
        slot: impl FnOnce(&mut Self) -> &mut Option<Number<'a>>,
    ) -> Result<(), Fault> {
        let kind = reader.peek()?;
        if kind != Kind::Number {
            self.wrong(field, "a number", kind.as_str());
            return reader.skip().map(drop);
        }
        let number = reader.number()?;
        let there = slot(self).replace(number).is_some();
        self.once(field, there);
        Ok(())
    }

    fn process(
        &mut self,
        field: &'static str,
        reader: &mut Reader<'a>,
        slot: impl FnOnce(&mut Self) -> &mut Id<'a>,
    ) -> Result<(), Fault> {
        let id = match value(reader)? {
            Value::Integer(number) => Id::Number(number),
            Value::Text(text) => Id::Text(text),
            _ => {
                self.wrong(field, "a whole number of 64 bits or a string", "something else");
                return Ok(());
            }
        };
        let there = std::mem::replace(slot(self), id) != Id::None;
        self.once(field, there);
        Ok(())
    }

    fn args(&mut self, reader: &mut Reader<'a>) -> Result<(), Fault> {
        let kind = reader.peek()?;
        if kind != Kind::Object {
            self.wrong("args", "an object", kind.as_str());
            return reader.skip().map(drop);
        }
        self.once("args", !self.args.is_empty());
        // A kernel has 14.
        self.args.reserve(16);
        reader.enter_object()?;
        while let Some(key) = reader.next_key()? {
            let value = value(reader)?;
            self.args.push((key, value));
        }
        Ok(())
    }
}

/// Reads the next value with its type.
fn value<'a>(reader: &mut Reader<'a>) -> Result<Value<'a>, Fault> {
    if let Some(value) = reader.plain_integer() {
        return Ok(Value::Integer(value));
    }
    Ok(match reader.peek()? {
        Kind::Number => number(reader)?,
        Kind::Text => Value::Text(reader.text()?),
        Kind::Boolean => Value::Boolean(reader.boolean()?),
        Kind::Array => list(reader)?,
        Kind::Object | Kind::Null => Value::Json(reader.skip()?.into()),
    })
}

/// A number that is no plain integer.
fn number<'a>(reader: &mut Reader<'a>) -> Result<Value<'a>, Fault> {
    let number = reader.number()?;
    let is_decimal = number.as_str().bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    if is_decimal {
        let double = number.as_f64();
        return Ok(if double.is_finite() {
            Value::Float(double)
        } else {
            Value::Json(number.as_str().into())
        });
    }
    Ok(match (number.whole(), number.whole()) {
        (Some(value), _) => Value::Integer(value),
        (None, Some(value)) => Value::Unsigned(value),
        (None, None) => Value::Json(number.as_str().into()),
    })
}

/// A list of scalars, item by item; one of lists or objects as the text that it is.
fn list<'a>(reader: &mut Reader<'a>) -> Result<Value<'a>, Fault> {
    let mut whole = reader.clone();
    let mut items = vec![];
    reader.enter_array()?;
    while reader.next_item()? {
        if matches!(reader.peek()?, Kind::Array | Kind::Object | Kind::Null) {
            let json = whole.skip()?;
            *reader = whole;
            return Ok(Value::Json(json.into()));
        }
        items.push(value(reader)?);
    }
    Ok(Value::List(items))
}
