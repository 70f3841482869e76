//! How much a reader may remember of all sessions together.

/// Bytes of names and texts, with what each costs besides.
const LIMIT: usize = 64 << 20;

/// What one text costs besides its letters: its place, its hash and its id, at most.
const ENTRY: usize = 96;

/// What is left.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
}

/// The reader remembers as much as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more: {LIMIT} bytes of all sessions are remembered already")]
pub(super) struct Spent;

impl Default for Budget {
    fn default() -> Self {
        Self { left: LIMIT }
    }
}

impl Budget {
    /// Takes what remembering that text costs.
    pub(super) fn take(&mut self, text: &str) -> Result<(), Spent> {
        self.left = self.left.checked_sub(text.len() + ENTRY).ok_or(Spent)?;
        Ok(())
    }
}
