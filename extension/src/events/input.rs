//! Opens logs: plain, gzip or zstd, told by their first bytes and not by their names.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use indicatif::ProgressBar;
use warpgauge_formats::time::Timestamp;

/// Bytes of an unpacked log that are looked at to tell its format.
const HEAD: u64 = 256 << 10;

/// Bytes that are read of a file at once.
const READ_AHEAD: usize = 128 << 10;

/// The most bytes back to which a zstd stream may refer, as a power of two: its memory.
const ZSTD_WINDOW: u32 = 27;

/// Why a log was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused.
    #[error("{path}: {error}")]
    System {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        error: io::Error,
    },
    /// A folder stands where a file should.
    #[error("{path} is a folder; name its files, or give `--from parquet` for tables")]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// A single table stands where a log should.
    #[error("{path} is a Parquet table; give the folder that holds all tables of the session")]
    Table {
        /// The file.
        path: PathBuf,
    },
}

/// A log that is being read, unpacked.
pub struct Input {
    /// The file's path, or `standard input`.
    pub name: String,
    /// When the file was last written to.
    pub modified: Option<Timestamp>,
    /// How it is packed.
    pub packing: Packing,
    head: Cursor<Vec<u8>>,
    fault: Option<io::Error>,
    rest: Box<dyn Read>,
}

/// How a log is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Packing {
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or one of the frames to be skipped (RFC 8878, 3.1.2).
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::Plain,
        }
    }

    /// The name of the stream, for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

impl Input {
    /// Opens a file, or standard input for `-`. `bar` advances by each byte that is read.
    ///
    /// # Errors
    /// Where the system refuses, or what stands there is no log.
    pub fn open(path: &Path, bar: &ProgressBar) -> Result<Self, OpenError> {
        let system = |error| OpenError::System { path: path.to_owned(), error };
        if path == Path::new("-") {
            return Self::new("standard input".to_owned(), None, io::stdin()).map_err(system);
        }
        let file = File::open(path).map_err(system)?;
        let metadata = file.metadata().map_err(system)?;
        if metadata.is_dir() {
            return Err(OpenError::Folder { path: path.to_owned() });
        }
        let modified = metadata.modified().ok();
        let since_epoch = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let modified =
            since_epoch.and_then(|time| i64::try_from(time.as_nanos()).ok()).map(Timestamp);
        // A pipe's time says nothing about its log.
        let modified = modified.filter(|_| metadata.is_file());
        let name = path.display().to_string();
        let file = BufReader::with_capacity(READ_AHEAD, bar.wrap_read(file));
        let input = Self::new(name, modified, file).map_err(system)?;
        if input.head.get_ref().starts_with(b"PAR1") {
            return Err(OpenError::Table { path: path.to_owned() });
        }
        Ok(input)
    }

    fn new(
        name: String,
        modified: Option<Timestamp>,
        mut raw: impl Read + 'static,
    ) -> io::Result<Self> {
        let mut magic = vec![];
        Read::by_ref(&mut raw).take(4).read_to_end(&mut magic)?;
        let packing = Packing::of(&magic);
        let raw = Cursor::new(magic).chain(raw);
        let mut rest: Box<dyn Read> = match packing {
            Packing::Plain => Box::new(raw),
            Packing::Gzip => Box::new(MultiGzDecoder::new(BufReader::new(raw))),
            Packing::Zstd => {
                let mut decoder = zstd::Decoder::new(raw)?;
                decoder.window_log_max(ZSTD_WINDOW)?;
                Box::new(decoder)
            }
        };
        let mut head = vec![];
        let fault = Read::by_ref(&mut rest).take(HEAD).read_to_end(&mut head).err();
        Ok(Self { name, modified, packing, head: Cursor::new(head), fault, rest })
    }

    /// The log's first bytes, unpacked.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        self.head.get_ref()
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.head.read(into)?;
        if count > 0 || into.is_empty() {
            return Ok(count);
        }
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => self.rest.read(into),
        }
    }
}

/// An input that fails once nobody wants to read on.
pub struct Stoppable<'s> {
    input: Input,
    stop: &'s Cell<bool>,
}

impl<'s> Stoppable<'s> {
    /// Reads `input` until `stop` says so.
    #[must_use]
    pub fn new(input: Input, stop: &'s Cell<bool>) -> Self {
        Self { input, stop }
    }
}

impl Read for Stoppable<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stop.get() {
            return Err(io::Error::other("nobody reads on"));
        }
        self.input.read(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn read(bytes: &[u8]) -> (Packing, Vec<u8>, Option<io::ErrorKind>) {
        let mut input = Input::new(String::new(), None, Cursor::new(bytes.to_vec())).unwrap();
        let mut all = vec![];
        let fault = input.read_to_end(&mut all).err().map(|fault| fault.kind());
        (input.packing, all, fault)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_packing_is_told_by_content() {
        let text = b"one\ntwo\n";
        assert_eq!(read(text), (Packing::Plain, text.to_vec(), None));
        assert_eq!(read(b""), (Packing::Plain, vec![], None));
        assert_eq!(read(&gzip(text)), (Packing::Gzip, text.to_vec(), None));
        let members = [gzip(b"one\n"), gzip(b"two\n")].concat();
        assert_eq!(read(&members), (Packing::Gzip, text.to_vec(), None));
        let frame = zstd::encode_all(&text[..], 1).unwrap();
        assert_eq!(read(&frame), (Packing::Zstd, text.to_vec(), None));
    }

    #[test]
    fn a_torn_stream_gives_what_it_has_and_then_its_fault() {
        let text: Vec<u8> = (0..100_000_u32)
            .flat_map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes())
            .collect();
        let torn = gzip(&text);
        let (packing, all, fault) = read(&torn[..torn.len() / 2]);
        assert_eq!((packing, fault), (Packing::Gzip, Some(io::ErrorKind::UnexpectedEof)));
        assert!(!all.is_empty() && text.starts_with(&all));
    }
}
