//! The destination `file`: OTLP JSON lines, as the OpenTelemetry Collector's file exporter writes
//! and its `otlpjsonfile` receiver reads.
//!
//! One line for each request, appended and fsynced before it counts as accepted. At 64 MiB the
//! file becomes `<path>.1`, in place of an older one, so both together stay under 128 MiB plus a
//! request.
//!
//! A pass may be killed anywhere. A line that is torn is cut off before the next is written, and
//! a line that was written but not acknowledged is recognised when it comes again, for the same
//! request makes the same bytes.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use prost::Message;

use super::json;
use super::sender::{Outcome, Sender};

/// The size at which a file gives way to a new one, in bytes.
const LARGEST_FILE: u64 = 64 * 1024 * 1024;
/// How every line begins.
const LINE_START: &[u8] = b"{\"resourceMetrics\":";
/// How much is read at a time when looking for a line's start, in bytes.
const BLOCK: usize = 64 * 1024;

/// Appends to one file.
pub(super) struct FileSender {
    path: PathBuf,
    largest: u64,
}

/// Why a line was not written. The file is as it was.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("the folder {0} does not exist; create it with `mkdir -p {0}`")]
    NoFolder(String),
    #[error("cannot be opened: {0}; let this user write it, or name another export.path")]
    Open(io::Error),
    #[error("is not a regular file; name another export.path")]
    NotRegular,
    #[error("ends in something that warpgauge did not write; move it away")]
    NotOurs,
    #[error("another process is writing it")]
    Locked,
    #[error("cannot be written: {0}")]
    Io(#[from] io::Error),
}

impl FileError {
    /// No later try fares better until a person has mended something.
    fn is_permanent(&self) -> bool {
        match self {
            Self::NoFolder(_) | Self::NotRegular | Self::NotOurs => true,
            Self::Open(error) => matches!(
                error.kind(),
                ErrorKind::NotFound
                    | ErrorKind::PermissionDenied
                    | ErrorKind::IsADirectory
                    | ErrorKind::NotADirectory
                    | ErrorKind::ReadOnlyFilesystem
            ),
            Self::Locked | Self::Io(_) => false,
        }
    }
}

impl Sender for FileSender {
    fn send(&mut self, request: &[u8], _deadline: Instant) -> Outcome {
        let request = match ExportMetricsServiceRequest::decode(request) {
            Ok(request) => request,
            Err(error) => return Outcome::refused(format!("the request is not OTLP: {error}")),
        };
        match self.append(&json::line(&request)) {
            Ok(()) => Outcome::Accepted,
            Err(error) => {
                let reason = format!("{}: {error}", self.path.display());
                if error.is_permanent() {
                    Outcome::misconfigured(reason)
                } else {
                    Outcome::retry(reason)
                }
            }
        }
    }
}

impl FileSender {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), largest: LARGEST_FILE }
    }

    fn append(&self, line: &[u8]) -> Result<(), FileError> {
        let mut file = self.open()?;
        let mut length = self.cut_torn_line(&file)?;
        if ends_with(&file, length, line)? {
            return Ok(());
        }
        if length > 0 && length + line.len() as u64 > self.largest {
            std::fs::rename(&self.path, rotated(&self.path))?;
            file = self.open()?;
            length = 0;
        }
        let written = file.write_all(line).and_then(|()| file.sync_data());
        if written.is_err() {
            // A full disk may have taken half a line. Should this fail too, the next send mends it.
            let _ = file.set_len(length);
        }
        Ok(written?)
    }

    /// Opens the file for this process alone, and makes it where there is none.
    fn open(&self) -> Result<File, FileError> {
        let mut options = OpenOptions::new();
        // Without O_NONBLOCK, opening a pipe could wait for ever.
        options.read(true).append(true).custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let file = match options.clone().create_new(true).mode(0o644).open(&self.path) {
            Ok(file) => {
                file.set_permissions(Permissions::from_mode(0o644))?;
                File::open(folder)?.sync_all()?;
                file
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(FileError::NoFolder(folder.display().to_string()));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                options.open(&self.path).map_err(FileError::Open)?
            }
            Err(error) => return Err(FileError::Open(error)),
        };
        if !file.metadata()?.is_file() {
            return Err(FileError::NotRegular);
        }
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(FileError::Locked),
            // Some network file systems have no locks.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(file),
            Err(TryLockError::Error(error)) => Err(FileError::Io(error)),
        }
    }

    /// Cuts off what a killed pass left of a line. The length of what remains, in bytes.
    fn cut_torn_line(&self, file: &File) -> Result<u64, FileError> {
        let length = file.metadata()?.len();
        let start = last_line_start(file, length)?;
        if start == length {
            return Ok(length);
        }
        let mut torn =
            vec![0; LINE_START.len().min(usize::try_from(length - start).unwrap_or(BLOCK))];
        file.read_exact_at(&mut torn, start)?;
        if !LINE_START.starts_with(&torn) {
            return Err(FileError::NotOurs);
        }
        file.set_len(start)?;
        file.sync_data()?;
        tracing::warn!(
            "{}: cut off {} bytes of a line that was never finished; its request is sent again",
            self.path.display(),
            length - start
        );
        Ok(start)
    }
}

