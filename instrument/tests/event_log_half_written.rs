//! A write that fails half way, as on a disk that fills up: played by the process's limit for the
//! size of files, hence in a test program of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(unsafe_code, reason = "a handler is set for the whole process")]

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};
use warpgauge_instrument::events::files::{Files, Limits};

const LIMITS: Limits = Limits { file_bytes: 1 << 20, files: 2 };

#[test]
fn a_write_that_fails_half_way_leaves_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Files::new(folder.path(), "log".to_owned(), LIMITS);
    files.prepare().unwrap();
    files.append(b"whole\n", 1).unwrap();
    let (soft, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    // SAFETY: ignoring a signal runs no code.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn).unwrap() };
    setrlimit(Resource::RLIMIT_FSIZE, 10, hard).unwrap();
    let outcome = files.append(b"a line that is cut off\n", 1);
    setrlimit(Resource::RLIMIT_FSIZE, soft, hard).unwrap();
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("log.log: File too large"), "{error}");
    files.append(b"whole again\n", 1).unwrap();
    let text = fs::read_to_string(folder.path().join("log.log")).unwrap();
    assert_eq!(text, "whole\nwhole again\n");
}
