//! What a file is, told by its beginning.

use std::io::{self, Read};

use memchr::memchr;

use crate::json::Reader;
use crate::lines::LONGEST_LINE;

/// Bytes that are looked at first; they double while that does not tell.
const FIRST_LOOK: usize = 64 << 10;

/// What the beginning of a file tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    ByteOrderMark,
    /// One JSON document.
    Document,
    /// A record a line.
    Lines,
}

/// Reads the beginning of the input, at most [`LONGEST_LINE`] bytes, and tells its shape.
pub(super) fn look(input: &mut impl Read) -> io::Result<(Vec<u8>, Shape)> {
    let (mut head, mut wanted) = (vec![], FIRST_LOOK);
    loop {
        let missing = wanted - head.len();
        let at_end = input.by_ref().take(missing as u64).read_to_end(&mut head)? < missing;
        if let Some(shape) = shape(&head, at_end || wanted >= LONGEST_LINE) {
            return Ok((head, shape));
        }
        wanted *= 2;
    }
}

/// The shape; `None` where more of the input may tell another than what is there.
fn shape(head: &[u8], is_last: bool) -> Option<Shape> {
    if head.starts_with(b"\xef\xbb\xbf") {
        return Some(Shape::ByteOrderMark);
    }
    let document = is_last.then_some(Shape::Document);
    let text = head.trim_ascii_start();
    match text.first() {
        None => return document,
        Some(b'{') => {}
        Some(_) => return Some(Shape::Document),
    }
    let Some((line, rest)) = memchr(b'\n', text).and_then(|end| text.split_at_checked(end)) else {
        return document;
    };
    match (of(line), rest.trim_ascii_start().first()) {
        (Line::Torn, _) => Some(Shape::Document),
        (_, None) => document,
        (Line::Whole, Some(_)) | (Line::Broken, Some(b'{')) => Some(Shape::Lines),
        (Line::Broken, Some(_)) => Some(Shape::Document),
    }
}

enum Line {
    /// A JSON value.
    Whole,
    /// The beginning of one: it goes on in the next line.
    Torn,
    /// Neither; only a line of its own can be meant.
    Broken,
}

fn of(line: &[u8]) -> Line {
    let Ok(text) = std::str::from_utf8(line) else { return Line::Broken };
    let mut reader = Reader::new(text);
    match reader.skip().and_then(|_| reader.end()) {
        Ok(()) => Line::Whole,
        Err(fault) if fault.torn => Line::Torn,
        Err(_) => Line::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(text: &str) -> Shape {
        look(&mut text.as_bytes()).unwrap().1
    }

    #[test]
    fn lines_are_told_from_a_document() {
        for lines in ["{}\n{}", "\n {\"a\":1}\r\n\r\n{\"a\":2}\r\n", "{\"a\":01}\n{}", "{}\nx"] {
            assert_eq!(shape_of(lines), Shape::Lines, "{lines}");
        }
        for document in [
            "",
            " \n",
            "[\n{}\n]",
            "{}",
            "{}\n \n",
            "{\n\"a\":1}",
            "{\"events\":[\n{}\n]}",
            "5",
            "x\n{}",
        ] {
            assert_eq!(shape_of(document), Shape::Document, "{document}");
        }
        assert_eq!(shape_of("\u{feff}{}\n{}"), Shape::ByteOrderMark);
    }

    #[test]
    fn a_long_line_is_looked_at_to_its_end_and_no_further_than_lines_may_be() {
        let long = |length: usize| format!("{{\"a\":\"{}\"}}\n{{}}\n", "x".repeat(length));
        assert_eq!(shape_of(&long(3 * FIRST_LOOK)), Shape::Lines);
        let text = long(2 * LONGEST_LINE);
        let (head, shape) = look(&mut text.as_bytes()).unwrap();
        assert_eq!((head.len(), shape), (LONGEST_LINE, Shape::Document));
    }
}
