//! Lines that the backend will never take, for a person to look at.
//!
//! ```text
//! <state>/dead-letters/forward.ndjson      the youngest, a JSON object a line
//! <state>/dead-letters/forward.1.ndjson    older ones, up to 3; the oldest goes first
//! ```
//!
//! Each holds a quarter of `forward.max_dead_letters`. A killed pass may leave a letter twice: its
//! line is then refused, and set aside, once more.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::atomic_file;

/// Files that are kept, the youngest included.
const FILES: u64 = 4;

/// A line and why it lies here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetter {
    /// When, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The log that the line stands in.
    pub file: String,
    /// The line's number in it, from 1.
    #[serde(rename = "line")]
    pub number: u64,
    /// Bytes of the log before the line.
    pub offset: u64,
    /// `refused` by the backend, or why the line could not be posted.
    pub reason: &'static str,
    /// The backend's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The backend's words, or what is wrong with the line.
    pub message: String,
    /// The line.
    #[serde(flatten)]
    pub line: Line,
}

/// A line in a form that JSON holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// Text as it stands; of a line that is too long, its beginning.
    Data(String),
    /// What is no text, two digits a byte.
    DataHex(String),
}

impl Line {
    /// Takes a line as it stands in a log.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Data(text.to_owned()),
            Err(_) => Self::DataHex(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        }
    }
}

/// Why a line could not be set aside.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}; the state folder must be writable, and its disk not full")]
pub struct DeadLetterError {
    path: PathBuf,
    source: io::Error,
}

/// The folder of dead letters.
#[derive(Debug)]
pub struct DeadLetters {
    folder: PathBuf,
    most_per_file: u64,
    /// Open once there is something to write; with its size.
    youngest: Option<(File, u64)>,
    /// Something was written that a power cut could still take.
    is_dirty: bool,
}

impl DeadLetters {
    /// The dead letters of one state folder, at most `max_bytes` of them. Touches nothing.
    #[must_use]
    pub fn new(state: &Path, max_bytes: u64) -> Self {
        let folder = state.join("dead-letters");
        Self { folder, most_per_file: (max_bytes / FILES).max(1), youngest: None, is_dirty: false }
    }

