//! What resolving the process groups costs among 5,000 processes, beside a floor from the same
//! run: listing the folder and reading one file of each process with nothing but `std`.
//!
//! The processes are files in a temporary folder. The real `/proc` makes up its content at each
//! read, so `real_proc` shows the same for the processes of this machine, however many they are.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark stops at the first surprise"
)]

#[path = "../tests/support/fake_proc.rs"]
#[allow(dead_code, reason = "not every test file needs all of it")]
mod fake_proc;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use divan::Bencher;
use divan::counter::ItemsCount;
use fake_proc::{FakeProc, FakeProcess};
use warpgauge::config::process_group::{Conditions, ProcessGroup};
use warpgauge::groups::Rules;
use warpgauge::procfs::ProcFs;

const PROCESSES: u32 = 5_000;

/// Each hundredth process is one to monitor.
const MATCHING: u32 = PROCESSES / 100;

/// The root of the fake `/proc`, which lives as long as `main`.
static ROOT: OnceLock<PathBuf> = OnceLock::new();

fn main() {
    let fake = FakeProc::new();
    for pid in 2..=PROCESSES {
        let process = match pid % 100 {
            0 => FakeProcess::new("trainer").environ(&["RANK=0", "OTEL_SERVICE_NAME=llm"]),
            other => FakeProcess::new(format!("service-{other}")),
        };
        process.create(&fake, pid);
    }
    ROOT.set(fake.path("")).unwrap();
    divan::main();
}

/// What nobody can go below without asking less.
#[divan::bench]
fn floor(bencher: Bencher) {
    bencher
        .counter(ItemsCount::new(PROCESSES))
        .bench_local(|| read_every_comm(ROOT.get().unwrap()));
}

/// The default: a process name.
#[divan::bench]
fn process_name(bencher: Bencher) {
    let rules = Rules::compile(&[], &["trainer".to_owned()]).unwrap();
    resolve(bencher, &rules);
}

/// A hundred groups, each with its process name.
#[divan::bench]
fn a_hundred_process_names(bencher: Bencher) {
    let mut names: Vec<String> = (1..100).map(|index| format!("nobody-{index}")).collect();
    names.push("trainer".to_owned());
    resolve(bencher, &Rules::compile(&[], &names).unwrap());
}

/// The arguments of every process.
#[divan::bench]
fn command_line(bencher: Bencher) {
    let all = Conditions { cmdline: Some("^trainer".to_owned()), ..Conditions::default() };
    resolve(bencher, &rules_of(all));
}

/// The environment of every process.
#[divan::bench]
fn environment(bencher: Bencher) {
    let env = [("RANK".to_owned(), "*".to_owned())].into();
    resolve(bencher, &rules_of(Conditions { env, ..Conditions::default() }));
}

/// The floor on this machine's own processes.
#[divan::bench]
fn real_proc_floor(bencher: Bencher) {
    bencher.bench_local(|| read_every_comm(Path::new("/proc")));
}

/// A process name that none of this machine's processes has.
#[divan::bench]
fn real_proc(bencher: Bencher) {
    let rules = Rules::compile(&[], &["no such process".to_owned()]).unwrap();
    let proc = ProcFs::new("/proc");
    bencher.bench_local(|| rules.resolve(&proc, 0).unwrap());
}

fn rules_of(all: Conditions) -> Rules {
    let group = ProcessGroup { name: "trainer".to_owned(), all, any: Vec::new() };
    Rules::compile(&[group], &["trainer".to_owned()]).unwrap()
}

fn resolve(bencher: Bencher, rules: &Rules) {
    let proc = ProcFs::new(ROOT.get().unwrap());
    bencher.counter(ItemsCount::new(PROCESSES)).bench_local(|| {
        let found = rules.resolve(&proc, 0).unwrap();
        let matched = found.groups.iter().map(|group| group.processes.len()).sum::<usize>();
        assert_eq!((found.listed, matched), (PROCESSES as usize, MATCHING as usize));
        found
    });
}

/// Returns how many bytes were read, so that nothing is optimized away.
fn read_every_comm(root: &Path) -> usize {
    let mut total = 0;
    let mut buffer = [0; 128];
    for entry in fs::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit)
            && let Ok(mut file) = File::open(entry.path().join("comm"))
        {
            total += file.read(&mut buffer).unwrap_or_default();
        }
    }
    total
}
