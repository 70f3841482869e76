//! A folder for measurements that is missing, refuses files or is full: the launches wait.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use warpgauge_tests::{Outcome, Published, World, eventually};

const ARGUMENTS: [&str; 3] = ["--pause-before", "init", "--launches=40"];

fn run_in_vain(folder: &Path, why: &str) {
    let world = World::new().unwrap();
    let host = world.host(&ARGUMENTS).env("WARPGAUGE_MEASUREMENTS_OUTPUT_DIR", folder);
    let outcome = host.start_listed("1").unwrap().finish().unwrap();
    is_unharmed(&outcome);
    let log = world.log().unwrap();
    let said = log.iter().filter(|line| line.contains("wait in memory")).collect::<Vec<_>>();
    assert_eq!(said.len(), 1, "{log:?}");
    assert!(said[0].contains(why), "{log:?}");
}

fn is_unharmed(outcome: &Outcome) {
    assert!(outcome.status.success(), "{outcome:?}");
    assert_eq!((outcome.launches(), outcome.errors.as_str()), (40, ""));
}

#[test]
fn a_folder_that_takes_no_file_does_not_harm_the_program() {
    run_in_vain(Path::new("/nowhere"), "No such file");
    // Nobody, root included, can create a file here.
    run_in_vain(Path::new("/proc/self/fdinfo"), "/proc/self/fdinfo/.");
    let world = World::new().unwrap();
    let file = world.path("a-file");
    fs::File::create(&file).unwrap();
    run_in_vain(&file, "Not a directory");
}

/// Mounts something over the folder, for the program alone. What it is called in the log.
fn run_over(mount: &str, why: &str) {
    let world = World::new().unwrap();
    let arguments = [&ARGUMENTS[..], &["--pause-before", "exit"]].concat();
    let host = world.host(&arguments).after(mount).through(&["unshare", "--mount"]);
    let mut host = host.start_listed("1").unwrap();
    eventually("the first file fails", || {
        Ok(world.log()?.iter().any(|line| line.contains("wait in memory")).then_some(()))
    })
    .unwrap();
    host.go_on().unwrap();
    is_unharmed(&host.finish().unwrap());
    let log = world.log().unwrap();
    let said: Vec<&String> = log.iter().filter(|line| line.contains("wait in memory")).collect();
    assert_eq!(said.len(), 1, "{log:?}");
    assert!(said[0].contains(why), "{log:?}");
    assert!(log.iter().any(|line| line.contains("40 launches of 1 kernels")), "{log:?}");
}

#[test]
fn a_folder_that_is_full_or_cannot_be_written_does_not_harm_the_program() {
    let may_mount = std::process::Command::new("unshare").args(["--mount", "true"]).status();
    if !may_mount.is_ok_and(|status| status.success()) {
        eprintln!("not shown: to mount something takes root");
        return;
    }
    let tmpfs = "mount -t tmpfs -o size=4k none measurements";
    run_over(&format!("{tmpfs}; head -c 4096 /dev/zero > measurements/full"), "No space left");
    run_over(&format!("{tmpfs}; mount -o remount,ro measurements"), "Read-only file system");
}

#[test]
fn no_launch_is_lost_while_a_file_stands_in_the_place_of_the_folder() {
    let world = World::new().unwrap();
    let arguments = [&ARGUMENTS[..2], &["--seconds=4", "--rate=200"]].concat();
    let mut host = world.host(&arguments).start_listed("1").unwrap();
    let pid = host.pid();
    eventually("a file is published", || Ok((world.published_by(pid)?.files > 0).then_some(())))
        .unwrap();
    let (folder, away) = (world.measurements(), world.path("away"));
    fs::rename(&folder, &away).unwrap();
    fs::File::create(&folder).unwrap();
    eventually("a file fails", || {
        Ok(world.log()?.iter().any(|line| line.contains("wait in memory")).then_some(()))
    })
    .unwrap();
    assert!(host.is_running().unwrap(), "too slow a machine for this test");
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    let outcome = host.finish().unwrap();
    assert!(outcome.status.success() && outcome.errors.is_empty(), "{outcome:?}");
    let before = Published::read(&away, pid).unwrap().launches;
    assert_eq!(before + world.published_by(pid).unwrap().launches, outcome.launches());
}

/// A limit for file sizes ends a program that writes beyond it, unless somebody looks first.
#[test]
fn a_limit_for_file_sizes_does_not_end_the_program() {
    let world = World::new().unwrap();
    let host = world.host(&ARGUMENTS).after("ulimit -f 0").without("WARPGAUGE_LOGFILE");
    let outcome = host.without("STANDIN_CUPTI_LOG").start_listed("1").unwrap().finish().unwrap();
    is_unharmed(&outcome);
    assert_eq!(fs::read_dir(world.measurements()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn launches_wait_in_memory_until_the_folder_is_there() {
    let world = World::new().unwrap();
    fs::remove_dir(world.measurements()).unwrap();
    let arguments = [&ARGUMENTS[..], &["--pause-before", "exit"]].concat();
    let mut host = world.host(&arguments).start_listed("1").unwrap();
    let pid = host.pid();
    eventually("the first file fails", || {
        Ok(world.log()?.iter().any(|line| line.contains("wait in memory")).then_some(()))
    })
    .unwrap();
    fs::create_dir(world.measurements()).unwrap();
    eventually("the launches are published", || {
        Ok((world.published_by(pid)?.launches == 40).then_some(()))
    })
    .unwrap();
    host.go_on().unwrap();
    is_unharmed(&host.finish().unwrap());
    assert_eq!(world.published_by(pid).unwrap().launches, 40, "once and not again");
    assert!(world.log().unwrap().iter().any(|line| line.contains("works again")));
}

#[test]
fn a_reader_may_read_whatever_mask_the_program_has() {
    let world = World::new().unwrap();
    let host = world.host(&ARGUMENTS).after("umask 077");
    let outcome = host.start_listed("1").unwrap().finish().unwrap();
    is_unharmed(&outcome);
    let file = fs::read_dir(world.measurements()).unwrap().next().unwrap().unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o644);
}

/// The reader may exchange the folder for an empty one at any moment.
#[test]
fn no_launch_is_lost_while_the_folder_is_exchanged_under_the_writer() {
    let world = World::new().unwrap();
    let arguments = ["--pause-before", "init", "--seconds=3", "--rate=200"];
    let mut host = world.host(&arguments).start_listed("1").unwrap();
    let pid = host.pid();
    let (folder, spare) = (world.measurements(), world.path("spare"));
    fs::create_dir(&spare).unwrap();
    let mut taken = 0;
    while host.is_running().unwrap() {
        renameat2(AT_FDCWD, &folder, AT_FDCWD, &spare, RenameFlags::RENAME_EXCHANGE).unwrap();
        taken += Published::read(&spare, pid).unwrap().launches;
        for entry in fs::read_dir(&spare).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let outcome = host.finish().unwrap();
    let rest = world.published_by(pid).unwrap().launches;
    assert!(taken > 0);
    assert_eq!(taken + rest, outcome.launches());
}
