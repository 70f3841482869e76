//! A record a line.

use std::io::Read;

use super::{Fault, Form, Intake, LoadError, TelemetryEvent};
use crate::lines::{Line, Lines};

pub(super) fn load(input: impl Read, intake: &mut Intake<'_>) -> Result<Form, LoadError> {
    let mut lines = Lines::new(input);
    let mut number = 0;
    loop {
        let read = lines.next().map_err(|source| LoadError::Input { line: number + 1, source })?;
        let Some(line) = read else { return Ok(Form::Lines) };
        number = line.number;
        if !line.bytes.trim_ascii().is_empty() {
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
