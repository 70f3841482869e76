//! What a line of an event log must be before it can be posted: text, one JSON object, and of a
//! type that can be a part of a URL.

use std::borrow::Cow;

use warpgauge_formats::json::{self, Reader};

/// The longest type that is posted, in bytes. The field's longest has 23.
const LONGEST_TYPE: usize = 256;

/// A line that can be posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its `type`, known to us or not.
    pub kind: Cow<'a, str>,
    /// The line as it stands.
    pub text: &'a str,
}

/// Why a line cannot be posted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unpostable {
    /// Longer than any line is read; only its beginning is known.
    #[error("the line is longer than {} bytes", warpgauge_formats::lines::LONGEST_LINE)]
    TooLong,
    /// Not UTF-8, which JSON is (RFC 8259, section 8.1).
    #[error("the line is not UTF-8: {0}")]
    NotUtf8(std::str::Utf8Error),
    /// No JSON, or another value than an object, or more than one.
    #[error("the line is not one JSON object: {0}")]
    NotAnObject(json::Fault),
    /// No `type`, or one that no URL can end in.
    #[error("the line has no type of 1 to {LONGEST_TYPE} bytes")]
    NoType,
}

impl Unpostable {
    /// Each, as the metric's attribute and the dead letter say it.
    pub const REASONS: [&str; 4] = ["too_long", "not_utf8", "not_an_object", "no_type"];

    /// The metric's attribute.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        let [too_long, not_utf8, not_an_object, no_type] = Self::REASONS;
        match self {
            Self::TooLong => too_long,
            Self::NotUtf8(_) => not_utf8,
            Self::NotAnObject(_) => not_an_object,
            Self::NoType => no_type,
        }
    }
}

/// Reads a line.
///
/// # Errors
/// Why it cannot be posted.
pub fn read(line: &[u8]) -> Result<Event<'_>, Unpostable> {
    let text = std::str::from_utf8(line).map_err(Unpostable::NotUtf8)?;
    let kind = kind(text).map_err(Unpostable::NotAnObject)?;
    match kind {
        // `.` and `..` would lead to another place of the backend.
        Some(kind)
            if !kind.is_empty() && kind.len() <= LONGEST_TYPE && !matches!(&*kind, "." | "..") =>
        {
            Ok(Event { kind, text })
        }
        _ => Err(Unpostable::NoType),
    }
}

/// The text of the key `type`, the last one where there are several, as most readers take it.
fn kind(text: &str) -> json::Result<Option<Cow<'_, str>>> {
    let mut reader = Reader::new(text);
    let mut kind = None;
    reader.enter_object()?;
    while let Some(key) = reader.next_key()? {
        if key == "type" && reader.peek()? == json::Kind::Text {
            kind = Some(reader.text()?);
        } else {
            reader.skip()?;
        }
    }
    reader.end()?;
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(line: &[u8]) -> &'static str {
        read(line).unwrap_err().reason()
    }

    #[test]
    fn a_line_is_one_object_with_a_type_known_or_not() {
        let event = read(br#"{"a":{"type":"inner"},"type":"perf_metric_event"}"#).unwrap();
        assert_eq!(event.kind, "perf_metric_event");
        let event = read(br#" {"type":"a\u00e9/b"} "#).unwrap();
        assert_eq!(event.kind, "a\u{e9}/b");
    }

    #[test]
    fn every_other_line_has_its_reason() {
        assert_eq!(reason(b"{\"type\":\"\xff\"}"), "not_utf8");
        for line in [&b"{\"type\":\"a\""[..], b"[1]", b"7", b"", b"{\"type\":\"a\"}{}", b"{a:1}"] {
            assert_eq!(reason(line), "not_an_object", "{}", String::from_utf8_lossy(line));
        }
        for line in [&b"{}"[..], b"{\"type\":7}", b"{\"type\":\"\"}", b"{\"type\":\"..\"}"] {
            assert_eq!(reason(line), "no_type", "{}", String::from_utf8_lossy(line));
        }
        let long = format!("{{\"type\":\"{}\"}}", "x".repeat(LONGEST_TYPE + 1));
        assert_eq!(reason(long.as_bytes()), "no_type");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_an_event_or_have_a_reason(
            line in proptest::collection::vec(proptest::num::u8::ANY, 0..64),
        ) {
            if let Err(fault) = read(&line) {
                proptest::prop_assert!(Unpostable::REASONS.contains(&fault.reason()));
            }
        }
    }
}
