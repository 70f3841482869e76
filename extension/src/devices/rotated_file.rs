//! A file that is only appended to, a line at a time and each by one call, and that never grows
//! beyond its limit: it then takes `.1` behind its name, in place of the one that has it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::libc;

/// Behind the name of the file before.
const BEFORE: &str = ".1";

/// Who may read it: everybody, since every user may ask the driver the same.
const MODE: u32 = 0o644;

/// How every line begins: what ends in something else is not ours to cut.
const LINE_START: &[u8] = b"{\"schema_version\":";

/// How much of the end of a file is looked through for the last whole line; far more than a line.
const END: u64 = 64 << 10;

/// Why lines could not be appended.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}; {written} lines were written, none of them in part")]
pub struct AppendError {
    path: PathBuf,
    written: usize,
    source: io::Error,
}

/// Appends lines, each of which ends with its line feed. The one writer of the file holds
/// warpgauge's lock. What a writer that was killed, or a power cut, left of a line is removed first.
///
/// # Errors
/// [`AppendError`]; a line that did not find room whole is then not there at all.
pub fn append(path: &Path, max_bytes: u64, lines: &[Vec<u8>]) -> Result<(), AppendError> {
    let mut written = 0;
    append_each(path, max_bytes, lines, &mut written).map_err(|source| AppendError {
        path: path.to_owned(),
        written,
        source,
    })
}

fn append_each(
    path: &Path,
    max_bytes: u64,
    lines: &[Vec<u8>],
    written: &mut usize,
) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let (mut file, mut length) = open(path)?;
    for line in lines {
        let bytes = line.len() as u64;
        if length > 0 && length.saturating_add(bytes) > max_bytes {
            fs::rename(path, before(path))?;
            (file, length) = open(path)?;
        }
        match file.write(line) {
            Ok(count) if count == line.len() => {}
            // A full disk takes what fits. Nobody else appends, so the end is ours to cut.
            result => {
                file.set_len(length)?;
                return Err(result.err().unwrap_or_else(|| io::ErrorKind::StorageFull.into()));
            }
        }
        length += bytes;
        *written += 1;
    }
    Ok(())
}

/// Opens it, through no link and never waiting for the other end of a pipe, with whole lines in it.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(MODE);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let mut file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file; name another in telemetry.output"));
    }
    let length = metadata.len();
    let start = length.saturating_sub(END);
    file.seek(SeekFrom::Start(start))?;
    let mut end = Vec::new();
    (&file).take(END).read_to_end(&mut end)?;
    if end.last().is_none_or(|last| *last == b'\n') {
        return Ok((file, length));
    }
    let whole = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let torn = end.get(whole..).unwrap_or_default();
    let is_ours = torn.iter().zip(LINE_START).all(|(found, ours)| found == ours);
    if !is_ours || (whole == 0 && start > 0) {
        let words = "it ends in something that warpgauge did not write; move it away";
        return Err(io::Error::other(words));
    }
    let length = start + whole as u64;
    file.set_len(length)?;
    Ok((file, length))
}

fn before(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(BEFORE);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
        File::create(path)?.write_all(text.as_ref())
    }

    fn line(text: &str) -> Vec<u8> {
        format!("{text}\n").into_bytes()
    }

    #[test]
    fn two_files_hold_the_last_lines_and_no_more_than_their_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.ndjson");
        for number in 10..40 {
            append(&path, 30, &[line(&format!("line {number}")), line("x")]).unwrap();
        }
        let last = fs::read_to_string(&path).unwrap();
        let text = fs::read_to_string(before(&path)).unwrap() + &last;
        assert!(text.ends_with("line 38\nx\nline 39\nx\n"), "{text}");
        assert!(last.len() <= 30 && text.len() <= 60);
        assert_eq!(folder.path().read_dir().unwrap().count(), 2);
    }

    #[test]
    fn half_a_line_that_a_killed_writer_left_is_gone_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.ndjson");
        for torn in ["{", "{\"schema_version\":2,\"timest"] {
            write(&path, format!("one\n{torn}")).unwrap();
            append(&path, 1_000, &[line("three")]).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "one\nthree\n");
            write(&path, torn).unwrap();
            append(&path, 1_000, &[line("whole")]).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "whole\n");
        }
        write(&path, "one\nof somebody else").unwrap();
        assert!(append(&path, 1_000, &[line("x")]).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\nof somebody else");
    }

    #[test]
    fn nothing_but_a_file_of_its_own_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("t.ndjson"), folder.path().join("other"));
        write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(append(&path, 1_000, &[line("x")]).is_err());
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
        let full = append(Path::new("/dev/full"), 1_000, &[line("x")]).unwrap_err();
        assert!(full.to_string().contains("no regular file"), "{full}");
        nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(append(&folder.path().join("pipe"), 1_000, &[line("x")]).is_err());
    }
}
