//! The real `/proc`, with processes that the tests start and end themselves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use warpgauge::config::process_group::{Conditions, ProcessGroup};
use warpgauge::groups::{Explanation, GroupOutcome, Resolution, Rules, Subject};
use warpgauge::procfs::{ProcFile, ProcFs, Unread};

/// A copy of `sleep` under a name of its own, running for at most a minute.
struct Sleeper {
    child: Child,
    folder: TempDir,
}

impl Sleeper {
    fn start(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(name);
        let sleep =
            ["/usr/bin/sleep", "/bin/sleep"].into_iter().find(|path| Path::new(path).exists());
        fs::copy(sleep.unwrap(), &program).unwrap();
        let mut command = Command::new(&program);
        // `sleep` may be one of many programs in one file that goes by its first argument.
        command.arg0("sleep").arg("60").env("OTEL_SERVICE_NAME", "sleeping").env("RANK", "3");
        let sleeper = Self { child: spawn(&mut command), folder };
        sleeper.wait_for_environment();
        sleeper
    }

    /// A program's environment appears a moment after its name, when the kernel has laid out its
    /// memory.
    fn wait_for_environment(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        let environ = format!("/proc/{}/environ", self.pid());
        while fs::read(&environ).unwrap().is_empty() {
            assert!(Instant::now() < deadline, "{environ} stays empty");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

/// Another test that forks while the copy is still open for writing makes its start fail with
/// `ETXTBSY` for a moment.
fn spawn(command: &mut Command) -> Child {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match command.spawn() {
            Ok(child) => return child,
            Err(error) => assert!(
                error.raw_os_error() == Some(nix::libc::ETXTBSY) && Instant::now() < deadline,
                "{error}"
            ),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // It may have been ended by the test already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rules(all: Conditions) -> Rules {
    let group = ProcessGroup { name: "g".to_owned(), all, any: Vec::new() };
    Rules::compile(&[group], &["g".to_owned()]).unwrap()
}

fn named(name: &str) -> Rules {
    Rules::compile(&[], &[name.to_owned()]).unwrap()
}

fn resolve(rules: &Rules) -> Resolution {
    rules.resolve(&ProcFs::new("/proc"), std::process::id()).unwrap()
}

fn pids(resolution: &Resolution) -> Vec<u32> {
    resolution.groups[0].processes.iter().map(|process| process.id.pid).collect()
}

fn explain(rules: &Rules, pid: u32) -> Explanation {
    rules.explain(&ProcFs::new("/proc"), pid, std::process::id()).unwrap()
}

#[test]
fn a_child_is_found_by_its_name_and_described() {
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let sleeper = Sleeper::start("wg-live-name");
    let proc = ProcFs::new("/proc");
    let mut found = resolve(&named("wg-live-name"));
    found.read_details(&proc);
    assert_eq!(pids(&found), [sleeper.pid()]);
    let process = &found.groups[0].processes[0];
    assert_eq!(process.comm, "wg-live-name");
    assert_eq!(process.executable_name.as_deref(), Some("wg-live-name"));
    assert_eq!(process.otel_service_name.as_deref(), Some("sleeping"));
    assert_eq!(process.uids.effective, nix::unistd::geteuid().as_raw());
    let details = process.details.as_ref().unwrap();
    assert_eq!(details.command, "sleep 60");
    assert!(!details.mapped.unwrap().cuda_driver);
    // The boot time has whole seconds, and the start time hundredths.
    let created = Duration::from_nanos(process.created_unix_nanoseconds);
    let after = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let slack = Duration::from_secs(2);
    assert!(created + slack >= before && created <= after + slack, "{created:?} {before:?}");
}

#[test]
fn a_long_name_is_completed_from_the_executable() {
    let sleeper = Sleeper::start("wg-live-with-a-long-name");
    assert_eq!(pids(&resolve(&named("wg-live-with-a-long-name"))), [sleeper.pid()]);
    assert!(pids(&resolve(&named("wg-live-with-another-name"))).is_empty());
}

#[test]
fn a_child_is_found_by_environment_arguments_executable_and_user_together() {
    let sleeper = Sleeper::start("wg-live-all");
    let exe = format!("{}/*", fs::canonicalize(sleeper.folder.path()).unwrap().display());
    let conditions = Conditions {
        exe: Some(exe),
        cmdline: Some("^sleep 60$".to_owned()),
        user: Some(nix::unistd::geteuid().as_raw().to_string()),
        env: [("RANK".to_owned(), "[0-9]".to_owned())].into(),
        gpu: Some(false),
        ..Conditions::default()
    };
    assert_eq!(pids(&resolve(&rules(conditions))), [sleeper.pid()]);
}

#[test]
fn an_executable_that_was_removed_is_still_known() {
    let sleeper = Sleeper::start("wg-live-removed");
    fs::remove_file(sleeper.folder.path().join("wg-live-removed")).unwrap();
    let found = resolve(&named("wg-live-removed"));
    let process = &found.groups[0].processes[0];
    assert_eq!(process.executable_name.as_deref(), Some("wg-live-removed"));
    let held = ProcFs::new("/proc").process(sleeper.pid()).unwrap();
    assert!(held.exe().unwrap().unwrap().deleted);
}

#[test]
fn once_a_process_has_ended_every_file_says_so() {
    let mut sleeper = Sleeper::start("wg-live-ends");
    let rules = named("wg-live-ends");
    let held = ProcFs::new("/proc").process(sleeper.pid()).unwrap();
    let mut text = Vec::new();
    held.read(ProcFile::Stat, &mut text).unwrap();

    sleeper.child.kill().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while explain(&rules, sleeper.pid()).subject != Subject::Ended {
        assert!(Instant::now() < deadline, "it was killed and does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Ended, and not yet waited for: still listed by the kernel, never by us.
    assert!(pids(&resolve(&rules)).is_empty());
    assert_eq!(held.exe(), Ok(None));

    sleeper.child.wait().unwrap();
    for file in [
        ProcFile::Comm,
        ProcFile::Stat,
        ProcFile::Status,
        ProcFile::Cgroup,
        ProcFile::Cmdline,
        ProcFile::Environ,
    ] {
        assert_eq!(held.read(file, &mut text), Err(Unread::Vanished), "{file}");
    }
    assert_eq!(held.exe(), Err(Unread::Vanished));
    assert_eq!(held.mapped(), Err(Unread::Vanished));
    assert_eq!(explain(&rules, sleeper.pid()).subject, Subject::NotThere);
}

#[test]
fn we_ourselves_are_there_but_never_monitored() {
    let proc = ProcFs::new("/proc");
    let own_pid = std::process::id();
    assert!(proc.pids().unwrap().contains(&own_pid));
    assert_eq!(proc.own_pid(), Some(own_pid));
    let every_user = Conditions { cmdline: Some(".".to_owned()), ..Conditions::default() };
    let rules = rules(every_user);
    assert!(!pids(&resolve(&rules)).contains(&own_pid));
    let explanation = explain(&rules, own_pid);
    assert_eq!(explanation.subject, Subject::Ourselves);
    assert_eq!(explanation.groups[0].outcome, GroupOutcome::NeverMonitored);
}

#[test]
fn this_boot_has_a_name() {
    let id = ProcFs::new("/proc").boot_id().unwrap();
    assert_eq!(id.len(), 36, "{id}");
}
