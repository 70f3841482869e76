//! Replaces a file so that every reader sees the old content or the new, never a part, also across
//! a power cut: temporary file in the same folder, flush, fsync, rename, fsync of the folder.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Whether the content must survive a power cut, or only a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// fsync of the file and of its folder: it is on the disk when this returns.
    PowerCut,
    /// No fsync: the kernel holds it, so the death of any process leaves it whole.
    ProcessDeath,
}

/// Replaces `path` by a file of this content and mode.
///
/// # Errors
/// Whatever the system says; the old content then stands untouched, and no temporary file is left.
pub fn replace(path: &Path, content: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    let folder = folder_of(path);
    let mut temporary = tempfile::Builder::new().prefix(".warpgauge-").tempfile_in(folder)?;
    temporary.write_all(content)?;
    temporary.as_file().set_permissions(Permissions::from_mode(mode))?;
    if durability == Durability::PowerCut {
        temporary.as_file().sync_all()?;
    }
    temporary.persist(path).map_err(|fault| fault.error)?;
    if durability == Durability::PowerCut {
        sync_folder(folder)?;
    }
    Ok(())
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
    fn what_cannot_be_replaced_stands_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"x", 0o644, Durability::PowerCut).is_err());
        assert!(path.is_dir());
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}
