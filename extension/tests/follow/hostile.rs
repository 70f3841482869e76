use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write as _};
use std::os::unix::fs::symlink;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use warpgauge::follow::{Flow, Follower, Rule};

use crate::log::{Log, Rotation, append_to, read_once};

#[test]
fn what_is_no_file_of_one_name_is_refused_and_told_of_once() {
    let mut log = Log::new(Rotation::Rename);
    log.write("fine\n");
    fs::create_dir(log.path("xfolder.log")).unwrap();
    mkfifo(&log.path("xpipe.log"), Mode::S_IRWXU).unwrap();
    symlink("/etc/passwd", log.path("xlink.log")).unwrap();
    append_to(log.path("secret")).write_all(b"secret\n").unwrap();
    fs::hard_link(log.path("secret"), log.path("xhard.log")).unwrap();
    append_to(log.path("xjunk.log.gz")).write_all(&[7; 2_000]).unwrap();
    let (lines, summary) = log.read();
    assert_eq!(lines, ["fine"]);
    let refused: Vec<_> =
        summary.refused.iter().map(|(reason, skip)| (reason, skip.count)).collect();
    assert_eq!(refused, [("hard_linked", 1), ("not_a_regular_file", 3), ("not_compressed", 1)]);
    let (lines, summary) = log.read();
    assert_eq!((lines.len(), summary.refused.total()), (0, 0));
}

#[test]
fn no_link_behind_the_first_wildcard_is_followed() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("logs/a")).unwrap();
    fs::create_dir_all(path("elsewhere")).unwrap();
    append_to(path("logs/a/x.log")).write_all(b"a\n").unwrap();
    append_to(path("elsewhere/x.log")).write_all(b"secret\n").unwrap();
    symlink(path("elsewhere"), path("logs/b")).unwrap();
    // Before it, a link is the administrator's.
    symlink(path("logs"), path("link")).unwrap();
    let rule = Rule::new(&format!("{}/link/*/x.log", place.path().display())).unwrap();
    let mut follower = Follower::new(&path("state"), "test", vec![rule]).unwrap();
    assert_eq!(read_once(&mut follower).0, ["a"]);
}

#[test]
fn a_line_of_a_gibibyte_is_passed_over_in_bounded_steps_and_told_of_once() {
    let log = Log::new(Rotation::Rename);
    let mut file = File::options().write(true).open(log.path("x.log")).unwrap();
    file.write_all(b"before\n[").unwrap();
    file.seek(SeekFrom::Start(1 << 30)).unwrap();
    file.write_all(b"]\nafter\n").unwrap();
    let (mut passes, mut all) = (0, vec![]);
    while passes < 40 && all.last().is_none_or(|line: &String| line != "after") {
        let mut follower = log.follower();
        follower.limits.bytes = 64 << 20;
        let (lines, summary) = read_once(&mut follower);
        assert!(summary.bytes <= 65 << 20, "{summary:?}");
        all.extend(lines);
        follower.commit().unwrap();
        passes += 1;
    }
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(all[1].starts_with('[') && all[1].ends_with(" too long"));
    assert!(passes >= 16, "{passes}");
}

#[test]
fn one_consumer_that_waits_keeps_its_own_lines_only() {
    let mut log = Log::new(Rotation::Rename);
    log.write("one\ntwo\n");
    log.rotate();
    log.write("three\n");
    append_to(log.path("xother.log")).write_all(b"four\n").unwrap();
    let mut follower = log.follower();
    let mut lines = vec![];
    follower.read(&mut |file, line| {
        lines.push(String::from_utf8(line.bytes.to_vec()).unwrap());
        if file.family.ends_with("/x.log") && line.bytes == b"two" {
            return Flow::WaitHere;
        }
        Flow::Next
    });
    assert_eq!(lines, ["one", "two", "four"]);
    assert_eq!(read_once(&mut follower).0, ["two", "three"]);
    follower.roll_back();
    assert_eq!(read_once(&mut follower).0, ["one", "two", "three", "four"]);
}

#[test]
fn a_small_budget_is_kept_and_nobody_starves() {
    let log = Log::new(Rotation::Rename);
    for name in ["xa.log", "xb.log", "xc.log"] {
        append_to(log.path(name)).write_all(&b"0123456789abcde\n".repeat(1 << 17)).unwrap();
    }
    let mut follower = log.follower();
    follower.limits.bytes = 3 << 20;
    let (first, summary) = read_once(&mut follower);
    assert!(summary.has_more && summary.bytes < 4 << 20, "{summary:?}");
    let second = read_once(&mut follower).0;
    assert_eq!(first.len() + second.len(), 3 << 17);
    assert!(!read_once(&mut follower).1.has_more);
    follower.limits.time = Duration::ZERO;
    append_to(log.path("xa.log")).write_all(b"more\n").unwrap();
    assert!(read_once(&mut follower).1.has_more);
}

#[test]
fn a_damaged_cursor_file_is_an_error_that_says_what_to_do() {
    let log = Log::new(Rotation::Rename);
    log.read();
    let path = Follower::cursor_file(&log.state(), "test");
    File::create(&path).unwrap().write_all(b"{").unwrap();
    let fault = Follower::new(&log.state(), "test", vec![]).unwrap_err().to_string();
    assert!(fault.contains("remove it"), "{fault}");
    let fault = Follower::new(&log.state(), "../test", vec![]).unwrap_err().to_string();
    assert!(fault.contains("no name for a consumer"), "{fault}");
}
