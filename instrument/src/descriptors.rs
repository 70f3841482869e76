//! Files that are opened in somebody else's process: never under the numbers 0, 1 and 2.
//!
//! A program may have closed its standard streams and still write to them, to no effect. A file of
//! ours that got such a number would take what the program prints. So the free ones among them are
//! taken first, by descriptors that nobody can read or write (`O_PATH`, open(2)): to the program
//! they are as closed as before.
#![allow(unsafe_code, reason = "the program's descriptors are numbers to us")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
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
pub fn open_above_standard(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let _placeholders = Placeholders::take();
    options.open(path)
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
            if !is_placeholder(taken.as_raw_fd()) {
                // The program has opened its stream meanwhile, with dup2: it is the program's.
                let _its_own = taken.into_raw_fd();
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
    fn a_file_opens_as_usual_where_the_streams_are_open() {
        let file = open_above_standard(OpenOptions::new().read(true), Path::new("/dev/null"));
        assert!(file.unwrap().as_raw_fd() > 2);
        let missing = open_above_standard(OpenOptions::new().read(true), Path::new("/nowhere"));
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
