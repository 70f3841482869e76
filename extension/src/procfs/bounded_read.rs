//! Reads that end: at the file's end or at a limit, whatever the file says its size is.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::unistd::read;

use super::Unread;

/// What is asked of the kernel at a time: a page, which is what most of these files hand out at
/// once anyway.
const CHUNK: usize = 4 << 10;

/// One read into a buffer that is known to be larger than the file.
pub(super) fn read_once(file: impl AsFd, buffer: &mut [u8]) -> Result<&[u8], Unread> {
    let length = read_again(file, buffer)?;
    buffer.get(..length).ok_or(Unread::Malformed)
}

/// Replaces the content of `buffer` by the whole file.
///
/// # Errors
/// [`Unread::TooLarge`] when the file has more than `limit` bytes.
pub(super) fn read_to_end(
    file: impl AsFd,
    buffer: &mut Vec<u8>,
    limit: usize,
) -> Result<(), Unread> {
    buffer.clear();
    in_chunks(file, limit, |bytes| {
        buffer.extend_from_slice(bytes);
        true
    })
}

/// Hands the file to `take` piece by piece until it says `false` or the file ends.
///
/// # Errors
/// [`Unread::TooLarge`] when more than `limit` bytes were read without either.
pub(super) fn in_chunks(
    file: impl AsFd,
    limit: usize,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<(), Unread> {
    let mut chunk = [0; CHUNK];
    let mut total = 0;
    loop {
        let bytes = read_once(&file, &mut chunk)?;
        total += bytes.len();
        if total > limit {
            return Err(Unread::TooLarge);
        }
        if bytes.is_empty() || !take(bytes) {
            return Ok(());
        }
    }
}

/// `read(2)`, begun again when a signal interrupts it.
fn read_again(file: impl AsFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match read(&file, buffer) {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    fn file_of(size: usize) -> std::fs::File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; size]).unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_not() {
        let limit = 3 * CHUNK + 5;
        let mut buffer = b"what was there before".to_vec();
        read_to_end(file_of(limit), &mut buffer, limit).unwrap();
        assert_eq!(buffer.len(), limit);
        assert_eq!(read_to_end(file_of(limit + 1), &mut buffer, limit), Err(Unread::TooLarge));
    }

    #[test]
    fn reading_stops_where_the_taker_has_seen_enough() {
        let mut pieces = 0;
        in_chunks(file_of(10 * CHUNK), usize::MAX, |_| {
            pieces += 1;
            pieces < 3
        })
        .unwrap();
        assert_eq!(pieces, 3);
    }
}
