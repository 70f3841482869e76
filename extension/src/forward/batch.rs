//! The lines of one request: one line, or several of one type that follow each other.

use super::dead_letters::{DeadLetter, Line};
use super::line::{self, Event, Unpostable};
use super::source::{Flow, LogLine};

/// Lines that go together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// `None`: a line a request.
    most_bytes: Option<u64>,
    kind: String,
    bytes: u64,
    pub(super) items: Vec<Item>,
    /// A line that cannot be posted; it is alone.
    pub(super) unpostable: Option<(Item, Unpostable)>,
}

/// A line and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) file: String,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

impl Batch {
    pub(super) fn new(most_bytes: Option<u64>) -> Self {
        Self { most_bytes, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.unpostable.is_none()
    }

    /// Takes the next line, unless it belongs to another request.
    pub(super) fn offer(&mut self, line: &LogLine<'_>) -> Flow {
        if line.bytes.iter().all(u8::is_ascii_whitespace) && !line.is_too_long {
            return Flow::Continue;
        }
        let read = if line.is_too_long { Err(Unpostable::TooLong) } else { line::read(line.bytes) };
        match read {
            Ok(event) => self.offer_event(&event, line),
            Err(_) if !self.items.is_empty() => Flow::StopBefore,
            Err(fault) => {
                self.unpostable = Some((Item::new(line), fault));
                Flow::StopAfter
            }
        }
    }

    fn offer_event(&mut self, event: &Event<'_>, line: &LogLine<'_>) -> Flow {
        let bytes = self.bytes.saturating_add(line.bytes.len() as u64);
        let has_room = self.most_bytes.is_some_and(|most| bytes <= most);
        if self.items.is_empty() {
            self.kind = event.kind.to_string();
        } else if self.kind != event.kind || !has_room {
            return Flow::StopBefore;
        }
        self.items.push(Item::new(line));
        self.bytes = bytes;
        if has_room { Flow::Continue } else { Flow::StopAfter }
    }
}

impl Item {
    fn new(line: &LogLine<'_>) -> Self {
        Self { file: line.file.to_string(), offset: line.offset, bytes: line.bytes.to_vec() }
    }

    /// The line as it goes to the dead letters.
    pub(super) fn into_letter(
        self,
        reason: &'static str,
        status: Option<u16>,
        message: String,
        time_ns: u64,
    ) -> DeadLetter {
        let line = Line::new(&self.bytes);
        DeadLetter { time_ns, file: self.file, offset: self.offset, reason, status, message, line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(batch: &mut Batch, bytes: &[u8]) -> Flow {
        batch.offer(&LogLine { file: &"/a.log", offset: 0, bytes, is_too_long: false })
    }

    const A: &[u8] = br#"{"type":"a"}"#;
    const B: &[u8] = br#"{"type":"b"}"#;

    #[test]
    fn without_batches_each_line_is_a_request() {
        let mut batch = Batch::new(None);
        assert_eq!(offer(&mut batch, b" \r"), Flow::Continue, "an empty line is none");
        assert!(batch.is_empty());
        assert_eq!(offer(&mut batch, A), Flow::StopAfter);
        assert_eq!(batch.items.len(), 1);
    }

    #[test]
    fn a_batch_ends_before_another_type_a_faulty_line_or_too_many_bytes() {
        for next in [B, b"{"] {
            let mut batch = Batch::new(Some(1_000));
            assert_eq!(offer(&mut batch, A), Flow::Continue);
            assert_eq!(offer(&mut batch, A), Flow::Continue);
            assert_eq!(offer(&mut batch, next), Flow::StopBefore);
            assert_eq!(batch.items.len(), 2);
        }
        let mut batch = Batch::new(Some(2 * A.len() as u64));
        assert_eq!(offer(&mut batch, A), Flow::Continue);
        assert_eq!(offer(&mut batch, A), Flow::Continue);
        assert_eq!(offer(&mut batch, A), Flow::StopBefore);
        let mut batch = Batch::new(Some(3));
        assert_eq!(offer(&mut batch, A), Flow::StopAfter, "one line always fits");
    }

    #[test]
    fn a_line_that_cannot_be_posted_is_alone() {
        let mut batch = Batch::new(Some(1_000));
        assert_eq!(offer(&mut batch, b"\xff"), Flow::StopAfter);
        assert_eq!(batch.unpostable.unwrap().1.reason(), "not_utf8");
        let mut batch = Batch::new(None);
        let line = LogLine { file: &"/a.log", offset: 0, bytes: A, is_too_long: true };
        assert_eq!(batch.offer(&line), Flow::StopAfter);
        assert_eq!(batch.unpostable.unwrap().1.reason(), "too_long");
    }
}
