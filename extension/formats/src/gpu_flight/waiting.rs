//! Batches that came before the dictionary that explains them.

use std::collections::VecDeque;

use super::dictionary::Kind;
use super::rows::Type;

/// Bytes of lines that may wait in all.
const MOST_BYTES: usize = 8 << 20;

/// A line that waits, and the first id in it that nobody has explained yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) line: u64,
    pub(super) of: Type,
    pub(super) session: String,
    pub(super) text: String,
    pub(super) id: (Kind, i64),
}

/// The lines that wait, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    lines: VecDeque<Waiting>,
    bytes: usize,
}

impl Queue {
    /// Adds a line; gives back the oldest ones, where there is no room for all.
    pub(super) fn push(&mut self, waiting: Waiting) -> Vec<Waiting> {
        self.bytes += waiting.text.len();
        self.lines.push_back(waiting);
        let mut crowded_out = vec![];
        while self.bytes > MOST_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.text.len();
            crowded_out.push(oldest);
        }
        crowded_out
    }

    /// Takes out the lines of a session for whose id `is_known` now.
    pub(super) fn take(
        &mut self,
        session: &str,
        is_known: impl Fn((Kind, i64)) -> bool,
    ) -> Vec<Waiting> {
        let (ready, waiting) = std::mem::take(&mut self.lines)
            .into_iter()
            .partition(|line| line.session == session && is_known(line.id));
        self.lines = waiting;
        let ready: VecDeque<Waiting> = ready;
        self.bytes -= ready.iter().map(|line| line.text.len()).sum::<usize>();
        ready.into()
    }

    /// Whether the line that came last waits.
    pub(super) fn ends_with(&self, line: u64) -> bool {
        self.lines.back().is_some_and(|waiting| waiting.line == line)
    }

    /// Takes out all that is left.
    pub(super) fn drain(&mut self) -> Vec<Waiting> {
        self.bytes = 0;
        std::mem::take(&mut self.lines).into()
    }
}
