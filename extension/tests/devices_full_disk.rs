//! The devices' records on a disk that is full: alone in its process, for a limit on the size of
//! files stands in for the disk, and it holds for the whole process.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use warpgauge::devices::rotated_file::append;

#[test]
fn a_full_disk_tears_no_line_and_says_how_many_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("telemetry.ndjson");
    let line = |letter: &str| format!("{}\n", letter.repeat(99)).into_bytes();
    append(&path, 1 << 20, &[line("a")]).unwrap();

    // The write that meets the limit then fails instead of ending the process.
    SigSet::from_iter([Signal::SIGXFSZ]).thread_block().unwrap();
    let (soft, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, 250, hard).unwrap();
    let fault = append(&path, 1 << 20, &[line("b"), line("c")]).unwrap_err();
    assert!(fault.to_string().contains("1 lines were written"), "{fault}");
    let before = [line("a"), line("b")].concat();
    assert_eq!(std::fs::read(&path).unwrap(), before);

    setrlimit(Resource::RLIMIT_FSIZE, soft, hard).unwrap();
    append(&path, 1 << 20, &[line("d")]).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), [before, line("d")].concat());
}
