//! Processes that end half-way, files that may not be read, and files that make no sense.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "support/fake_proc.rs"]
#[allow(dead_code, reason = "not every test file needs all of it")]
mod fake_proc;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use fake_proc::{FakeProc, FakeProcess};
use nix::errno::Errno;
use nix::unistd::{Uid, setfsuid};
use warpgauge::config::process_group::{Conditions, ProcessGroup};
use warpgauge::groups::{Resolution, Rules, Skipped, Unreadable};
use warpgauge::procfs::{ProcError, ProcFile, ProcFs, Unread};

const OWN_PID: u32 = 99_999;

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn rules(all: Conditions) -> Rules {
    let group = ProcessGroup { name: "g".to_owned(), all, any: Vec::new() };
    Rules::compile(&[group], &["g".to_owned()]).unwrap()
}

fn named(name: &str) -> Rules {
    rules(Conditions { process_name: text(name), ..Conditions::default() })
}

/// Every condition there is, all of which the process of [`complete_process`] meets.
fn every_condition() -> Conditions {
    Conditions {
        process_name: text("complete-process"),
        exe: text("/usr/bin/complete*"),
        cmdline: text("complete"),
        user: text("7"),
        systemd_unit: text("a.service"),
        cgroup: text("/system.slice/**"),
        container: None,
        env: [("RANK".to_owned(), "0".to_owned())].into(),
        gpu: Some(true),
    }
}

fn complete_process(fake: &FakeProc, pid: u32) {
    FakeProcess::new("complete-process")
        .uids([7; 4])
        .cgroup("/system.slice/a.service")
        .environ(&["RANK=0"])
        .maps("/usr/lib/libcuda.so.1")
        .create(fake, pid);
}

fn pids(resolution: &Resolution) -> Vec<u32> {
    resolution.groups[0].processes.iter().map(|process| process.id.pid).collect()
}

fn skipped(file: ProcFile, reason: Unread, processes: usize, example: u32) -> Skipped {
    Skipped { cause: Unreadable { file, reason }, processes, example }
}

#[test]
fn a_process_that_ends_at_any_stage_is_simply_not_there() {
    let fake = FakeProc::new();
    let files = ["comm", "stat", "status", "exe", "cgroup", "cmdline", "environ", "maps"];
    for (index, file) in files.iter().enumerate() {
        let pid = 10 + u32::try_from(index).unwrap();
        complete_process(&fake, pid);
        fake.remove(&format!("{pid}/{file}"));
    }
    complete_process(&fake, 50);
    let found = rules(every_condition()).resolve(&fake.open(), OWN_PID).unwrap();
    assert_eq!(pids(&found), [50]);
    assert_eq!((found.skipped, found.incomplete), (vec![], vec![]));
}

#[test]
fn a_folder_that_holds_nothing_any_more_is_passed_over() {
    let fake = FakeProc::new();
    fs::create_dir(fake.path("10")).unwrap();
    FakeProcess::new("a").create(&fake, 11);
    let found = named("a").resolve(&fake.open(), OWN_PID).unwrap();
    assert_eq!((pids(&found), found.skipped), (vec![11], vec![]));
    let everything = rules(Conditions { cmdline: text("."), ..Conditions::default() });
    let found = everything.resolve(&fake.open(), OWN_PID).unwrap();
    assert_eq!((pids(&found), found.skipped), (vec![1, 11], vec![]));
}

#[test]
fn a_process_that_ends_after_it_matched_keeps_what_was_read() {
    let fake = FakeProc::new();
    FakeProcess::new("a").create(&fake, 10);
    for file in ["exe", "cgroup", "environ"] {
        fake.remove(&format!("10/{file}"));
    }
    let found = named("a").resolve(&fake.open(), OWN_PID).unwrap();
    let process = &found.groups[0].processes[0];
    assert_eq!((&process.executable_name, &process.container_id), (&None, &None));
    assert_eq!((found.skipped, found.incomplete), (vec![], vec![]));
}

#[test]
fn a_reused_pid_does_not_mix_two_processes_up() {
    let fake = FakeProc::new();
    FakeProcess::new("first").start_ticks(5).create(&fake, 10);
    let held = fake.open().process(10).unwrap();
    fs::rename(fake.path("10"), fake.path("gone")).unwrap();
    FakeProcess::new("second").start_ticks(6).create(&fake, 10);
    let mut text = Vec::new();
    held.read(ProcFile::Cmdline, &mut text).unwrap();
    assert_eq!(text, b"first\0");
    fs::remove_dir_all(fake.path("gone")).unwrap();
    assert_eq!(held.read(ProcFile::Cmdline, &mut text), Err(Unread::Vanished));
    assert_eq!(held.exe(), Err(Unread::Vanished));
    assert_eq!(held.mapped(), Err(Unread::Vanished));
}

