//! The measurements folder is writable by every user. Whatever a neighbour puts there is refused,
//! counted and named once; it harms nobody and reaches nothing outside.
//!
//! Some tricks need root: devices and files of other users. Without it their tests say so and end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use support::points::{of_process, sum, sum_for};
use support::world::{Pass, Sleeper, World, eventually, is_root, name_for, names_in, write};
use warpgauge::measurements::quarantine;
use warpgauge::metrics::{INSTRUCTIONS, LAUNCHES, MEASUREMENTS_READ, MEASUREMENTS_REFUSED};

/// A user that is neither root nor anybody else here.
const NEIGHBOUR: u32 = 54_321;

/// How many files a flood has.
const FLOOD: u64 = 100_000;

/// A world with a monitored process, a good file of its, and things outside the folder that must
/// not be touched.
struct Siege {
    world: World,
    sleeper: Sleeper,
    foreign: PathBuf,
    before: Vec<Look>,
}

/// What can be seen of a thing without touching it.
#[derive(Debug, PartialEq, Eq)]
struct Look {
    path: PathBuf,
    mode: u32,
    owner: u32,
    modified: (i64, i64),
    content: Vec<u8>,
}

impl Siege {
    fn new() -> Self {
        let world = World::new();
        let sleeper = world.sleeper();
        world.publish(sleeper.pid(), "0:7\n4:1\n");
        let foreign = world.path("foreign");
        fs::create_dir(&foreign).unwrap();
        write(foreign.join("precious"), "0:1000000\n");
        fs::set_permissions(foreign.join("precious"), Permissions::from_mode(0o640)).unwrap();
        write(foreign.join("4242-1-1"), "0:2000000\n");
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for path in [foreign.join("precious"), foreign.join("4242-1-1"), foreign.clone()] {
            File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
        let before = look(&foreign);
        Self { world, sleeper, foreign, before }
    }

    fn folder(&self) -> PathBuf {
        self.world.measurements()
    }

    /// A name that a measurement file of the monitored process could have.
    fn good_name(&self) -> PathBuf {
        self.folder().join(name_for(self.sleeper.pid()))
    }

    /// Refused so often for this reason: counted in the export, said in one line of the log, out of
    /// the way, and nothing else harmed.
    #[track_caller]
    fn assert_refused(&self, reason: &str, times: u64) -> Pass {
        let pass = self.world.pass_ends(0);
        assert_eq!(pass.refused(reason), times, "{pass:#?}");
        assert_eq!(pass.lines_with(&format!("x {reason},")).len(), 1, "{}", pass.log);
        let points = self.world.exported();
        assert_eq!(sum_for(&points, MEASUREMENTS_REFUSED.name, reason), times);
        assert_eq!(sum(&points, MEASUREMENTS_REFUSED.name), times, "and for no other reason");
        self.assert_nothing_else_happened();
        assert_eq!(self.world.left_in_folder(), [quarantine::NAME]);
        let pass = self.world.pass_ends(0);
        assert_eq!(pass.refused(reason), 0, "{pass:#?}");
        self.assert_nothing_else_happened();
        pass
    }

    #[track_caller]
    fn assert_nothing_else_happened(&self) {
        let own = of_process(&self.world.exported(), self.sleeper.pid());
        assert_eq!((sum(&own, INSTRUCTIONS.name), sum(&own, LAUNCHES.name)), (7, 1));
        assert_eq!(look(&self.foreign), self.before);
    }
}

/// Everything below a folder, and the folder itself.
fn look(path: &Path) -> Vec<Look> {
    let metadata = path.symlink_metadata().unwrap();
    let mut looks = Vec::new();
    let content = if metadata.is_file() { fs::read(path).unwrap() } else { Vec::new() };
    looks.push(Look {
        path: path.to_owned(),
        mode: metadata.mode(),
        owner: metadata.uid(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        content,
    });
    if metadata.is_dir() {
        looks.extend(names_in(path).iter().flat_map(|name| look(&path.join(name))));
    }
    looks
}

#[test]
fn links_are_not_followed() {
    let siege = Siege::new();
    symlink(siege.foreign.join("precious"), siege.good_name()).unwrap();
    symlink(&siege.foreign, siege.good_name()).unwrap();
    symlink("/nowhere", siege.good_name()).unwrap();
    symlink("/dev/zero", siege.good_name()).unwrap();
    siege.assert_refused("not_a_regular_file", 4);
    assert_eq!(siege.world.quarantined().len(), 4);
}

#[test]
fn a_hard_link_to_a_foreign_file_is_not_read() {
    let siege = Siege::new();
    fs::hard_link(siege.foreign.join("precious"), siege.good_name()).unwrap();
    siege.assert_refused("hard_linked", 1);
    assert_eq!(siege.foreign.join("precious").metadata().unwrap().nlink(), 2);
}

#[test]
fn pipes_and_sockets_keep_nobody_waiting() {
    let siege = Siege::new();
    nix::unistd::mkfifo(&siege.good_name(), Mode::S_IRWXU).unwrap();
    let _listening = UnixListener::bind(siege.good_name()).unwrap();
    siege.assert_refused("not_a_regular_file", 2);
}

#[test]
fn a_device_is_not_even_opened() {
    if !is_root() {
        eprintln!("skipped: only root can make a device");
        return;
    }
    let siege = Siege::new();
    // The memory of the machine, an endless file, and a terminal that would wait for a carrier.
    for (kind, major, minor) in [
        (SFlag::S_IFCHR, 1, 1),
        (SFlag::S_IFCHR, 1, 5),
        (SFlag::S_IFCHR, 4, 64),
        (SFlag::S_IFBLK, 7, 0),
    ] {
        mknod(&siege.good_name(), kind, Mode::S_IRWXU, makedev(major, minor)).unwrap();
    }
    siege.assert_refused("not_a_regular_file", 4);
}

#[test]
fn folders_are_moved_and_not_walked() {
    let siege = Siege::new();
    fs::create_dir(siege.good_name()).unwrap();
    let full = siege.good_name();
    fs::create_dir_all(full.join("deep/er")).unwrap();
    write(full.join("1-1-1"), "0:9\n");
    symlink(&siege.foreign, full.join("deep/link")).unwrap();
    siege.assert_refused("not_a_regular_file", 2);
    // The same name again: the quarantine has one already.
    fs::create_dir(&full).unwrap();
    write(full.join("more"), "");
    let pass = siege.world.pass_ends(0);
    assert_eq!(pass.refused("not_a_regular_file"), 1);
    assert_eq!(siege.world.left_in_folder(), [quarantine::NAME]);
    assert_eq!(siege.world.quarantined().len(), 3);
}

#[test]
fn a_giant_file_is_not_read() {
    let siege = Siege::new();
    let giant = siege.good_name();
    File::create(&giant).unwrap().set_len(1 << 30).unwrap();
    siege.assert_refused("file_too_large", 1);
    let kept = siege.folder().join(quarantine::NAME).join(giant.file_name().unwrap());
    assert_eq!(kept.metadata().unwrap().len(), 1 << 30);
}

#[test]
fn a_flood_is_taken_in_one_pass_and_the_quarantine_stays_bounded() {
    let siege = Siege::new();
    for number in 0..FLOOD / 2 {
        File::create(siege.folder().join(format!("junk {number}"))).unwrap();
        // Hidden files are nobody's business; they do no harm either.
        File::create(siege.folder().join(format!(".hidden {number}"))).unwrap();
    }
    for number in 0..FLOOD / 2 {
        symlink("/nowhere", siege.folder().join(format!("4000000-1-{number}"))).unwrap();
    }
    let pass = siege.world.pass_ends(0);
    for reason in ["name_does_not_fit", "not_a_regular_file"] {
        assert_eq!(pass.refused(reason), FLOOD / 2);
        assert_eq!(pass.lines_with(reason).len(), 1, "{}", pass.log);
        assert_eq!(sum_for(&siege.world.exported(), MEASUREMENTS_REFUSED.name, reason), FLOOD / 2);
    }
    siege.assert_nothing_else_happened();
    assert_eq!(siege.world.quarantined().len(), quarantine::MAX_ENTRIES);
    let visible = |name: &String| !name.starts_with('.');
    assert_eq!(siege.world.left_in_folder().into_iter().find(visible), None);
}

#[test]
fn a_flood_of_good_files_is_counted_to_the_last() {
    let siege = Siege::new();
    for _ in 0..FLOOD {
        write(siege.good_name(), "0:3\n1:50\n4:2\n");
    }
    // On a slow machine a pass leaves some of them for the next.
    eventually("every file to be read", || {
        let pass = siege.world.pass_ends(0);
        assert_eq!(pass.report["refused"].as_array().unwrap().len(), 0, "{pass:#?}");
        siege.world.left_in_folder().is_empty()
    });
    let own = of_process(&siege.world.exported(), siege.sleeper.pid());
    assert_eq!(sum(&own, INSTRUCTIONS.name), 7 + 3 * FLOOD);
    assert_eq!(sum(&own, LAUNCHES.name), 1 + 2 * FLOOD);
}

#[test]
fn a_file_for_another_users_process_is_no_evidence() {
    if !is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let siege = Siege::new();
    let forged = siege.world.publish(siege.sleeper.pid(), "0:1000000\n4:5\n");
    chown(&forged, Some(NEIGHBOUR), Some(NEIGHBOUR)).unwrap();
    siege.assert_refused("wrong_owner", 1);
    // The neighbour's own process may speak for itself, and root may not speak for it.
    let theirs = siege.world.sleeper_as(NEIGHBOUR);
    let own = siege.world.publish(theirs.pid(), "0:5\n");
    chown(own, Some(NEIGHBOUR), Some(NEIGHBOUR)).unwrap();
    siege.world.publish(theirs.pid(), "0:1000000\n");
    let pass = siege.world.pass_ends(0);
    assert_eq!(pass.refused("wrong_owner"), 1);
    let own = of_process(&siege.world.exported(), theirs.pid());
    assert_eq!(sum(&own, INSTRUCTIONS.name), 5);
}

#[test]
fn a_file_that_may_not_be_read_is_put_away() {
    if !is_root() {
        eprintln!("skipped: only root can start a pass as somebody else");
        return;
    }
    let world = World::new();
    for folder in ["", "measurements"] {
        world.give_to(folder, NEIGHBOUR);
    }
    let sleeper = world.sleeper_as(NEIGHBOUR);
    for content in ["0:7\n", "0:8\n"] {
        let path = world.publish(sleeper.pid(), content);
        chown(&path, Some(NEIGHBOUR), Some(NEIGHBOUR)).unwrap();
    }
    let unreadable = world.publish(sleeper.pid(), "0:1000\n");
    fs::set_permissions(&unreadable, Permissions::from_mode(0o000)).unwrap();
    let pass = world.pass_as(NEIGHBOUR);
    assert_eq!(pass.code(), Some(0), "{pass:#?}");
    assert_eq!(pass.refused("unreadable"), 1);
    assert_eq!(pass.lines_with("x unreadable,").len(), 1, "{}", pass.log);
    let points = world.exported();
    assert_eq!(sum(&points, INSTRUCTIONS.name), 15);
    assert_eq!(sum_for(&points, MEASUREMENTS_REFUSED.name, "unreadable"), 1);
    assert_eq!(world.left_in_folder(), [quarantine::NAME]);
    assert_eq!(world.quarantined().len(), 1);
}

#[test]
fn strange_names_reach_neither_the_log_nor_the_terminal_as_they_are() {
    let siege = Siege::new();
    let pid = siege.sleeper.pid();
    let long = [format!("{pid}-1-").as_bytes(), &[b'x'; 255]].concat();
    let two_times = format!("{pid}-1-1-1");
    let leading_zero = format!("0{pid}-1-1");
    let names: [&[u8]; 7] = [
        b"line\nbreak",
        b"\xff\xfe\x80",
        b"\x1b[31mred",
        b"with space-1-1",
        &[b'n'; 255],
        two_times.as_bytes(),
        leading_zero.as_bytes(),
    ];
    for name in names {
        write(siege.folder().join(OsStr::from_bytes(name)), "0:1000000\n");
    }
    // As long as a name may be, and still a measurement file's.
    write(siege.folder().join(OsStr::from_bytes(&long[..255])), "0:0\n");
    let pass = siege.assert_refused("name_does_not_fit", 7);
    assert!(!pass.log.contains('\x1b') && pass.log.is_ascii(), "{:?}", pass.log);
    assert_eq!(siege.world.quarantined().len(), 7);
}

#[test]
fn a_file_that_changes_while_it_is_read_waits_until_it_is_quiet() {
    let siege = Siege::new();
    let path = siege.good_name();
    // Long enough that the writer comes to write while it is read.
    write(&path, "0:1\n".repeat(500_000));
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, to_append) = (Arc::clone(&stop), path.clone());
    let writer = std::thread::spawn(move || {
        let mut file = OpenOptions::new().append(true).open(to_append).unwrap();
        let mut lines = 500_000_u64;
        while !stopped.load(Ordering::SeqCst) && lines < 5_000_000 {
            file.write_all(b"0:1\n").unwrap();
            lines += 1;
        }
        lines
    });
    let size = path.metadata().unwrap().len();
    eventually("the writer to begin", || path.metadata().unwrap().len() > size);
    let pass = siege.world.pass_ends(0);
    assert_eq!(pass.lines_with("x changed_while_read,").len(), 1, "{}", pass.log);
    siege.assert_nothing_else_happened();
    assert!(path.exists());
    stop.store(true, Ordering::SeqCst);
    let lines = writer.join().unwrap();
    siege.world.pass_ends(0);
    let own = of_process(&siege.world.exported(), siege.sleeper.pid());
    assert_eq!(sum(&own, INSTRUCTIONS.name), 7 + lines);
    assert_eq!(siege.world.left_in_folder(), Vec::<String>::new());
}

#[test]
fn an_older_modules_file_waits_until_its_second_is_over() {
    let siege = Siege::new();
    let older = siege.folder().join(format!("{}-7f3a5c0de700-14:03:59", siege.sleeper.pid()));
    write(&older, "0:5\n1:50\n");
    // However slow this machine, it was written a moment ago.
    File::open(&older).unwrap().set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    let pass = siege.world.pass_ends(0);
    assert_eq!(pass.lines_with("x still_written,").len(), 1, "{}", pass.log);
    siege.assert_nothing_else_happened();
    let mut file = OpenOptions::new().append(true).open(&older).unwrap();
    file.write_all(b"0:6\n1:100").unwrap();
    eventually("the file to be quiet", || {
        siege.world.pass_ends(0);
        !older.exists()
    });
    let own = of_process(&siege.world.exported(), siege.sleeper.pid());
    assert_eq!((sum(&own, INSTRUCTIONS.name), sum(&own, LAUNCHES.name)), (7 + 11, 1 + 2));
}

#[test]
fn what_a_dead_writer_never_finished_is_counted_once_and_put_away() {
    let siege = Siege::new();
    let unfinished = siege.folder().join(format!(".{}", name_for(siege.sleeper.pid())));
    write(&unfinished, "0:1000000\n");
    let pass = siege.world.pass_ends(0);
    assert_eq!(pass.log, "");
    assert!(unfinished.exists(), "its writer may still live");
    let hours_ago = SystemTime::now() - Duration::from_secs(2 * 3_600);
    File::open(&unfinished).unwrap().set_modified(hours_ago).unwrap();
    siege.assert_refused("abandoned", 1);
    assert_eq!(siege.world.quarantined().len(), 1);
}

/// Lets a neighbour take the quarantine's name, and checks that a refused entry still gets there.
fn take_the_quarantine(take: impl FnOnce(&Siege, &Path)) -> Siege {
    let siege = Siege::new();
    take(&siege, &siege.folder().join(quarantine::NAME));
    write(siege.folder().join("nonsense"), "");
    let pass = siege.world.pass_ends(0);
    for reason in ["quarantine_taken", "name_does_not_fit"] {
        assert_eq!(pass.refused(reason), 1, "{pass:#?}");
        assert_eq!(pass.lines_with(&format!("x {reason},")).len(), 1, "{}", pass.log);
        assert_eq!(sum_for(&siege.world.exported(), MEASUREMENTS_REFUSED.name, reason), 1);
    }
    siege.assert_nothing_else_happened();
    assert_eq!(siege.world.left_in_folder(), [quarantine::NAME]);
    let quarantined = siege.world.quarantined();
    assert!(quarantined.contains(&"nonsense".to_owned()), "{quarantined:?}");
    assert_eq!(quarantined.len(), 2, "{quarantined:?}");
    let own = siege.folder().join(quarantine::NAME).symlink_metadata().unwrap();
    assert_eq!(own.mode() & 0o7777, 0o700);
    let pass = siege.world.pass_ends(0);
    assert_eq!(pass.log, "");
    siege
}

#[test]
fn a_link_in_place_of_the_quarantine_leads_nowhere() {
    take_the_quarantine(|siege, path| symlink(&siege.foreign, path).unwrap());
}

#[test]
fn a_file_or_a_pipe_in_place_of_the_quarantine_is_moved_away() {
    take_the_quarantine(|_, path| write(path, "mine"));
    take_the_quarantine(|_, path| nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap());
}

#[test]
fn another_users_folder_in_place_of_the_quarantine_is_moved_away() {
    if !is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    take_the_quarantine(|_, path| {
        fs::create_dir(path).unwrap();
        write(path.join("bait"), "");
        chown(path, Some(NEIGHBOUR), Some(NEIGHBOUR)).unwrap();
    });
}

#[test]
fn every_line_that_is_no_measurement_is_refused_and_the_lines_around_it_hold() {
    let siege = Siege::new();
    let overlong = format!("1:{}", "5".repeat(300));
    let binary: Vec<u8> = (0..=255).filter(|&byte| byte != b'\n').collect();
    let lines: [(&[u8], &str); 16] = [
        (b"1:nan", "not_finite"),
        (b"1:inf", "not_finite"),
        (b"0:-inf", "not_finite"),
        (b"2:1e999", "not_finite"),
        (b"1:-0.5", "negative"),
        (b"0:-3", "negative"),
        (b"1:100.5", "percentage_over_100"),
        (b"3:1000", "percentage_over_100"),
        (overlong.as_bytes(), "line_too_long"),
        (&binary, "id_not_an_integer"),
        (b"\0\0\0:\0", "id_not_an_integer"),
        (b"0:1:2", "not_one_colon"),
        (b"1.5:2", "id_not_an_integer"),
        (b"1:half", "not_a_number"),
        (b"0:1.5", "count_not_whole"),
        (b"0:18446744073709551616", "count_too_large"),
    ];
    let mut content = b"0:1\n".to_vec();
    for (line, _) in lines {
        content.extend_from_slice(&[line, b"\r\n0:1\n"].concat());
    }
    // A torn last line: half of "1:50" is not told from a whole "1:5".
    content.extend_from_slice(b"1:");
    siege.world.publish(siege.sleeper.pid(), content);
    let pass = siege.world.pass_ends(0);
    let points = siege.world.exported();
    let reasons = lines.iter().map(|(_, reason)| *reason).chain(["not_a_number"]);
    let mut expected = std::collections::BTreeMap::new();
    reasons.for_each(|reason| *expected.entry(reason).or_insert(0) += 1);
    for (reason, times) in &expected {
        assert_eq!(pass.refused(reason), *times, "{reason}");
        assert_eq!(sum_for(&points, MEASUREMENTS_REFUSED.name, reason), *times, "{reason}");
        assert_eq!(pass.lines_with(&format!("x {reason},")).len(), 1, "{}", pass.log);
    }
    assert_eq!(pass.log.lines().count(), expected.len(), "{}", pass.log);
    assert!(pass.log.is_ascii(), "{}", pass.log);
    assert_eq!(sum(&points, INSTRUCTIONS.name), 7 + 17);
    assert_eq!(sum(&points, MEASUREMENTS_READ.name), 2 + 17);
    assert_eq!(siege.world.left_in_folder(), Vec::<String>::new());
}
