//! A record a line.

use std::io::Read;

use super::{Fault, Form, Intake, LoadError, TelemetryEvent};
use crate::lines::{Line, Lines};

/// A line in which nothing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blank {
    /// It is nothing.
    PassedOver,
    /// It is a record that is no JSON.
    Judged,
}

pub(super) fn load<R: Read>(
    mut lines: Lines<R>,
    blank: Blank,
    has_mark: bool,
    intake: &mut Intake<'_>,
) -> Result<Form, LoadError> {
    let mut number = 0;
    loop {
        let read = lines.next().map_err(|source| LoadError::Input { line: number + 1, source })?;
        let Some(line) = read else { return Ok(Form::Lines) };
        number = line.number;
        let is_judged = blank == Blank::Judged || !line.bytes.trim_ascii().is_empty();
        if has_mark && number == 1 {
            intake.take(intake.place(number, 0), Err(Fault::ByteOrderMark));
        } else if is_judged {
            let options = intake.options;
            let event = text(&line).and_then(|text| TelemetryEvent::from_json(text, options));
            intake.take(intake.place(line.number, line.offset), event);
        }
    }
}

fn text<'l>(line: &Line<'l>) -> Result<&'l str, Fault> {
    if line.too_long {
        return Err(Fault::TooLong);
    }
    std::str::from_utf8(line.bytes)
        .map_err(|error| Fault::NotUtf8 { valid_up_to: error.valid_up_to() })
}
