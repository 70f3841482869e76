use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::*;
use crate::follow::discover::Search;
use crate::follow::fingerprint::Ends;
use crate::follow::refusals::Refusals;
use crate::follow::rule::Rule;

fn far() -> Instant {
    Instant::now() + Duration::from_secs(3_600)
}

fn search(folder: &Path) -> Vec<Found> {
    let rule = Rule::new(&format!("{}/x.log", folder.display())).unwrap();
    let mut refusals = Refusals::default();
    let mut search = Search::new(&mut refusals, far());
    search.add(0, &rule);
    search.found
}

/// Writes a file anew, in its place.
fn write(path: impl AsRef<Path>, content: &str) {
    File::create(path).unwrap().write_all(content.as_bytes()).unwrap();
}

/// A log of that content, last written to a minute ago.
fn older(path: &PathBuf, content: &str) {
    write(path, content);
    let minute_ago = SystemTime::now() - Duration::from_secs(60);
    File::options().write(true).open(path).unwrap().set_modified(minute_ago).unwrap();
}

fn names(parts: &[Part]) -> Vec<&str> {
    parts.iter().filter_map(|part| part.found.path.file_name()?.to_str()).collect()
}

#[test]
fn a_file_that_is_cut_off_between_finding_and_opening_comes_behind_its_copy() {
    let folder = tempfile::tempdir().unwrap();
    let (log, copy) = (folder.path().join("x.log"), folder.path().join("x.log.1"));
    older(&log, "one\ntwo\n");
    fs::copy(&log, &copy).unwrap();
    let found = search(folder.path());
    write(&log, "three\n");
    let mut cursors = Cursors::default();
    let assigned = assign(found, false, &mut cursors, 1, Duration::ZERO, far());
    assert_eq!(names(&assigned.parts), ["x.log.1", "x.log"]);
}

#[test]
fn an_empty_file_has_no_content_yet_however_long_it_was_when_it_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.log");
    older(&log, "one\n");
    let found = search(folder.path());
    write(&log, "");
    let assigned = assign(found, false, &mut Cursors::default(), 1, Duration::ZERO, far());
    assert_eq!(names(&assigned.parts), [""; 0]);
}

#[test]
fn files_of_one_moment_come_by_their_numbers_though_the_newest_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let moment = SystemTime::now();
    for (name, content) in [("x.log", ""), ("x.1.log", "three\n"), ("x.2.log", "two\n")] {
        write(path(name), content);
        File::options().write(true).open(path(name)).unwrap().set_modified(moment).unwrap();
    }
    let found = search(folder.path());
    let assigned = assign(found, false, &mut Cursors::default(), 1, Duration::ZERO, far());
    assert_eq!(names(&assigned.parts), ["x.2.log", "x.1.log"]);
}

#[test]
fn half_a_first_line_is_no_content_yet_but_in_a_file_that_was_rotated_away() {
    let folder = tempfile::tempdir().unwrap();
    older(&folder.path().join("x.log"), "{\"type\":\"ker");
    older(&folder.path().join("x.log.1"), "{\"type\":\"scope");
    let found = search(folder.path());
    let assigned = assign(found, false, &mut Cursors::default(), 1, Duration::ZERO, far());
    assert_eq!(names(&assigned.parts), ["x.log.1"]);
}

#[test]
fn a_copy_is_not_new_because_its_original_is_cut_off_while_they_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (log, copy) = (folder.path().join("x.log"), folder.path().join("x.log.1"));
    for now in ["", "three\n", "three, and more than before\n"] {
        older(&log, "one\ntwo\n");
        fs::copy(&log, &copy).unwrap();
        let found = search(folder.path());
        // All of it was read before; it is not opened again.
        let mut cursors = Cursors::default();
        let state = found[0].state;
        let mut cursor = Cursor::new(log.clone(), found[0].family.clone(), state);
        let mut ends = Ends::default();
        ends.extend(b"one\ntwo\n");
        cursor.take_ends(&ends);
        (cursor.offset, cursor.drained) = (8, Some((state.size, state.modified_ns)));
        let stream = cursors.add(cursor);
        let mut whole = Originals::default();
        whole.add(&found[0]);
        whole.that_begin(&found[1], b"one\ntwo\n").for_each(drop);
        write(&log, now);
        let appeared =
            appeared(&found[1], &mut whole, &BTreeSet::from([stream]), &mut cursors).unwrap();
        assert!(matches!(appeared, Appeared::Copy), "{now:?}");
    }
}
