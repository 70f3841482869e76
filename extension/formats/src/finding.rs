//! What is wrong with a line, for people and for machines.

use std::borrow::Cow;

/// How much a finding costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The line, or the named part of it, was not taken.
    Refused,
    /// The format allows it, but something about it cannot be right.
    Suspect,
}

/// One thing that is wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line, counted from 1.
    pub line: u64,
    /// Whether the line still gave its event.
    pub severity: Severity,
    /// The field as a path within the line (`memory[0].used_mib`); empty for the line as a whole.
    pub field: String,
    /// What should stand there.
    pub expected: Cow<'static, str>,
    /// What stands there, shortened to what fits a message.
    pub found: String,
}

impl Finding {
    /// A reason for which a line gives no event.
    pub fn refused(
        line: u64,
        field: impl Into<String>,
        expected: impl Into<Cow<'static, str>>,
        found: impl AsRef<str>,
    ) -> Self {
        let (field, expected) = (field.into(), expected.into());
        Self {
            line,
            severity: Severity::Refused,
            field,
            expected,
            found: shortened(found.as_ref()),
        }
    }

    /// Something odd about a line that is taken all the same.
    pub fn suspect(
        line: u64,
        field: impl Into<String>,
        expected: impl Into<Cow<'static, str>>,
        found: impl AsRef<str>,
    ) -> Self {
        Self { severity: Severity::Suspect, ..Self::refused(line, field, expected, found) }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, field, expected, found, .. } = self;
        write!(formatter, "line {line}: ")?;
        if !field.is_empty() {
            write!(formatter, "{field}: ")?;
        }
        write!(formatter, "expected {expected}, found {found}")
    }
}

/// At most 120 letters of a text, none of which steers a terminal.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 120;
    let plain =
        |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    let mut short: String = text.chars().take(LONGEST).map(plain).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}

/// Where a reader hands its results.
pub trait Sink {
    /// One event of the line with that number.
    fn event(&mut self, line: u64, event: &crate::event::Event<'_>);
    /// One thing that is wrong.
    fn finding(&mut self, finding: Finding);
    /// A field or a type that the reader does not know: nothing is wrong, but it is not handed on.
    /// `name` is a type (`perf_metric_event`) or a type and a field (`kernel.colour`).
    fn unknown(&mut self, line: u64, name: &str);
}
