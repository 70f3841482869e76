//! How far each content has been read: `<state>/cursors/<consumer>.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::content::Content;
use super::discover::FileState;
use super::fingerprint::{Ends, Fingerprint};
use super::refusals::Refusals;
use crate::atomic_file::{self, Durability};

/// The layout of the file, raised when an older warpgauge could not read it.
const VERSION: u32 = 1;

/// How long a content that is nowhere to be found is remembered: its disk may come back.
const MEMORY_NS: u64 = 7 * 24 * 3_600 * 1_000_000_000;

/// How long a content may be nowhere to be found before what was not read of it is told of: it may be
/// between two names.
const PATIENCE_NS: u64 = 3_600 * 1_000_000_000;

/// Changes of a file that follow one another more closely may bear the same time: two seconds on the
/// coarsest file system that is met (FAT).
const CLOCK_TICK_NS: u64 = 2_000_000_000;

/// Most contents that are remembered though they are nowhere to be found.
const MOST_MISSING: usize = 10_000;

/// One content, whatever names it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    pub(super) path: PathBuf,
    pub(super) family: String,
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Bytes that have been taken; of a compressed file, of what it unpacks to.
    pub(super) offset: u64,
    /// Lines that have been taken.
    pub(super) lines: u64,
    pub(super) head: Fingerprint,
    /// Of the bytes before `offset`.
    pub(super) tail: Fingerprint,
    /// Whether `offset` lies within a line that is too long and has been told of.
    pub(super) in_long_line: bool,
    /// Size and last change of the file when it was last read to its end.
    pub(super) drained: Option<(u64, u64)>,
    /// When that was, nanoseconds since the epoch.
    #[serde(default)]
    pub(super) drained_at_ns: u64,
    /// The size that the file had when it was last seen.
    pub(super) size: u64,
    /// Whether the file was seen with another content in its place: it was cut off or overwritten.
    pub(super) was_replaced: bool,
    /// When it was found missing, nanoseconds since the epoch.
    pub(super) missing_since_ns: Option<u64>,
    /// Bytes that stood there when following began at the end; all of a compressed file.
    #[serde(default)]
    pub(super) stood: u64,
}

/// What another file's bytes say of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    /// It begins with all that has been taken.
    Same,
    /// It is the beginning of what has been taken: this many bytes.
    Beginning(u64),
    /// Another content.
    Other,
}

impl Cursor {
    /// At the beginning of a file.
    pub(super) fn new(path: PathBuf, family: String, state: FileState) -> Self {
        Self {
            path,
            family,
            device: state.device,
            inode: state.inode,
            offset: 0,
            lines: 0,
            head: Fingerprint::of(b""),
            tail: Fingerprint::of(b""),
            in_long_line: false,
            drained: None,
            drained_at_ns: 0,
            size: state.size,
            was_replaced: false,
            missing_since_ns: None,
            stood: 0,
        }
    }

    /// Compares what was taken with a content.
    pub(super) fn agreement(&self, content: &mut Content) -> io::Result<Agreement> {
        let (ends, length) = content.ends(self.offset)?;
        Ok(if length == self.offset && self.is_behind(&ends) {
            Agreement::Same
        } else if length < self.offset && self.head.begins(&ends.head) {
            Agreement::Beginning(length)
        } else {
            Agreement::Other
        })
    }

    /// Whether it stands behind a content with these ends.
    pub(super) fn is_behind(&self, ends: &Ends) -> bool {
        Fingerprint::of(&ends.head) == self.head && Fingerprint::of(&ends.tail) == self.tail
    }

    pub(super) fn take_ends(&mut self, ends: &Ends) {
        self.head = Fingerprint::of(&ends.head);
        self.tail = Fingerprint::of(&ends.tail);
    }

