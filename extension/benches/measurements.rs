//! What consuming measurement files costs: claimed, read, committed to the spool and removed, as
//! `pass.rs` does it.
//!
//! Two worlds, made anew for each round: 100,000 files of one line, beside a floor that only opens,
//! reads and unlinks them one after the other; and 2,000 files of 2,000 lines, beside a floor that
//! only counts newlines. The measured part runs in a process of its own, so that its peak memory is
//! its own.
//!
//! ```text
//! cargo bench -p warpgauge --bench measurements -- [--json] [--rounds N]
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark stops at the first surprise"
)]

#[path = "support/figures.rs"]
#[allow(dead_code, reason = "not every benchmark needs all of it")]
mod figures;
#[path = "support/rounds.rs"]
#[allow(dead_code, reason = "not every benchmark needs all of it")]
mod rounds;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use figures::{Budget, Figure, Samples};
use nix::fcntl::{OFlag, openat};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::stat::Mode;
use nix::sys::time::TimeValLike;
use nix::unistd::{UnlinkatFlags, unlinkat};
use rounds::{Asked, milliseconds, place};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use warpgauge::aggregate::Shape;
use warpgauge::atomic_file::Durability;
use warpgauge::listing::{ListedProcess, Listing, Owners};
use warpgauge::measurements::folder::Folder;
use warpgauge::measurements::manifest::{self, StillThere};
use warpgauge::measurements::{self, Limits, Request};
use warpgauge::otlp::mapping::Window;
use warpgauge::pass::unix_now_ns;
use warpgauge::spool::{After, Commit, Spool};

/// The files are those of so many processes.
const PROCESSES: usize = 200;

/// Pids above every real one.
const FIRST_PID: usize = 5_000_000;

/// Bytes read at a time by the floors, as by the code that they are a floor of.
const CHUNK_BYTES: usize = 64 << 10;

/// Budgets of the project's specification.
const MEGABYTES_PER_SECOND: f64 = 300.0;
const RESIDENT_MEGABYTES: f64 = 16.0;

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, role, place, expected] = &arguments[..]
        && role == "consume"
    {
        return consume(Path::new(place), expected.parse().unwrap());
    }
    let asked = Asked::from_arguments();
    let place = place();
    let path = place.path();
    let figures = [
        small_files(asked, path, 100_000, OnDisk::NotYet, Budget::TheFloor),
        small_files(asked, path, 5_000, OnDisk::Yes, Budget::None),
        large_files(asked, path),
    ];
    figures::print("measurements", path, figures.concat(), asked);
}

/// Whether the kernel has written the files out when they are consumed: it does so some seconds to
/// half a minute after they were made. Removing them then frees blocks of the disk, and how long
/// that takes is the disk's affair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnDisk {
    NotYet,
    Yes,
}

/// Files of one line.
fn small_files(
    asked: Asked,
    place: &Path,
    files: usize,
    on_disk: OnDisk,
    budget: Budget,
) -> Vec<Figure> {
    let files = asked.size(files);
    let line = |number: usize| format!("1:{}.25\n", number % 100);
    let world = || {
        let world = World::new(place, files, line);
        if on_disk == OnDisk::Yes {
            nix::unistd::syncfs(File::open(place).unwrap()).unwrap();
        }
        world
    };
    let [mut floor, mut processor_floor] = [(); 2].map(|()| Samples::default());
    let [mut whole, mut claim, mut commit, mut remove, mut processor, mut peak] =
        [(); 6].map(|()| Samples::default());
    for _ in 0..asked.rounds(5) {
        let removed_by_the_floor = world();
        let processor_before = processor_milliseconds();
        floor.push(milliseconds(|| open_read_unlink(&removed_by_the_floor.measurements)));
        processor_floor.push(processor_milliseconds() - processor_before);
        let said = in_a_process_of_its_own(&world(), files);
        claim.push(said.claim_ms);
        commit.push(said.commit_ms);
        remove.push(said.remove_ms);
        whole.push(said.whole_ms());
        processor.push(said.processor_ms);
        peak.push(said.peak_mb);
    }
    let state = if on_disk == OnDisk::Yes { ", written out" } else { "" };
    let what = |part: &str| format!("{files} files of 1 line{state}: {part}");
    vec![
        Figure::new(what("whole"), "ms", whole).over(&floor).within(budget),
        Figure::new(what("processor time"), "ms", processor).over(&processor_floor),
        Figure::new(what("claim and read"), "ms", claim),
        Figure::new(what("commit"), "ms", commit),
        Figure::new(what("remove"), "ms", remove),
        Figure::new(what("peak resident"), "MB", peak),
    ]
}

