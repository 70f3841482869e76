//! Where lines come from: event logs that are followed from pass to pass.

use std::fmt::Display;

/// A whole line of an event log.
#[derive(Clone, Copy)]
pub struct LogLine<'a> {
    /// The log.
    pub file: &'a dyn Display,
    /// Bytes of the log before the line.
    pub offset: u64,
    /// The line without its end.
    pub bytes: &'a [u8],
    /// The line is longer than any is read; `bytes` is its beginning.
    pub is_too_long: bool,
}

/// What to do after a line was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The line is taken; show the next.
    Continue,
    /// The line is taken; show none for now.
    StopAfter,
    /// The line is not taken; show it again the next time.
    StopBefore,
}

/// Why lines could not be read, or what was read could not be remembered.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Event logs that are followed.
pub trait Source {
    /// Shows lines in the order of their logs, from behind the last one that was taken, until
    /// `take` says stop or there is none.
    ///
    /// # Errors
    /// [`SourceError`].
    fn read(&mut self, take: &mut dyn FnMut(&LogLine<'_>) -> Flow) -> Result<(), SourceError>;

    /// Remembers that all lines that were taken are settled: no later pass is shown them again.
    ///
    /// # Errors
    /// [`SourceError`]; a later pass is then shown some of them again.
    fn commit(&mut self) -> Result<(), SourceError>;
}
