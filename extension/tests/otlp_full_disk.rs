//! The destination `file` on a disk that is full: alone in its process, for a limit on the size of
//! files stands in for the disk, and it holds for the whole process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use warpgauge::config::export::Export;
use warpgauge::otlp::sender::{self, Outcome};

#[allow(dead_code, reason = "shared with the other tests of this module")]
#[path = "otlp_transport/requests.rs"]
mod requests;

#[test]
fn a_full_disk_keeps_the_request_and_tears_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.otlp.jsonl");
    let export = Export { path: Some(path.clone()), ..Export::default() };
    let mut sender = sender::open(&requests::settings(&export)).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    assert_eq!(sender.send(&requests::request(1), deadline), Outcome::Accepted);
    let before = std::fs::read(&path).unwrap();

    // The write that meets the limit then fails instead of ending the process.
    SigSet::from_iter([Signal::SIGXFSZ]).thread_block().unwrap();
    let (soft, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    let half_a_line_more = u64::try_from(before.len() * 3 / 2).unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, half_a_line_more, hard).unwrap();
    let outcome = sender.send(&requests::request(2), deadline);
    requests::assert_retry(&outcome);
    assert!(requests::reason(&outcome).contains("cannot be written"), "{outcome:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before);

    setrlimit(Resource::RLIMIT_FSIZE, soft, hard).unwrap();
    assert_eq!(sender.send(&requests::request(2), deadline), Outcome::Accepted);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
}
