//! From records to Chrome's document.

use super::records;
use super::window::{DEFAULT_WINDOW, Window};
use crate::json::write;
use crate::kineto;
use crate::kineto::document::Document;
use crate::loss::Losses;
use crate::trace::{MemoryEvent, Record};

/// Writes one document.
///
/// Memory: the window, what is said of the trace behind its first event, and one entry for each
/// thread and stream.
#[derive(Debug)]
pub struct Writer {
    document: Document,
    window: Window,
    losses: Losses,
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// A writer of a new document.
    #[must_use]
    pub fn new() -> Self {
        Self::with_window(DEFAULT_WINDOW)
    }

    /// A writer that lets `bytes` of records wait until their lanes are known. A slice that begins
    /// before another that left the window earlier, on the same row, is drawn on a lane, too.
    #[must_use]
    pub fn with_window(bytes: usize) -> Self {
        Self {
            document: Document::default(),
            window: Window::new(bytes),
            losses: Losses::default(),
        }
    }

    /// What Chrome's form could not hold: nothing so far.
    #[must_use]
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Takes a record, and appends to `out` what can be written by now.
    pub fn write(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        match record {
            Record::BaseTime(base) => {
                write::integer(self.document.member("baseTimeNanoseconds", out), *base);
                return;
            }
            Record::Document { key, json } => {
                self.document.member(key, out).extend_from_slice(json.as_bytes());
                return;
            }
            _ => self.document.next_event(&mut self.window.text),
        }
        match record {
            Record::Event(event) => records::event(event, &mut self.window),
            Record::Flow(point) => records::flow(point, &mut self.window),
            Record::Memory(event) => self.memory(event),
            Record::Counter(event) => records::counter(event, &mut self.window.text),
            Record::Label(label) => kineto::write::label(label, &mut self.window.text),
            Record::Other(json) => self.window.text.extend_from_slice(json.as_bytes()),
            Record::BaseTime(_) | Record::Document { .. } => {}
        }
        if self.window.is_full() {
            self.window.release(out);
        }
    }

    /// Writes all that still waits, and closes the document.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.window.release(out);
        self.document.close(out);
    }

    fn memory(&mut self, event: &MemoryEvent<'_>) {
        kineto::write::memory(event, &mut self.window.text);
        let totals = [("allocated", event.total_allocated), ("reserved", event.total_reserved)];
        for (what, total) in totals {
            if let Some(total) = total {
                self.document.next_event(&mut self.window.text);
                records::memory_total(event, what, total, &mut self.window.text);
            }
        }
    }
}