    /// Where the youngest lie.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.place(0)
    }

    /// Bytes that lie there.
    #[must_use]
    pub fn size(&self) -> u64 {
        let sizes = (0..FILES).filter_map(|age| Some(self.place(age).metadata().ok()?.len()));
        sizes.sum()
    }

    /// Sets a line aside.
    ///
    /// # Errors
    /// [`DeadLetterError`]; the line may then lie there in part.
    pub fn add(&mut self, letter: &DeadLetter) -> Result<(), DeadLetterError> {
        self.append(letter).map_err(|source| DeadLetterError { path: self.path(), source })
    }

    /// Makes what was set aside survive a power cut.
    ///
    /// # Errors
    /// [`DeadLetterError`].
    pub fn sync(&mut self) -> Result<(), DeadLetterError> {
        let Some((file, _)) = self.youngest.as_ref().filter(|_| self.is_dirty) else {
            return Ok(());
        };
        let synced = file.sync_data().and_then(|()| atomic_file::sync_folder(&self.folder));
        synced.map_err(|source| DeadLetterError { path: self.path(), source })?;
        self.is_dirty = false;
        Ok(())
    }

    fn append(&mut self, letter: &DeadLetter) -> io::Result<()> {
        let mut line = serde_json::to_vec(letter)?;
        line.push(b'\n');
        let is_full = |size: u64, most| size > 0 && size.saturating_add(line.len() as u64) > most;
        let (mut file, mut size) = match self.youngest.take() {
            Some(open) => open,
            None => self.open()?,
        };
        if is_full(size, self.most_per_file) {
            file.sync_data()?;
            self.rotate()?;
            (file, size) = self.open()?;
        }
        self.is_dirty = true;
        file.write_all(&line)?;
        self.youngest = Some((file, size + line.len() as u64));
        Ok(())
    }

    /// The youngest file and its size; what a kill has torn in it gets its line end.
    fn open(&self) -> io::Result<(File, u64)> {
        fs::create_dir_all(&self.folder)?;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(self.place(0))?;
        let size = file.metadata()?.len();
        let mut last = [b'\n'];
        if size > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        if last == [b'\n'] {
            return Ok((file, size));
        }
        file.write_all(b"\n")?;
        Ok((file, size + 1))
    }

    /// Makes room for a new youngest file; the oldest goes.
    fn rotate(&self) -> io::Result<()> {
        let oldest = self.place(FILES - 1);
        if let Ok(gone) = fs::read(&oldest) {
            let lines = gone.iter().filter(|byte| **byte == b'\n').count();
            tracing::warn!(
                "{}: {lines} dead letters removed to stay within forward.max_dead_letters",
                oldest.display()
            );
        }
        for age in (0..FILES - 1).rev() {
            match fs::rename(self.place(age), self.place(age + 1)) {
                Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
                _ => {}
            }
        }
        Ok(())
    }

    fn place(&self, age: u64) -> PathBuf {
        match age {
            0 => self.folder.join("forward.ndjson"),
            age => self.folder.join(format!("forward.{age}.ndjson")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(offset: u64, line: &[u8]) -> DeadLetter {
        DeadLetter {
            time_ns: 5,
            file: "/var/log/a.device.log".into(),
            number: 3,
            offset,
            reason: "refused",
            status: Some(400),
            message: "no such column".into(),
            line: Line::new(line),
        }
    }

    fn read(path: &Path) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(path).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    #[test]
    fn a_letter_says_what_was_refused_where_and_why() {
        let state = tempfile::tempdir().unwrap();
        let mut letters = DeadLetters::new(state.path(), 1 << 20);
        letters.add(&letter(7, b"{\"type\":\"a\"}")).unwrap();
        letters.add(&letter(19, b"\xff{")).unwrap();
        letters.sync().unwrap();
        let found = read(&letters.path());
        assert_eq!(
            found[0],
            serde_json::json!({
                "time_ns": 5,
                "file": "/var/log/a.device.log",
                "line": 3,
                "offset": 7,
                "reason": "refused",
                "status": 400,
                "message": "no such column",
                "data": "{\"type\":\"a\"}",
            })
        );
        assert_eq!(found[1]["data_hex"], "ff7b");
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let state = tempfile::tempdir().unwrap();
        let most = 8 * 1_024;
        let mut letters = DeadLetters::new(state.path(), most);
        for offset in 0..200 {
            if offset % 7 == 0 {
                // Another pass goes on where the last one ended.
                letters = DeadLetters::new(state.path(), most);
            }
            letters.add(&letter(offset, b"{\"type\":\"a\"}")).unwrap();
            assert!(letters.size() <= most);
        }
        let oldest_first = (0..FILES).rev().flat_map(|age| read(&letters.place(age)));
        let offsets: Vec<_> =
            oldest_first.map(|letter| letter["offset"].as_u64().unwrap()).collect();
        let first = 200 - offsets.len() as u64;
        assert_eq!(offsets, (first..200).collect::<Vec<_>>());
        assert!(offsets.len() > 20, "{offsets:?}");
    }

    #[test]
    fn a_letter_that_a_kill_tore_spoils_no_other() {
        let state = tempfile::tempdir().unwrap();
        let mut letters = DeadLetters::new(state.path(), 1 << 20);
        letters.add(&letter(1, b"{}")).unwrap();
        let path = letters.path();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"time_").unwrap();
        DeadLetters::new(state.path(), 1 << 20).add(&letter(2, b"{}")).unwrap();
        let offsets: Vec<_> = read(&path).iter().map(|letter| letter["offset"].clone()).collect();
        assert_eq!(offsets, [1, 2]);
    }
}