    /// Whether the file has surely nothing more than at the last look, and is still the same: what
    /// changes right after a look may leave size and time as they were.
    pub(super) fn is_drained(&self, state: FileState) -> bool {
        self.drained == Some((state.size, state.modified_ns))
            && state.modified_ns + CLOCK_TICK_NS < self.drained_at_ns
    }
}

/// All cursors of one consumer. The key is the content's number, which rises in the order of first
/// sight.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Cursors {
    version: u32,
    next: u64,
    pub(super) of: BTreeMap<u64, Cursor>,
    /// The patterns whose files have been looked for.
    #[serde(default)]
    pub(super) begun: BTreeSet<String>,
    pub(super) refused: Refusals,
}

impl Default for Cursors {
    fn default() -> Self {
        let (of, begun) = (BTreeMap::new(), BTreeSet::new());
        Self { version: VERSION, next: 1, of, begun, refused: Refusals::default() }
    }
}

/// Why the cursors cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CursorError {
    /// The file or its folder.
    #[error(
        "{path}: {source}; the state folder must be readable and writable, and its disk not full"
    )]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{path}: {fault}; remove it to read every log from its beginning again")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        fault: String,
    },
}

impl Cursors {
    /// Reads them; a missing file is a first pass.
    pub(super) fn load(path: &Path) -> Result<Self, CursorError> {
        let damaged = |fault| CursorError::Damaged { path: path.to_owned(), fault };
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(CursorError::Io { path: path.to_owned(), source }),
        };
        let cursors: Self =
            serde_json::from_slice(&text).map_err(|fault| damaged(fault.to_string()))?;
        if cursors.version != VERSION {
            return Err(damaged(format!("version {}, not {VERSION}", cursors.version)));
        }
        Ok(cursors)
    }

    /// Writes them.
    pub(super) fn store(&self, path: &Path) -> Result<(), CursorError> {
        let replace = || {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            atomic_file::replace(path, &self.to_json()?, 0o600, Durability::PowerCut)
        };
        replace().map_err(|source| CursorError::Io { path: path.to_owned(), source })
    }

    pub(super) fn to_json(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(io::Error::other)
    }

    /// Adds a cursor, gives its number.
    pub(super) fn add(&mut self, cursor: Cursor) -> u64 {
        let stream = self.next;
        self.next += 1;
        self.of.insert(stream, cursor);
        stream
    }

    /// Forgets what has not begun, and what is missing for too long. What was not read to its end
    /// before it went is told of.
    pub(super) fn forget(&mut self, now_ns: u64) {
        for cursor in self.of.values() {
            let is_gone = |since_ns| now_ns.saturating_sub(since_ns) > PATIENCE_NS;
            let is_packed = cursor.path.extension().is_some_and(|extension| extension == "gz");
            let has_torn_line = !is_packed && cursor.size > cursor.offset;
            let is_past = cursor.size <= cursor.stood;
            let is_unread = (cursor.drained.is_none() || has_torn_line) && !is_past;
            if is_unread && cursor.missing_since_ns.is_some_and(is_gone) {
                let Cursor { path, offset, .. } = cursor;
                let what = format!("{}: what came behind byte {offset}", path.display());
                self.refused.note("gone_unread", what);
            }
        }
        let mut missing: Vec<_> = self
            .of
            .iter()
            .filter_map(|(stream, cursor)| Some((cursor.missing_since_ns?, *stream)))
            .collect();
        missing.sort_unstable();
        let surplus = missing.len().saturating_sub(MOST_MISSING);
        let crowded_out = missing.iter().take(surplus).map(|(_, stream)| *stream);
        let expired = missing
            .iter()
            .filter(|(since_ns, _)| now_ns.saturating_sub(*since_ns) > MEMORY_NS)
            .map(|(_, stream)| *stream);
        for stream in crowded_out.chain(expired).collect::<Vec<_>>() {
            self.of.remove(&stream);
        }
        self.of.retain(|_, cursor| cursor.offset > 0 || cursor.stood > 0);
    }
}