#[test]
fn malformed_files_leave_a_process_out_and_are_counted_by_file() {
    let fake = FakeProc::new();
    for pid in 10..14 {
        FakeProcess::new("a").create(&fake, pid);
    }
    fake.write("10/stat", "10 (a) S 1 2 3\n");
    fake.write("11/stat", "");
    fake.write("12/status", "Name:\ta\nUid:\tnobody\n");
    let found = named("a").resolve(&fake.open(), OWN_PID).unwrap();
    assert_eq!(pids(&found), [13]);
    let wanted = [
        skipped(ProcFile::Stat, Unread::Malformed, 2, 10),
        skipped(ProcFile::Status, Unread::Malformed, 1, 12),
    ];
    assert_eq!(found.skipped, wanted);
}

#[test]
fn a_file_beyond_its_limit_is_not_judged_by_its_beginning() {
    let fake = FakeProc::new();
    FakeProcess::new("a").create(&fake, 10);
    let mut arguments = b"a\0train.py\0".to_vec();
    arguments.resize(ProcFile::Cmdline.limit() + 1, b'x');
    fake.write("10/cmdline", &arguments);
    let training = rules(Conditions { cmdline: text("train"), ..Conditions::default() });
    let found = training.resolve(&fake.open(), OWN_PID).unwrap();
    assert!(pids(&found).is_empty());
    assert_eq!(found.skipped, [skipped(ProcFile::Cmdline, Unread::TooLarge, 1, 10)]);
    arguments.pop();
    fake.write("10/cmdline", &arguments);
    assert_eq!(pids(&training.resolve(&fake.open(), OWN_PID).unwrap()), [10]);
}

#[test]
fn a_giant_variable_is_not_taken_over() {
    let fake = FakeProc::new();
    let giant = format!("OTEL_SERVICE_NAME={}", "x".repeat(5_000));
    FakeProcess::new("a").environ(&[&giant]).create(&fake, 10);
    let found = named("a").resolve(&fake.open(), OWN_PID).unwrap();
    assert_eq!(found.groups[0].processes[0].otel_service_name, None);
    assert_eq!(found.incomplete, [skipped(ProcFile::Environ, Unread::TooLarge, 1, 10)]);
}

/// Acts as a user who owns nothing. Only one thread changes its file system user, and only until it
/// ends; for a user other than root it changes nothing, and mode 0 denies as well.
fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            setfsuid(Uid::from_raw(65_534));
            act()
        });
        thread.join().unwrap()
    })
}

fn resolve_as_nobody(rules: &Rules, fake: &FakeProc) -> Resolution {
    let proc = fake.open();
    // Opens the root before the rights to its parents may be gone.
    proc.pids().unwrap();
    as_nobody(|| rules.resolve(&proc, OWN_PID).unwrap())
}

fn deny(fake: &FakeProc, name: &str) {
    fs::set_permissions(fake.path(name), Permissions::from_mode(0o000)).unwrap();
}

#[test]
fn what_may_not_be_read_leaves_a_process_undecided_and_is_counted_once() {
    let fake = FakeProc::new();
    for pid in 10..13 {
        FakeProcess::new("a").environ(&["RANK=0"]).create(&fake, pid);
        deny(&fake, &format!("{pid}/environ"));
    }
    FakeProcess::new("a").environ(&["RANK=0"]).create(&fake, 13);
    let env = [("RANK".to_owned(), "0".to_owned())].into();
    let rules = rules(Conditions { env, ..Conditions::default() });
    let found = resolve_as_nobody(&rules, &fake);
    assert_eq!(pids(&found), [13]);
    assert_eq!(found.skipped, [skipped(ProcFile::Environ, Unread::Denied, 3, 10)]);
    assert_eq!(
        found.skipped[0].to_string(),
        "3 processes (pid 10 for one): environ: permission denied; run as root or with the capability \
         CAP_SYS_PTRACE"
    );
}

#[test]
fn an_unreadable_file_does_not_matter_where_another_condition_fails() {
    let fake = FakeProc::new();
    FakeProcess::new("python3").arguments(&["python3", "serve.py"]).create(&fake, 10);
    FakeProcess::new("python3").arguments(&["python3", "train.py"]).create(&fake, 11);
    FakeProcess::new("kthreadd").kernel_thread().create(&fake, 12);
    for pid in 10..13 {
        deny(&fake, &format!("{pid}/maps"));
        deny(&fake, &format!("{pid}/status"));
    }
    let conditions =
        Conditions { user: text("0"), cmdline: text("train|^$"), ..Conditions::default() };
    let found = resolve_as_nobody(&rules(conditions), &fake);
    assert!(pids(&found).is_empty());
    assert_eq!(found.skipped, [skipped(ProcFile::Status, Unread::Denied, 1, 11)]);
}

