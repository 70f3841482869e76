//! The bytes of a file, plain or compressed, from any place on.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use flate2::read::MultiGzDecoder;

use super::fingerprint::{Ends, LENGTH};

/// Most bytes that a compressed file may unpack to.
const MOST_UNPACKED: u64 = 4 << 30;

/// An open file.
pub(super) enum Content {
    /// Read where it is asked for.
    Plain(File),
    /// Read from the beginning.
    Packed(Box<MultiGzDecoder<io::BufReader<File>>>, u64),
}

impl Content {
    pub(super) fn new(file: File, is_packed: bool) -> Self {
        match is_packed {
            true => Self::Packed(Box::new(MultiGzDecoder::new(io::BufReader::new(file))), 0),
            false => Self::Plain(file),
        }
    }

    /// Reads the bytes at `position`, which must not lie before what a compressed file has given.
    pub(super) fn read_at(&mut self, into: &mut [u8], position: u64) -> io::Result<usize> {
        loop {
            let read = match self {
                Self::Plain(file) => file.read_at(into, position),
                Self::Packed(decoder, at) => {
                    if *at > MOST_UNPACKED {
                        return Err(io::Error::other("it unpacks to more than 4 GiB"));
                    }
                    skip(decoder, at, position)?;
                    decoder.read(into).inspect(|count| *at += *count as u64)
                }
            };
            match read {
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// As many bytes as there are up to `length`.
    pub(super) fn stretch(&mut self, position: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while let Some(free) = bytes.get_mut(filled..).filter(|free| !free.is_empty()) {
            match self.read_at(free, position + filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// The ends of the first `length` bytes, or of all where there are fewer; and how many.
    pub(super) fn ends(&mut self, length: u64) -> io::Result<(Ends, u64)> {
        let mut ends = Ends::default();
        let mut at = 0;
        let first = usize::try_from(length).unwrap_or(LENGTH).min(LENGTH);
        let head = self.stretch(0, first)?;
        at += head.len() as u64;
        ends.extend(&head);
        let end = match self {
            Self::Plain(file) => file.metadata()?.len().min(length),
            Self::Packed(..) => length,
        };
        if matches!(self, Self::Plain(_)) {
            at = at.max(end.saturating_sub(LENGTH as u64));
        }
        let mut buffer = vec![0; 64 << 10];
        while at < end {
            let room = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
            let count = self.read_at(buffer.get_mut(..room).unwrap_or_default(), at)?;
            if count == 0 {
                break;
            }
            ends.extend(buffer.get(..count).unwrap_or_default());
            at += count as u64;
        }
        Ok((ends, at))
    }
}

/// Passes over the bytes before `position`.
fn skip(decoder: &mut impl Read, at: &mut u64, position: u64) -> io::Result<()> {
    let missing = position.saturating_sub(*at);
    *at += io::copy(&mut decoder.by_ref().take(missing), &mut io::sink())?;
    Ok(())
}
