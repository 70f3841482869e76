//! Results that appear whole or not at all.
//!
//! A file has no name until it is whole: `O_TMPFILE` (open(2)) makes it, and linkat(2) names it at
//! the end. Whatever kills the program before, nothing is left behind. Where the file system has no
//! such files (NFS), a hidden temporary one takes their place, which only a kill leaves behind.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::unistd::linkat;

use super::input::Packing;

/// What may be made of a new file by others, before the umask.
const MODE: u32 = 0o666;

/// zstd's own default.
const ZSTD_LEVEL: i32 = 3;

/// A file that is being written and has no name yet.
#[derive(Debug)]
pub struct Unnamed {
    file: File,
    path: PathBuf,
    /// The temporary name, where the file system wants one.
    hidden: Option<PathBuf>,
}

impl Unnamed {
    /// A new file that is to stand at `path`.
    ///
    /// # Errors
    /// What the system answers.
    pub fn create(path: &Path) -> io::Result<Self> {
        let folder = folder_of(path);
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(MODE);
        let unnamed = options.clone().custom_flags(OFlag::O_TMPFILE.bits()).open(folder);
        if let Ok(file) = unnamed
            && by_descriptor(&file).exists()
        {
            return Ok(Self { file, path: path.to_owned(), hidden: None });
        }
        let hidden = hidden_name(path, "new")?;
        match fs::remove_file(&hidden) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
            _ => {}
        }
        let file = options.create_new(true).open(&hidden)?;
        Ok(Self { file, path: path.to_owned(), hidden: Some(hidden) })
    }

    /// The file's content, to be written.
    ///
    /// # Errors
    /// What the system answers.
    pub fn writer(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Gives the file its name. With `replace` it takes the place of a file of that name.
    ///
    /// # Errors
    /// What the system answers; `AlreadyExists` without `replace`.
    pub fn name(mut self, replace: bool) -> io::Result<()> {
        self.file.sync_all()?;
        if !replace && self.path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let named = match self.hidden.take() {
            Some(hidden) => hidden,
            None if !replace => {
                link(&self.file, &self.path)?;
                return File::open(folder_of(&self.path))?.sync_all();
            }
            None => {
                let hidden = hidden_name(&self.path, "new")?;
                match fs::remove_file(&hidden) {
                    Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
                    _ => link(&self.file, &hidden)?,
                }
                hidden
            }
        };
        fs::rename(&named, &self.path).inspect_err(|_| drop(fs::remove_file(&named)))?;
        File::open(folder_of(&self.path))?.sync_all()
    }

    /// Gives the file another name than it was made for, in the same file system.
    ///
    /// # Errors
    /// What the system answers; `AlreadyExists` where a file has that name.
    pub fn name_as(mut self, path: PathBuf) -> io::Result<()> {
        self.path = path;
        self.name(false)
    }

    /// Where the file is to stand.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            // It is only a leftover; what went wrong has been said.
            let _ = fs::remove_file(hidden);
        }
    }
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    linkat(AT_FDCWD, &by_descriptor(file), AT_FDCWD, path, AtFlags::AT_SYMLINK_FOLLOW)?;
    Ok(())
}

/// The file by its descriptor: how proc(5) and linkat(2) have it without a capability.
fn by_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// `.name.ending` beside `path`.
///
/// # Errors
/// Where `path` names no file.
pub(super) fn hidden_name(path: &Path, ending: &str) -> io::Result<PathBuf> {
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::IsADirectory)?);
    name.push(format!(".{ending}"));
    Ok(path.with_file_name(name))
}

/// The folder in which `path` stands.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The packing that a name asks for by its ending, and the name without it.
#[must_use]
pub fn packing_of(path: &Path) -> (Packing, PathBuf) {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("gz") => (Packing::Gzip, path.with_extension("")),
        Some("zst") => (Packing::Zstd, path.with_extension("")),
        _ => (Packing::Plain, path.to_owned()),
    }
}

/// Packs what is written.
pub enum Packer {
    /// Not at all.
    Plain(BufWriter<File>),
    /// RFC 1952.
    Gzip(BufWriter<GzEncoder<File>>),
    /// RFC 8878.
    Zstd(BufWriter<zstd::Encoder<'static, File>>),
}

impl Packer {
    /// Packs into `file`.
    ///
    /// # Errors
    /// Where zstd gets no memory.
    pub fn new(packing: Packing, file: File) -> io::Result<Self> {
        const BUFFER: usize = 64 << 10;
        Ok(match packing {
            Packing::Plain => Self::Plain(BufWriter::with_capacity(BUFFER, file)),
            Packing::Gzip => {
                let encoder = GzEncoder::new(file, flate2::Compression::default());
                Self::Gzip(BufWriter::with_capacity(BUFFER, encoder))
            }
            Packing::Zstd => {
                let mut encoder = zstd::Encoder::new(file, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                Self::Zstd(BufWriter::with_capacity(BUFFER, encoder))
            }
        })
    }

    /// Writes all that waits, and the stream's end.
    ///
    /// # Errors
    /// What the system answers.
    pub fn finish(self) -> io::Result<File> {
        match self {
            Self::Plain(out) => out.into_inner().map_err(io::IntoInnerError::into_error),
            Self::Gzip(out) => out.into_inner().map_err(io::IntoInnerError::into_error)?.finish(),
            Self::Zstd(out) => out.into_inner().map_err(io::IntoInnerError::into_error)?.finish(),
        }
    }
}

impl Write for Packer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
            Self::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
            Self::Zstd(out) => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_file_has_no_name_until_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let unnamed = Unnamed::create(&path).unwrap();
        unnamed.writer().unwrap().write_all(b"whole").unwrap();
        assert!(unnamed.hidden.is_some() || names(folder.path()).is_empty());
        unnamed.name(false).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["log"]);
    }

    #[test]
    fn a_file_that_is_there_is_replaced_only_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for (content, replace, expected) in
            [("old", false, "old"), ("new", false, "old"), ("new", true, "new")]
        {
            let unnamed = Unnamed::create(&path).unwrap();
            unnamed.writer().unwrap().write_all(content.as_bytes()).unwrap();
            let fault = unnamed.name(replace).err().map(|fault| fault.kind());
            assert_eq!(fault.is_some(), content != expected, "{fault:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
            assert_eq!(names(folder.path()), ["log"]);
        }
    }

    #[test]
    fn a_dropped_file_was_never_there() {
        let folder = tempfile::tempdir().unwrap();
        drop(Unnamed::create(&folder.path().join("log")).unwrap());
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
