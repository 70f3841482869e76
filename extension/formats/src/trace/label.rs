//! How processes and threads are called and in which order they are drawn.

use super::{Metadata, Track};
use crate::event::Text;
use crate::time::Timestamp;

/// One word on a process or a thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Label<'a> {
    /// A time that producers write with it and that means nothing.
    pub timestamp: Option<Timestamp>,
    /// The process, and the row where the word is about one.
    pub track: Track<'a>,
    /// What is said.
    pub says: Labelled<'a>,
}

/// What is said of a process or a thread.
#[derive(Debug, Clone, PartialEq)]
pub enum Labelled<'a> {
    /// The process is called so.
    ProcessName(Text<'a>),
    /// Words beside the process's name, with commas between: `GPU 0`.
    ProcessLabels(Text<'a>),
    /// Processes are drawn in the order of these numbers.
    ProcessSortIndex(i64),
    /// The thread, or the stream, is called so.
    ThreadName(Text<'a>),
    /// The rows of a process are drawn in the order of these numbers.
    ThreadSortIndex(i64),
    /// Something else, by its name.
    Other {
        /// The name.
        name: Text<'a>,
        /// What is said.
        metadata: Metadata<'a>,
    },
}
