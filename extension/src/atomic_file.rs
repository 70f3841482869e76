//! Replaces a file so that every reader sees the old content or the new, never a part, also across
//! a power cut: temporary file in the same folder, flush, fsync, rename, fsync of the folder.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Whether the content must survive a power cut, or only a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// fsync of the file and of its folder: it is on the disk when this returns.
    PowerCut,
    /// No fsync: the kernel holds it, so the death of any process leaves it whole.
    ProcessDeath,
}

/// Behind the name of a temporary file.
const SUFFIX: &str = ".new";

/// Replaces `path` by a file of this content and mode. One writer at a time: everything of
/// warpgauge that writes holds its lock.
///
/// The temporary file's name is the same each time, so that what a killed writer left is the next
/// one's to replace and never piles up.
///
/// # Errors
/// Whatever the system says; the old content then stands untouched, and no temporary file is left.
pub fn replace(path: &Path, content: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    let folder = folder_of(path);
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().ok_or(io::ErrorKind::IsADirectory)?);
    let mut stale = prefix.clone();
    stale.push(SUFFIX);
    match fs::remove_file(folder.join(stale)) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
        _ => {}
    }
    let mut builder = tempfile::Builder::new();
    // Removed when dropped, unless it becomes the file.
    let mut temporary = builder.prefix(&prefix).suffix(SUFFIX).rand_bytes(0).tempfile_in(folder)?;
    fill(temporary.as_file_mut(), content, mode, durability)?;
    temporary.persist(path).map_err(|fault| fault.error)?;
    match durability {
        Durability::PowerCut => sync_folder(folder),
        Durability::ProcessDeath => Ok(()),
    }
}

/// Writes a file that must not exist yet, through no link.
///
/// # Errors
/// Whatever the system says; a part may then be there.
pub fn write_new(path: &Path, content: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    fill(&mut file, content, mode, durability)
}

fn fill(file: &mut File, content: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    file.write_all(content)?;
    // The umask may have taken bits away.
    file.set_permissions(Permissions::from_mode(mode))?;
    match durability {
        Durability::PowerCut => file.sync_all(),
        Durability::ProcessDeath => Ok(()),
    }
}

/// Makes the names in a folder survive a power cut.
///
/// # Errors
/// Whatever the system says.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_has_the_new_content_and_mode_and_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        replace(&path, b"one", 0o600, Durability::PowerCut).unwrap();
        replace(&path, b"two", 0o644, Durability::ProcessDeath).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_writer_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_new(&folder.path().join(".file.new"), b"half", 0o400, Durability::ProcessDeath)
            .unwrap();
        replace(&path, b"whole", 0o644, Durability::ProcessDeath).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_replaced_stands_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"x", 0o644, Durability::PowerCut).is_err());
        assert!(path.is_dir());
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}