/// Where the text after the last newline begins: the length itself if nothing follows it.
fn last_line_start(file: &File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut block = vec![0; BLOCK];
    while end > 0 {
        let start = end.saturating_sub(BLOCK as u64);
        let size = usize::try_from(end - start).unwrap_or(BLOCK);
        let part = block.get_mut(..size).unwrap_or_default();
        file.read_exact_at(part, start)?;
        if let Some(newline) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// The file's last line is `line`, newline included.
fn ends_with(file: &File, length: u64, line: &[u8]) -> io::Result<bool> {
    let Some(start) = length.checked_sub(line.len() as u64) else {
        return Ok(false);
    };
    let mut tail = vec![0; line.len()];
    file.read_exact_at(&mut tail, start)?;
    // The line begins with its brace, and no line has a newline inside: what equals it is whole.
    Ok(tail == line)
}

fn rotated(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".1");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(folder: &Path, largest: u64) -> FileSender {
        FileSender { path: folder.join("metrics.otlp.jsonl"), largest }
    }

    fn line(number: u32) -> Vec<u8> {
        format!("{{\"resourceMetrics\":[{number}]}}\n").into_bytes()
    }

    fn lines(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| line(*number)).collect()
    }

    #[test]
    fn a_full_file_gives_way_and_a_second_one_replaces_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let sender = sender(folder.path(), lines(&[1, 2]).len() as u64);
        for number in 1..=5 {
            sender.append(&line(number)).unwrap();
        }
        assert_eq!(std::fs::read(&sender.path).unwrap(), lines(&[5]));
        assert_eq!(std::fs::read(rotated(&sender.path)).unwrap(), lines(&[3, 4]));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_line_larger_than_a_file_may_be_is_written_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let sender = sender(folder.path(), 10);
        sender.append(&line(1)).unwrap();
        assert_eq!(std::fs::read(&sender.path).unwrap(), line(1));
    }

    #[test]
    fn a_line_is_torn_anywhere_and_mended() {
        for torn in 1..line(2).len() {
            let folder = tempfile::tempdir().unwrap();
            let sender = sender(folder.path(), LARGEST_FILE);
            sender.append(&line(1)).unwrap();
            let mut file = OpenOptions::new().append(true).open(&sender.path).unwrap();
            file.write_all(&line(2)[..torn]).unwrap();
            sender.append(&line(2)).unwrap();
            assert_eq!(std::fs::read(&sender.path).unwrap(), lines(&[1, 2]), "torn at {torn}");
        }
    }

    #[test]
    fn a_torn_line_is_found_beyond_a_block() {
        let folder = tempfile::tempdir().unwrap();
        let sender = sender(folder.path(), LARGEST_FILE);
        sender.append(&line(1)).unwrap();
        let mut file = OpenOptions::new().append(true).open(&sender.path).unwrap();
        file.write_all(LINE_START).unwrap();
        file.write_all(&vec![b'x'; 2 * BLOCK]).unwrap();
        sender.append(&line(2)).unwrap();
        assert_eq!(std::fs::read(&sender.path).unwrap(), lines(&[1, 2]));
    }

    #[test]
    fn a_line_that_comes_again_is_there_once() {
        let folder = tempfile::tempdir().unwrap();
        let sender = sender(folder.path(), LARGEST_FILE);
        for number in [1, 2, 2, 3, 3] {
            sender.append(&line(number)).unwrap();
        }
        assert_eq!(std::fs::read(&sender.path).unwrap(), lines(&[1, 2, 3]));
    }

    #[test]
    fn two_processes_do_not_write_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let sender = sender(folder.path(), LARGEST_FILE);
        let held = sender.open().unwrap();
        assert!(matches!(sender.append(&line(1)), Err(FileError::Locked)));
        drop(held);
        sender.append(&line(1)).unwrap();
    }
}
