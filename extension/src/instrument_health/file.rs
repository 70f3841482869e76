//! Reading one process's health file out of a folder that everybody may write to.

use std::io::Read;

use super::{HealthReport, MAX_BYTES, ReportFault};
use crate::measurements::folder::{Folder, Opened, Refusal};

/// A file may lie this much before its process's start: file systems stamp with the tick of the
/// kernel's clock, and start times count hundredths of a second.
const START_TOLERANCE_NS: u64 = 1_000_000_000;

/// Whose file is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The process, as its own pid namespace counts.
    pub own_pid: u32,
    /// When it started, nanoseconds since the epoch.
    pub created_ns: u64,
    /// The users that its files may belong to.
    pub uids: &'a [u32],
}

/// Why a health file is not believed. Each has been left where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HealthFault {
    /// A link, pipe, socket, device or folder.
    #[error("it is not a regular file")]
    NotARegularFile,
    /// It has a second name, perhaps elsewhere.
    #[error("it has a second name (a hard link)")]
    HardLinked,
    /// Somebody else wrote it.
    #[error("it belongs to user {owner}, which the process is not: somebody else wrote it")]
    WrongOwner {
        /// The owner.
        owner: u32,
    },
    /// It is larger than any report.
    #[error("it is larger than 64 KiB")]
    TooLarge,
    /// The system refuses to open or read it.
    #[error("it cannot be read: run this as root, or as the user of the process")]
    Unreadable,
    /// Its text is not believed.
    #[error(transparent)]
    Report(#[from] ReportFault),
    /// It speaks of another process.
    #[error("it speaks of process {pid}")]
    OtherProcess {
        /// The process that it speaks of.
        pid: u32,
    },
    /// It was written before the process started, by an earlier one with the same pid.
    #[error("an earlier process with the same pid left it behind")]
    EarlierProcess,
}

/// The name of a process's health file.
#[must_use]
pub fn name_of(own_pid: u32) -> String {
    format!(".{own_pid}.health")
}

/// What the instrument says in a process; `None` where it has not said anything.
///
/// # Errors
/// [`HealthFault`]: there is a file, and it is not believed.
pub fn read(folder: &Folder, subject: Subject<'_>) -> Result<Option<HealthReport>, HealthFault> {
    let name = name_of(subject.own_pid);
    let (file, identity) = match folder.open_entry(name.as_bytes(), None) {
        Opened::File(file, identity) => (file, identity),
        Opened::Vanished => return Ok(None),
        Opened::Refused(Refusal::NotARegularFile) => return Err(HealthFault::NotARegularFile),
        Opened::Refused(Refusal::HardLinked) => return Err(HealthFault::HardLinked),
        Opened::Refused(Refusal::TooLarge) => return Err(HealthFault::TooLarge),
        Opened::Refused(_) => return Err(HealthFault::Unreadable),
    };
    if !subject.uids.contains(&identity.owner) {
        return Err(HealthFault::WrongOwner { owner: identity.owner });
    }
    let mut text = Vec::new();
    // One byte more than allowed: what grows meanwhile is noticed.
    let limited = file.take(MAX_BYTES + 1).read_to_end(&mut text);
    limited.map_err(|_| HealthFault::Unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(HealthFault::TooLarge);
    }
    if identity.modified_ns.saturating_add(START_TOLERANCE_NS) < subject.created_ns {
        return Err(HealthFault::EarlierProcess);
    }
    let report = HealthReport::parse(&text)?;
    if report.pid != subject.own_pid {
        return Err(HealthFault::OtherProcess { pid: report.pid });
    }
    Ok(Some(report))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::Path;

    use super::*;

    const TEXT: &[u8] = br#"{"version":1,"pid":42,"state":"armed","updated_ns":5}"#;

    fn write(path: &Path, text: &[u8]) {
        File::create(path).unwrap().write_all(text).unwrap();
    }

    fn look(place: &Path, subject: Subject<'_>) -> Result<Option<HealthReport>, HealthFault> {
        read(&Folder::open(place).unwrap(), subject)
    }

    #[test]
    fn only_what_a_user_of_the_process_wrote_about_it_is_believed() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join(".42.health");
        let uids = [place.path().metadata().unwrap().uid()];
        let subject = Subject { own_pid: 42, created_ns: 0, uids: &uids };
        assert_eq!(look(place.path(), subject), Ok(None));
        write(&file, TEXT);
        assert_eq!(look(place.path(), subject).unwrap().unwrap().pid, 42);
        let other = [uids[0] + 1];
        assert_eq!(
            look(place.path(), Subject { uids: &other, ..subject }),
            Err(HealthFault::WrongOwner { owner: uids[0] })
        );
        let later = Subject { created_ns: u64::MAX, ..subject };
        assert_eq!(look(place.path(), later), Err(HealthFault::EarlierProcess));
        write(&file, &TEXT.to_vec().repeat(2_000));
        assert_eq!(look(place.path(), subject), Err(HealthFault::TooLarge));
        write(&file, br#"{"version":1,"pid":43,"state":"armed","updated_ns":5}"#);
        assert_eq!(look(place.path(), subject), Err(HealthFault::OtherProcess { pid: 43 }));
    }

    #[test]
    fn links_pipes_and_folders_are_not_read() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join(".42.health");
        let uids = [place.path().metadata().unwrap().uid()];
        let subject = Subject { own_pid: 42, created_ns: 0, uids: &uids };
        let elsewhere = place.path().join("elsewhere");
        write(&elsewhere, TEXT);
        symlink(&elsewhere, &file).unwrap();
        assert_eq!(look(place.path(), subject), Err(HealthFault::NotARegularFile));
        fs::remove_file(&file).unwrap();
        fs::hard_link(&elsewhere, &file).unwrap();
        assert_eq!(look(place.path(), subject), Err(HealthFault::HardLinked));
        fs::remove_file(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(look(place.path(), subject), Err(HealthFault::NotARegularFile));
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(look(place.path(), subject), Err(HealthFault::NotARegularFile));
    }
}