#[test]
fn not_knowing_the_mappings_is_not_the_same_as_having_none() {
    let fake = FakeProc::new();
    FakeProcess::new("a").create(&fake, 10);
    deny(&fake, "10/maps");
    let conditions =
        Conditions { process_name: text("a"), gpu: Some(false), ..Conditions::default() };
    let found = resolve_as_nobody(&rules(conditions), &fake);
    assert!(pids(&found).is_empty());
    assert_eq!(found.skipped, [skipped(ProcFile::Maps, Unread::Denied, 1, 10)]);
}

#[test]
fn a_matched_process_with_an_unreadable_environment_is_monitored_without_it() {
    let fake = FakeProc::new();
    FakeProcess::new("a").environ(&["OTEL_SERVICE_NAME=x"]).create(&fake, 10);
    deny(&fake, "10/environ");
    let found = resolve_as_nobody(&named("a"), &fake);
    assert_eq!(pids(&found), [10]);
    assert_eq!(found.groups[0].processes[0].otel_service_name, None);
    assert_eq!(found.incomplete, [skipped(ProcFile::Environ, Unread::Denied, 1, 10)]);
}

#[test]
fn a_name_that_may_not_be_read_is_counted_and_not_taken_for_another() {
    let fake = FakeProc::new();
    FakeProcess::new("a").create(&fake, 10);
    deny(&fake, "10/comm");
    deny(&fake, "10/stat");
    let found = resolve_as_nobody(&named("a"), &fake);
    assert!(pids(&found).is_empty());
    assert_eq!(found.skipped, [skipped(ProcFile::Stat, Unread::Denied, 1, 10)]);
}

#[test]
fn a_denial_from_a_process_that_has_ended_is_no_denial() {
    let fake = FakeProc::new();
    FakeProcess::new("a").environ(&["RANK=0"]).create(&fake, 10);
    deny(&fake, "10/environ");
    let held = fake.open().process(10).unwrap();
    let read = || as_nobody(|| held.read(ProcFile::Environ, &mut Vec::new()));
    assert_eq!(read(), Err(Unread::Denied));
    fake.remove("10/stat");
    assert_eq!(read(), Err(Unread::Vanished));
}

#[test]
fn a_long_name_is_undecided_while_the_executable_may_have_it() {
    let fake = FakeProc::new();
    let name = "distributed-trainer";
    for (pid, argument) in [(10, "x"), (11, name)] {
        FakeProcess::new(name).arguments(&[argument]).create(&fake, pid);
        // Not even a link: the kernel says EINVAL.
        fake.remove(&format!("{pid}/exe"));
        fake.write(&format!("{pid}/exe"), "");
    }
    let found = named(name).resolve(&fake.open(), OWN_PID).unwrap();
    assert_eq!(pids(&found), [11]);
    let reason = Unread::Failed(Errno::EINVAL);
    assert_eq!(found.skipped, [skipped(ProcFile::Exe, reason, 1, 10)]);
    assert_eq!(found.incomplete, [skipped(ProcFile::Exe, reason, 1, 11)]);
}

#[test]
fn a_missing_proc_is_an_error_and_not_an_empty_list() {
    let proc = ProcFs::new("/nonexistent/proc");
    let error = named("a").resolve(&proc, OWN_PID).unwrap_err();
    assert_eq!(
        error,
        ProcError::Unreadable { path: "/nonexistent/proc".into(), errno: Errno::ENOENT }
    );
    assert_eq!(
        error.to_string(),
        "/nonexistent/proc: No such file or directory; is a proc file system mounted there?"
    );
}

#[test]
fn a_folder_that_is_no_proc_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = named("a").resolve(&ProcFs::new(folder.path()), OWN_PID).unwrap_err();
    assert!(error.to_string().contains("/stat: No such file"), "{error}");
    let fake = FakeProc::new();
    fake.write("stat", "cpu 1 2 3\n");
    let error = named("a").resolve(&fake.open(), OWN_PID).unwrap_err();
    assert!(error.to_string().contains("expected a line `btime SECONDS`"), "{error}");
}

#[test]
fn hidden_processes_of_others_are_noticed() {
    let fake = FakeProc::new();
    assert!(!named("a").resolve(&fake.open(), OWN_PID).unwrap().others_hidden);
    fs::remove_dir_all(fake.path("1")).unwrap();
    FakeProcess::new("a").create(&fake, 10);
    assert!(named("a").resolve(&fake.open(), OWN_PID).unwrap().others_hidden);
}

#[test]
fn the_boot_s_name_and_our_own_pid_come_from_the_same_root() {
    let fake = FakeProc::new();
    assert_eq!(fake.open().boot_id().unwrap(), "0d5b6e1c-7c6a-4a2b-9d53-2f1f4f3c8a11");
    assert_eq!(fake.open().own_pid(), None);
    std::os::unix::fs::symlink("4242", fake.path("self")).unwrap();
    assert_eq!(fake.open().own_pid(), Some(4242));
    fake.write("sys/kernel/random/boot_id", " \n");
    assert!(fake.open().boot_id().is_err());
}
