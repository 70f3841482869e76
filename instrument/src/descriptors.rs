//! Files that are opened in somebody else's process.
//!
//! Never under the numbers 0, 1 and 2: [`open_above_standard`].
//! A program may have closed its standard streams and still write to them, to no effect. A file of
//! ours that got such a number would take what the program prints. So the free ones among them are
//! taken first, by descriptors that nobody can read or write (`O_PATH`, open(2)): to the program
//! they are as closed as before.
#![allow(unsafe_code, reason = "the program's descriptors are numbers to us")]

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::stat::Mode;

/// The numbers of the standard streams.
const STANDARD: std::ops::RangeInclusive<i32> = 0..=2;

/// Opens a file under a number that no standard stream has.
///
/// # Errors
/// What the system says.
pub fn open_above_standard(options: &OpenOptions, path: &Path) -> io::Result<OurFile> {
    let _placeholders = Placeholders::take();
    let file = ManuallyDrop::new(options.open(path)?);
    // One that is gone already is not to be closed again.
    let identity = identity_of(&file).ok();
    Ok(OurFile { file, identity })
}

/// A file as long as its number means it.
#[derive(Debug)]
pub struct OurFile {
    file: ManuallyDrop<File>,
    identity: Option<(u64, u64)>,
}

impl Deref for OurFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for OurFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity_of(&self.file).ok() == self.identity {
            // SAFETY: the number is that of our file, which nobody uses any more.
            unsafe { libc::close(self.file.as_raw_fd()) };
        }
    }
}

/// Device and inode.
fn identity_of(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The standard numbers that were free.
struct Placeholders([Option<OwnedFd>; 3]);

impl Placeholders {
    fn take() -> Self {
        let mut placeholders = Self([const { None }; 3]);
        if STANDARD.into_iter().all(is_open) {
            return placeholders;
        }
        for place in &mut placeholders.0 {
            // Where no descriptor is to be had, the file will not open either.
            let Ok(taken) = open("/", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()) else {
                break;
            };
            if !STANDARD.contains(&taken.as_raw_fd()) {
                break;
            }
            *place = Some(taken);
        }
        placeholders
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        for taken in self.0.iter_mut().filter_map(Option::take) {
            let number = taken.into_raw_fd();
            // Where the program has opened its stream meanwhile, with dup2, it is the program's.
            if is_placeholder(number) {
                // SAFETY: the number is ours; if the program has closed it just now, nothing is
                // closed, which an owned descriptor would take for a fault of ours.
                unsafe { libc::close(number) };
            }
        }
    }
}

fn is_open(number: i32) -> bool {
    // SAFETY: any number may be asked about.
    unsafe { libc::fcntl(number, libc::F_GETFD) != -1 }
}

fn is_placeholder(number: i32) -> bool {
    // SAFETY: as above.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
    flags != -1 && flags & libc::O_PATH != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_ours_while_its_number_means_it() {
        let file = open_above_standard(OpenOptions::new().read(true), Path::new("/dev/null"));
        assert!(file.unwrap().as_raw_fd() > 2);
        let again = open_above_standard(OpenOptions::new().read(true), Path::new("/dev/null"));
        let again = again.unwrap();
        let number = again.as_raw_fd();
        // SAFETY: what a program does that closes everything; nothing is lost by it.
        unsafe { libc::close(number) };
        let other = File::open("/proc/self/maps").unwrap();
        drop(again);
        assert!(other.metadata().is_ok(), "a file that got the number is left open");
        let missing = open_above_standard(OpenOptions::new().read(true), Path::new("/nowhere"));
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
