//! One line of a measurement file: `<primitive_id>:<measurement>`.

use std::fmt;

use crate::function::{Function, PrimitiveId};
use crate::limits::MAX_LINE_BYTES;
use crate::number::{parse_float, parse_integer, parse_short_decimal, trim};

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// What was measured.
    pub id: PrimitiveId,
    /// How much.
    pub value: Value,
}

/// A measured value, of the kind that its id asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// Ids 0 and 4: a number of instructions or launches.
    Count(u64),
    /// Ids 1 to 3: 0 to 100, finite.
    Percent(f64),
    /// Any other id: from a later module; to be counted, not guessed at.
    Unknown,
}

/// Why a line was refused. The words are for people; where it stood is the caller's to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LineFault {
    /// Longer than [`MAX_LINE_BYTES`].
    TooLong,
    /// Not exactly one colon.
    NotOneColon,
    /// What stands before the colon is no integer that fits 32 bits.
    IdNotAnInteger,
    /// What stands after the colon is no number.
    NotANumber,
    /// NaN or an infinity, written out or by overflow.
    NotFinite,
    /// Below zero.
    Negative,
    /// A percentage above 100.
    OverHundred,
    /// A count with a fraction.
    NotWhole,
    /// A count above 2^64 - 1.
    TooLarge,
}

impl LineFault {
    /// Every fault; for metrics that have one series for each.
    pub const ALL: [Self; 9] = [
        Self::TooLong,
        Self::NotOneColon,
        Self::IdNotAnInteger,
        Self::NotANumber,
        Self::NotFinite,
        Self::Negative,
        Self::OverHundred,
        Self::NotWhole,
        Self::TooLarge,
    ];

    /// A short name without blanks, for a metric's `reason`.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TooLong => "line_too_long",
            Self::NotOneColon => "not_one_colon",
            Self::IdNotAnInteger => "id_not_an_integer",
            Self::NotANumber => "not_a_number",
            Self::NotFinite => "not_finite",
            Self::Negative => "negative",
            Self::OverHundred => "percentage_over_100",
            Self::NotWhole => "count_not_whole",
            Self::TooLarge => "count_too_large",
        }
    }
}

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "longer than 256 bytes",
            Self::NotOneColon => "expected <id>:<value> with exactly one colon",
            Self::IdNotAnInteger => "the id before the colon is not an integer",
            Self::NotANumber => "the value after the colon is not a number",
            Self::NotFinite => "the value is not finite",
            Self::Negative => "the value is negative",
            Self::OverHundred => "the percentage is over 100",
            Self::NotWhole => "the count is not a whole number",
            Self::TooLarge => "the count does not fit 64 bits",
        })
    }
}

impl std::error::Error for LineFault {}

/// Reads one line, given without its `\n`.
///
/// A line of blanks alone is `None`.
///
/// # Errors
/// A [`LineFault`] that names what is wrong with it.
pub fn parse_line(line: &[u8]) -> Result<Option<Measurement>, LineFault> {
    if line.len() > MAX_LINE_BYTES {
        return Err(LineFault::TooLong);
    }
    match parse_plain(line) {
        Some(plain) => Ok(Some(plain)),
        None => parse_any(line),
    }
}

/// What modules write: one digit, a colon, a plain number, and nothing else. Millions of lines are
/// of this kind, and nothing has to be searched for in them.
fn parse_plain(line: &[u8]) -> Option<Measurement> {
    let (id, value) = match line {
        [id @ (b'0' | b'4'), b':', count @ ..] => (id, Value::Count(parse_integer(count)?)),
        [id @ b'1'..=b'3', b':', percent @ ..] => {
            let percent = parse_short_decimal(percent).filter(|percent| *percent <= 100.0)?;
            (id, Value::Percent(percent))
        }
        _ => return None,
    };
    Some(Measurement { id: PrimitiveId(u32::from(id - b'0')), value })
}

/// Every spelling, and every fault.
fn parse_any(line: &[u8]) -> Result<Option<Measurement>, LineFault> {
    let line = trim(line);
    if line.is_empty() {
        return Ok(None);
    }
    let colon = line.iter().position(|&byte| byte == b':').ok_or(LineFault::NotOneColon)?;
    let (id, value) = line.split_at(colon);
    let value = value.split_first().map_or(value, |(_, after_colon)| after_colon);
    if value.contains(&b':') {
        return Err(LineFault::NotOneColon);
    }
    let id = parse_integer(trim(id))
        .and_then(|id| u32::try_from(id).ok())
        .map(PrimitiveId)
        .ok_or(LineFault::IdNotAnInteger)?;
    let value = trim(value);
    let value = match Function::from_id(id) {
        Some(Function::Instructions) => Value::Count(parse_count(value)?),
        Some(Function::Occupancy | Function::Coalescence | Function::Divergence) => {
            Value::Percent(parse_percent(value)?)
        }
        None if id == PrimitiveId::LAUNCHES => Value::Count(parse_count(value)?),
        None => {
            finite(value)?;
            Value::Unknown
        }
    };
    Ok(Some(Measurement { id, value }))
}

fn finite(text: &[u8]) -> Result<f64, LineFault> {
    let value = parse_float(text).ok_or(LineFault::NotANumber)?;
    if value.is_finite() { Ok(value) } else { Err(LineFault::NotFinite) }
}

