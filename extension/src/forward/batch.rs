//! The lines of one request: one line, or several of one type that follow each other.

use std::fmt;

use warpgauge_formats::lines::Line;

use super::dead_letters::{self, DeadLetter};
use super::journal::Settled;
use super::line::Event;
use crate::follow::FileId;

/// Lines that go together.
#[derive(Debug)]
pub(super) struct Batch {
    /// `None`: a line a request.
    most_bytes: Option<u64>,
    kind: String,
    bytes: u64,
    items: Vec<Item>,
}

/// A line and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    file: String,
    number: u64,
    offset: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) settled: Settled,
}

impl Batch {
    /// `most_bytes` of several lines; without it each line is alone.
    pub(super) fn new(most_bytes: Option<u64>) -> Self {
        Self { most_bytes, kind: String::new(), bytes: 0, items: Vec::new() }
    }

    /// Whether this event may go with those that are there.
    pub(super) fn has_room_for(&self, event: &Event<'_>) -> bool {
        let bytes = self.bytes.saturating_add(event.text.len() as u64);
        self.items.is_empty()
            || self.kind == event.kind && self.most_bytes.is_some_and(|most| bytes <= most)
    }

    /// Takes an event.
    pub(super) fn add(&mut self, event: &Event<'_>, item: Item) {
        if self.items.is_empty() {
            self.kind = event.kind.to_string();
        }
        self.bytes = self.bytes.saturating_add(event.text.len() as u64);
        self.items.push(item);
    }

    /// Whether there is no use in waiting for more.
    pub(super) fn is_full(&self) -> bool {
        !self.items.is_empty() && self.most_bytes.is_none_or(|most| self.bytes >= most)
    }

    /// Whether nothing is there.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Gives all that is there and begins anew.
    pub(super) fn take(&mut self) -> Vec<Item> {
        self.bytes = 0;
        std::mem::take(&mut self.items)
    }
}

impl Item {
    pub(super) fn new(file: &FileId, line: &Line<'_>) -> Self {
        Self {
            file: file.path.display().to_string(),
            number: line.number,
            offset: line.offset,
            bytes: line.bytes.to_vec(),
            settled: Settled::new(file, line),
        }
    }

    /// The line as it goes to the dead letters.
    pub(super) fn letter(
        &self,
        reason: &'static str,
        status: Option<u16>,
        message: String,
        time_ns: u64,
    ) -> DeadLetter {
        let Self { file, number, offset, bytes, .. } = self;
        DeadLetter {
            time_ns,
            file: file.clone(),
            number: *number,
            offset: *offset,
            reason,
            status,
            message,
            line: dead_letters::Line::new(bytes),
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::line;

    const A: &str = r#"{"type":"a"}"#;
    const B: &str = r#"{"type":"b"}"#;

    fn event(text: &str) -> Event<'_> {
        line::read(text.as_bytes()).unwrap()
    }

    fn item(text: &str) -> Item {
        let (path, family) = ("/a.log".into(), "/a.log".into());
        let file = FileId { rule: 0, stream: 1, path, family, stood: 0 };
        let bytes = text.as_bytes();
        Item::new(&file, &Line { number: 1, offset: 0, bytes, ended: true, too_long: false })
    }

    #[test]
    fn without_batches_each_line_is_a_request() {
        let mut batch = Batch::new(None);
        assert!(batch.has_room_for(&event(A)) && !batch.is_full());
        batch.add(&event(A), item(A));
        assert!(batch.is_full());
        assert!(!batch.has_room_for(&event(A)));
        assert_eq!(batch.take(), [item(A)]);
        assert!(batch.has_room_for(&event(B)));
    }

    #[test]
    fn a_batch_ends_before_another_type_or_too_many_bytes() {
        let mut batch = Batch::new(Some(2 * A.len() as u64 + 1));
        batch.add(&event(A), item(A));
        assert!(batch.has_room_for(&event(A)));
        assert!(!batch.has_room_for(&event(B)));
        batch.add(&event(A), item(A));
        assert!(!batch.is_full(), "a shorter line might fit");
        assert!(!batch.has_room_for(&event(A)));
        assert_eq!(batch.take().len(), 2);
        let batch = Batch::new(Some(3));
        assert!(batch.has_room_for(&event(A)), "one line always fits");
    }
}