/// 2,000 files of 2,000 lines, about 40 MB.
fn large_files(asked: Asked, place: &Path) -> Vec<Figure> {
    let files = asked.size(2_000);
    let lines = file_of_2000_lines();
    let megabytes = (lines.len() * files) as f64 / 1e6;
    let [mut floor, mut whole, mut claim, mut peak] = [(); 4].map(|()| Samples::default());
    for _ in 0..asked.rounds(15) {
        let world = World::new(place, files, |_| lines.as_str());
        floor.push(megabytes / milliseconds(|| count_newlines(&world.measurements)) * 1e3);
        let said = in_a_process_of_its_own(&world, files * 2_000);
        whole.push(megabytes / said.whole_ms() * 1e3);
        claim.push(megabytes / said.claim_ms * 1e3);
        peak.push(said.peak_mb);
    }
    let what = |part: &str| format!("{files} files of 2000 lines: {part}");
    vec![
        Figure::new(what("whole"), "MB/s", whole)
            .over(&floor)
            .within(Budget::AtLeast(MEGABYTES_PER_SECOND)),
        Figure::new(what("claim and read"), "MB/s", claim).over(&floor),
        Figure::new(what("peak resident"), "MB", peak).within(Budget::AtMost(RESIDENT_MEGABYTES)),
    ]
}

/// What a busy process's flush looks like: as many lines of each percentage, some with a fraction,
/// an instruction count after every third, and the launches at the end.
fn file_of_2000_lines() -> String {
    let mut lines = String::new();
    for number in 0..499 {
        lines += &format!("0:{}\n", 1_048_576 + number * 7_919);
        lines += &format!("1:{}\n", (number % 64) as f64 * 1.5625);
        lines += &format!("2:{:.4}\n", 100.0 / (1 + number % 32) as f64);
        lines += &format!("3:{:.6}\n", (number * 37 % 1_000) as f64 / 9.99);
    }
    lines + "0:1\n1:100\n2:3.125\n4:2500000\n"
}

/// A measurements folder full of files, and a state folder yet to be made.
struct World {
    root: TempDir,
    measurements: PathBuf,
}

impl World {
    fn new<L: AsRef<str>>(place: &Path, files: usize, lines: impl Fn(usize) -> L) -> Self {
        let root = TempDir::new_in(place).unwrap();
        let measurements = root.path().join("measurements");
        fs::create_dir(&measurements).unwrap();
        let now_ns = unix_now_ns();
        for number in 0..files {
            let pid = FIRST_PID + number % PROCESSES;
            let name = format!("{pid}-{pid}-{}", now_ns + number as u64);
            let mut file = File::create(measurements.join(name)).unwrap();
            file.write_all(lines(number).as_ref().as_bytes()).unwrap();
        }
        Self { root, measurements }
    }
}

/// The floor of consuming small files: nothing is looked at twice, nothing is understood, and
/// what is killed in between is lost.
fn open_read_unlink(path: &Path) {
    let folder = File::open(path).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let names = Folder::open(path).unwrap().list(usize::MAX, deadline).unwrap().visible;
    let mut buffer = vec![0; CHUNK_BYTES];
    for index in 0..names.len() {
        let name = OsStr::from_bytes(names.get(index).unwrap().0);
        let mut file = File::from(openat(&folder, name, OFlag::O_RDONLY, Mode::empty()).unwrap());
        assert!(file.read(&mut buffer).unwrap() > 0);
        unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir).unwrap();
    }
}

