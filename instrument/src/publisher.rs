//! Measurement files: written under a name with a leading dot, then renamed.
//!
//! Everything goes by path and nothing is held open: the reader may put another folder in the place
//! of the one that we know, and our descriptors belong to a program that may close them. Files are
//! not synced to the disk: the program must not wait for it, and what a power cut takes here it
//! takes from the program as well.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::libc;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::gettid;
use warpgauge_wire::MeasurementFileName;

use crate::descriptors::open_above_standard;

const MODE: u32 = 0o644;

/// How often a file is written anew when its folder is exchanged at that very moment.
const ATTEMPTS: u32 = 3;

/// Writes one process's measurement files.
#[derive(Debug)]
pub struct Publisher {
    folder: PathBuf,
    last_timestamp: u128,
}

/// A file that could not be published.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct PublishError {
    path: PathBuf,
    cause: io::Error,
}

impl Publisher {
    /// Publishes into `folder`, which must exist by the time of the first file.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, last_timestamp: 0 }
    }

    /// Publishes a file with these lines, whole or not at all, and gives its name.
    ///
    /// # Errors
    /// [`PublishError`]; nothing is left behind and the lines can be published later.
    pub fn publish(&mut self, lines: &str) -> Result<String, PublishError> {
        persist(|| {
            let name = self.next_name();
            let hidden = self.folder.join(format!(".{name}"));
            let written = write_new(&hidden, lines.as_bytes()).and_then(|()| {
                let renamed = fs::rename(&hidden, self.folder.join(&name));
                renamed.inspect_err(|_| drop(fs::remove_file(&hidden)))
            });
            written.map(|()| name).map_err(|cause| PublishError { path: hidden, cause })
        })
    }

    /// A name that was never used: nanoseconds since the epoch, moved on where the clock stands or
    /// goes back.
    fn next_name(&mut self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        self.last_timestamp = now.max(self.last_timestamp + 1);
        let (tid, timestamp) = (gettid().to_string(), self.last_timestamp.to_string());
        MeasurementFileName { pid: std::process::id(), tid: &tid, timestamp: &timestamp }
            .to_string()
    }
}

/// Replaces a file, whole or not at all: written under its name and `.new`, then renamed.
///
/// # Errors
/// [`PublishError`]; what was there before stands.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), PublishError> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    // One that was left half written, by a process that had our pid.
    let _removed = fs::remove_file(&new);
    let written = write_new(&new, bytes)
        .and_then(|()| fs::rename(&new, path).inspect_err(|_| drop(fs::remove_file(&new))));
    written.map_err(|cause| PublishError { path: new, cause })
}

/// Tries anew where the file vanished on its way: another folder has taken the place of the one that
/// it was written into.
fn persist(
    mut attempt: impl FnMut() -> Result<String, PublishError>,
) -> Result<String, PublishError> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(error) if error.cause.kind() == io::ErrorKind::NotFound => {}
            outcome => return outcome,
        }
    }
    attempt()
}

/// Writes a file that was not there; what fails half way is taken away again.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    refuse_over_limit(bytes.len())?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(MODE).custom_flags(libc::O_NOFOLLOW);
    let file = open_above_standard(&options, path)?;
    // The program's umask may have taken the reader's permission away.
    let written =
        file.set_permissions(Permissions::from_mode(MODE)).and_then(|()| (&*file).write_all(bytes));
    written.inspect_err(|_| drop(fs::remove_file(path)))
}

/// A write over the process's limit for file sizes raises SIGXFSZ, which would end the program.
fn refuse_over_limit(bytes: usize) -> io::Result<()> {
    match getrlimit(Resource::RLIMIT_FSIZE) {
        Ok((limit, _)) if (bytes as u64) > limit => Err(io::Error::from_raw_os_error(libc::EFBIG)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_appear_whole_under_names_that_only_rise() {
        let folder = tempfile::tempdir().unwrap();
        let mut publisher = Publisher::new(folder.path().to_owned());
        let published: Vec<String> =
            (0..5).map(|n| publisher.publish(&format!("4:{n}\n")).unwrap()).collect();
        assert_eq!(names(folder.path()), published);
        let first = MeasurementFileName::parse(published[0].as_bytes()).unwrap();
        assert_eq!(first.pid, std::process::id());
        assert_eq!(fs::read_to_string(folder.path().join(&published[4])).unwrap(), "4:4\n");
        let mode = fs::metadata(folder.path().join(&published[0])).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
    }

    #[test]
    fn a_clock_that_goes_back_gives_no_name_twice() {
        let mut publisher = Publisher::new("/nowhere".into());
        publisher.last_timestamp = u128::from(u64::MAX);
        assert_ne!(publisher.next_name(), publisher.next_name());
    }

    #[test]
    fn a_file_whose_folder_was_exchanged_is_written_again_and_other_failures_are_not() {
        let failure = |kind: io::ErrorKind| PublishError { path: "x".into(), cause: kind.into() };
        let mut failures = vec![io::ErrorKind::NotFound; 2];
        let outcome =
            persist(|| failures.pop().map_or(Ok("1-1-1".into()), |kind| Err(failure(kind))));
        assert_eq!(outcome.unwrap(), "1-1-1");
        let mut attempts = 0;
        let outcome = persist(|| {
            attempts += 1;
            Err(failure(io::ErrorKind::StorageFull))
        });
        assert_eq!((outcome.is_err(), attempts), (true, 1));
    }

    #[test]
    fn a_missing_folder_is_an_error_that_names_it_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let mut publisher = Publisher::new(missing.clone());
        let error = publisher.publish("4:1\n").unwrap_err().to_string();
        assert!(error.contains("missing/."), "{error}");
        fs::create_dir(&missing).unwrap();
        publisher.publish("4:1\n").unwrap();
        assert_eq!(names(&missing).len(), 1);
    }
}
