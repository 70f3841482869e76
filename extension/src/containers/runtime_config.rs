//! A container's `runtime.conf`: read with care, replaced whole.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstatat};

use super::{Container, ContainerError, RUNTIME_CONFIG};
use crate::atomic_file::{self, Durability};

/// The largest runtime configuration of a container: thousands of lines, where one container has a
/// handful of processes.
const MAX_RUNTIME_CONFIG_BYTES: u64 = 256 << 10;

impl Container {
    /// Its runtime configuration as it stands; `None` where there is none.
    ///
    /// # Errors
    /// [`ContainerError`], also for what is no regular file or too large.
    pub fn read_runtime_config(&self) -> Result<Option<Vec<u8>>, ContainerError> {
        // Neither following a link nor waiting for the other end of a pipe.
        let flags = OFlag::O_RDONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        // What is no file is not even opened: opening a device may act on it.
        match fstatat(&self.fd, RUNTIME_CONFIG, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat)
                if SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT != SFlag::S_IFREG =>
            {
                return Err(self.of_runtime_config(io::Error::other("is no regular file")));
            }
            Err(Errno::ENOENT) => return Ok(None),
            _ => {}
        }
        let file = match openat(&self.fd, RUNTIME_CONFIG, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::ENOENT) => return Ok(None),
            Err(fault) => return Err(self.of_runtime_config(fault.into())),
        };
        read_bounded(file).map(Some).map_err(|fault| self.of_runtime_config(fault))
    }

    /// Replaces it. It need not survive a power cut: neither does any process that it names.
    ///
    /// # Errors
    /// [`ContainerError`]; the old one then stands.
    pub fn write_runtime_config(&self, content: &[u8]) -> Result<(), ContainerError> {
        // The path of an open folder leads to that folder whatever has its name by now (proc(5)).
        let folder = PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()));
        let path = folder.join(RUNTIME_CONFIG);
        atomic_file::replace(&path, content, 0o644, Durability::ProcessDeath)
            .map_err(|fault| self.of_runtime_config(fault))
    }

    fn of_runtime_config(&self, source: io::Error) -> ContainerError {
        ContainerError::new(self.path.join(RUNTIME_CONFIG), source)
    }
}

fn read_bounded(file: File) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is no regular file"));
    }
    let mut content = Vec::new();
    file.take(MAX_RUNTIME_CONFIG_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_RUNTIME_CONFIG_BYTES {
        return Err(io::Error::other("is larger than 256 KiB; remove it"));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use nix::unistd::mkfifo;

    use super::*;
    use crate::containers::Containers;

    fn container(place: &Path) -> Container {
        fs::create_dir_all(place.join("c")).unwrap();
        Containers::look(place).open("c").unwrap().unwrap()
    }

    #[test]
    fn what_is_written_reads_back_and_replaces_a_link_not_what_it_leads_to() {
        let place = tempfile::tempdir().unwrap();
        let container = container(place.path());
        assert_eq!(container.read_runtime_config().unwrap(), None);
        container.write_runtime_config(b"1:0\n").unwrap();
        assert_eq!(container.read_runtime_config().unwrap().unwrap(), b"1:0\n");
        let precious = place.path().join("precious");
        container.write_runtime_config(b"precious").unwrap();
        fs::rename(place.path().join("c/runtime.conf"), &precious).unwrap();
        symlink(&precious, place.path().join("c/runtime.conf")).unwrap();
        assert!(container.read_runtime_config().is_err());
        container.write_runtime_config(b"2:0\n").unwrap();
        assert_eq!(fs::read(precious).unwrap(), b"precious");
        assert_eq!(place.path().join("c").read_dir().unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_file_or_too_large_is_not_read() {
        let place = tempfile::tempdir().unwrap();
        let container = container(place.path());
        let path = place.path().join("c/runtime.conf");
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        assert!(container.read_runtime_config().unwrap_err().to_string().contains("no regular"));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(container.read_runtime_config().is_err());
        assert!(container.write_runtime_config(b"").is_err());
        fs::remove_dir(&path).unwrap();
        File::create(&path).unwrap().set_len(MAX_RUNTIME_CONFIG_BYTES + 1).unwrap();
        assert!(container.read_runtime_config().unwrap_err().to_string().contains("larger"));
    }
}
