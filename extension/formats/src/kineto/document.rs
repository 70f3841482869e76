//! The document around the records: members of its own before and behind the events.

use crate::json::write;

/// How far a document has been written.
///
/// What is said of the trace stands before the events where it comes before them, and behind them
/// otherwise; only the latter is kept until [`Document::close`].
#[derive(Debug, Default)]
pub(crate) struct Document {
    state: State,
    /// Members of the document that came when the events had begun.
    late: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Empty,
    /// Members of the document have been written.
    Head,
    /// `traceEvents` has been opened.
    Events,
}

impl Document {
    /// Writes the key of a member of the document, and gives the buffer for its value.
    pub(crate) fn member<'b>(&'b mut self, key: &str, out: &'b mut Vec<u8>) -> &'b mut Vec<u8> {
        let target = match self.state {
            State::Events => {
                self.late.extend_from_slice(b",\n");
                &mut self.late
            }
            State::Head => {
                out.extend_from_slice(b",\n");
                out
            }
            State::Empty => {
                self.state = State::Head;
                out.push(b'{');
                out
            }
        };
        write::text(target, key);
        target.push(b':');
        target
    }

    /// Goes to where the next event stands.
    pub(crate) fn next_event(&mut self, out: &mut Vec<u8>) {
        match self.state {
            State::Events => {
                out.extend_from_slice(b",\n");
                return;
            }
            State::Head => out.extend_from_slice(b",\n\"traceEvents\":[\n"),
            State::Empty => out.extend_from_slice(b"{\"traceEvents\":[\n"),
        }
        self.state = State::Events;
    }

    /// Closes the document.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) {
        if self.state != State::Events {
            self.next_event(out);
        }
        out.extend_from_slice(b"\n]");
        out.append(&mut self.late);
        out.extend_from_slice(b"}\n");
        self.state = State::Empty;
    }
}