/// The floor of reading large files.
fn count_newlines(path: &Path) {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut newlines = 0;
    for entry in fs::read_dir(path).unwrap() {
        let mut file = File::open(entry.unwrap().path()).unwrap();
        loop {
            let length = file.read(&mut buffer).unwrap();
            if length == 0 {
                break;
            }
            newlines += buffer[..length].iter().filter(|&&byte| byte == b'\n').count();
        }
    }
    assert_eq!(newlines % 2_000, 0);
}

/// What the measured process says of itself.
#[derive(Debug, Serialize, Deserialize)]
struct Said {
    claim_ms: f64,
    commit_ms: f64,
    remove_ms: f64,
    /// Of all threads.
    processor_ms: f64,
    peak_mb: f64,
}

impl Said {
    fn whole_ms(&self) -> f64 {
        self.claim_ms + self.commit_ms + self.remove_ms
    }
}

fn in_a_process_of_its_own(world: &World, expected_lines: usize) -> Said {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("consume").arg(world.root.path()).arg(expected_lines.to_string());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What `pass.rs` does with a folder, and how long each part of it takes.
fn consume(place: &Path, expected_lines: u64) {
    let spool = Spool::open(&place.join("state")).unwrap();
    let folder = measurements::open(&place.join("measurements")).unwrap();
    let listing = listing();
    let now_ns = unix_now_ns();
    let request = Request {
        owners: &Owners::by_folder(&listing).remove(&None).unwrap(),
        still_there: &StillThere::default(),
        shape: Shape::None,
        now_ns,
        limits: Limits::OF_THE_TOP_FOLDER,
    };

    let processor_before = processor_milliseconds();
    let started = Instant::now();
    let claim = measurements::claim(&folder, &request).unwrap();
    let claimed = Instant::now();
    let window = Window { start_ns: now_ns - 60_000_000_000, end_ns: now_ns };
    let commit = Commit {
        window,
        chunks: &[],
        counted: &manifest::render([(&None, &claim.counted)]),
        refused: b"",
        after: &[After { name: "after.json", content: b"{}" }],
        durability: Durability::PowerCut,
    };
    let entry = spool.commit(&commit).unwrap();
    entry.apply_after("after.json", &place.join("state/carried.json")).unwrap();
    let committed = Instant::now();
    assert_eq!((claim.read, claim.refused.total()), (expected_lines, 0));
    let left = manifest::remove(&folder, &claim.counted, measurements::workers(), false);
    assert_eq!(left, []);
    entry.forget_counted().unwrap();
    spool.sweep().unwrap();
    let removed = Instant::now();

    let ms = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e3;
    let said = Said {
        claim_ms: ms(started, claimed),
        commit_ms: ms(claimed, committed),
        remove_ms: ms(committed, removed),
        processor_ms: processor_milliseconds() - processor_before,
        peak_mb: own_peak_megabytes(),
    };
    println!("{}", serde_json::to_string(&said).unwrap());
}

fn listing() -> Listing {
    let user = nix::unistd::Uid::current().as_raw();
    let processes = (0..PROCESSES).map(|number| ListedProcess {
        pid: (FIRST_PID + number) as u32,
        own_pid: (FIRST_PID + number) as u32,
        start_ticks: 1,
        created_ns: 1,
        uids: vec![user],
        group: Some("trainer".to_owned()),
        executable: "python3".to_owned(),
        service_name: None,
        container_id: None,
        pod_uid: None,
        folder: None,
        gone_since_ns: None,
    });
    let mut listing = Listing::default();
    listing.refresh(processes.collect(), 1);
    listing
}

/// User and system time of this process so far.
fn processor_milliseconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    [usage.user_time(), usage.system_time()]
        .iter()
        .map(|time| time.num_microseconds() as f64 / 1e3)
        .sum()
}

/// `VmHWM` of proc_pid_status(5): the most that this process ever had in memory, in units of
/// 1,000,000 bytes.
fn own_peak_megabytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kibibytes * 1024.0 / 1e6
}