fn parse_percent(text: &[u8]) -> Result<f64, LineFault> {
    let value = finite(text)?;
    if value < 0.0 {
        Err(LineFault::Negative)
    } else if value > 100.0 {
        Err(LineFault::OverHundred)
    } else {
        // Adding zero turns -0 into 0, so that no minus sign ever reaches an export.
        Ok(value + 0.0)
    }
}

/// Digits alone keep all 64 bits; other notations (`1.23457e+06`, as C++ streams write) pass
/// through an f64 and must come out whole.
fn parse_count(text: &[u8]) -> Result<u64, LineFault> {
    if let Some(count) = parse_integer(text) {
        return Ok(count);
    }
    if !text.is_empty() && text.iter().all(u8::is_ascii_digit) {
        return Err(LineFault::TooLarge);
    }
    /// 2^64, the first f64 that no u64 holds.
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    let value = finite(text)?;
    if value < 0.0 {
        Err(LineFault::Negative)
    } else if value.fract() != 0.0 {
        Err(LineFault::NotWhole)
    } else if value >= TWO_TO_64 {
        Err(LineFault::TooLarge)
    } else {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and within 0..2^64, checked above"
        )]
        Ok(value as u64)
    }
}

/// The line as the instrument writes it, with its newline.
impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Value::Count(count) => writeln!(f, "{}:{count}", self.id),
            Value::Percent(percent) => writeln!(f, "{}:{percent}", self.id),
            Value::Unknown => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value_of(line: &str) -> Result<Option<Value>, LineFault> {
        parse_line(line.as_bytes()).map(|line| line.map(|measurement| measurement.value))
    }

    #[test]
    fn spellings_of_older_modules_are_read() {
        for (line, value) in [
            ("0:17", Value::Count(17)),
            (" 0 : 17 \r", Value::Count(17)),
            ("0:1.23457e+06", Value::Count(1_234_570)),
            ("0:3.0", Value::Count(3)),
            ("0:18446744073709551615", Value::Count(u64::MAX)),
            ("1:100", Value::Percent(100.0)),
            ("2:1e1", Value::Percent(10.0)),
            ("3:-0", Value::Percent(0.0)),
            ("4:9", Value::Count(9)),
            ("77:5", Value::Unknown),
        ] {
            assert_eq!(value_of(line), Ok(Some(value)), "{line}");
        }
        assert_eq!(value_of(" \t\r"), Ok(None));
    }

    #[test]
    fn every_refusal_has_its_own_words() {
        let long = format!("1:{}", "1".repeat(MAX_LINE_BYTES));
        for (line, fault) in [
            (long.as_str(), LineFault::TooLong),
            ("5", LineFault::NotOneColon),
            ("0:1:2", LineFault::NotOneColon),
            ("x:1", LineFault::IdNotAnInteger),
            ("-1:1", LineFault::IdNotAnInteger),
            ("1.0:1", LineFault::IdNotAnInteger),
            ("4294967296:1", LineFault::IdNotAnInteger),
            ("1:", LineFault::NotANumber),
            ("1:12%", LineFault::NotANumber),
            ("1:0x10", LineFault::NotANumber),
            ("1:nan", LineFault::NotFinite),
            ("0:inf", LineFault::NotFinite),
            ("1:1e999", LineFault::NotFinite),
            ("77:nan", LineFault::NotFinite),
            ("1:-1", LineFault::Negative),
            ("0:-5", LineFault::Negative),
            ("1:100.0001", LineFault::OverHundred),
            ("0:1.5", LineFault::NotWhole),
            ("0:18446744073709551616", LineFault::TooLarge),
            ("0:1e20", LineFault::TooLarge),
        ] {
            assert_eq!(value_of(line), Err(fault), "{line}");
        }
        let mut reasons: Vec<_> = LineFault::ALL.iter().map(|fault| fault.reason()).collect();
        reasons.dedup();
        assert_eq!(reasons.len(), LineFault::ALL.len());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(id in 0_u32..5, count: u64, percent in 0.0_f64..=100.0) {
            let value = match id {
                0 | 4 => Value::Count(count),
                _ => Value::Percent(percent),
            };
            let written = Measurement { id: PrimitiveId(id), value };
            let line = written.to_string();
            let read = parse_line(line.trim_end_matches('\n').as_bytes());
            prop_assert_eq!(read, Ok(Some(written)));
        }

        #[test]
        fn the_quick_way_for_plain_lines_and_the_way_for_every_spelling_agree(
            line in "[0-5]:[0-9]{0,20}(\\.[0-9]{0,9})?",
        ) {
            if let Some(plain) = parse_plain(line.as_bytes()) {
                prop_assert_eq!(parse_any(line.as_bytes()), Ok(Some(plain)));
            }
        }

        #[test]
        fn no_line_panics_and_no_value_is_out_of_range(line: Vec<u8>) {
            if let Ok(Some(Measurement { value: Value::Percent(percent), .. })) = parse_line(&line) {
                prop_assert!((0.0..=100.0).contains(&percent));
            }
        }

        #[test]
        fn nearly_right_lines_do_not_panic(line in "[ 0-9:.eE+\\-naif\r]{0,20}") {
            let _verdict = parse_line(line.as_bytes());
        }
    }
}
