//! However a program ends or doubles itself: what was launched is published once, and the program
//! never notices.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::fs;
use std::os::unix::process::ExitStatusExt;

use nix::libc;
use nix::sys::ptrace;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use warpgauge_tests::{Outcome, World, eventually};

/// Runs a listed program that publishes at its end alone.
fn run_to_the_end(world: &World, arguments: &[&str]) -> Outcome {
    let arguments = [&["--pause-before", "init", "--exit-code=7"], arguments].concat();
    let host = world.host(&arguments).env("WARPGAUGE_FLUSH_INTERVAL", "3600");
    let outcome = host.start_listed("1").unwrap().finish().unwrap();
    assert_eq!(outcome.status.code(), Some(7), "{outcome:?}");
    assert_eq!(outcome.errors, "");
    outcome
}

#[test]
fn launches_are_published_when_main_returns() {
    let world = World::new().unwrap();
    let outcome = run_to_the_end(&world, &["--launches=50"]);
    let published = world.published_by(outcome.pid).unwrap();
    assert_eq!((published.launches, published.files), (50, 1));
}

#[test]
fn launches_are_published_when_another_thread_calls_exit_at_once() {
    let world = World::new().unwrap();
    let outcome = run_to_the_end(&world, &["--launches=50", "--mode=exit-now"]);
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 50);
}

#[test]
fn a_program_without_a_launch_publishes_nothing() {
    let world = World::new().unwrap();
    let outcome = run_to_the_end(&world, &["--launches=0"]);
    assert_eq!(world.published_by(outcome.pid).unwrap().files, 0);
}

#[test]
fn a_forked_child_publishes_nothing_of_its_parents() {
    let world = World::new().unwrap();
    let outcome = run_to_the_end(&world, &["--launches=50", "--mode=fork"]);
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 50);
    let files: Vec<_> = fs::read_dir(world.measurements()).unwrap().collect();
    assert_eq!(files.len(), 1, "the parent's: {files:?}");
    assert_eq!(world.cupti_log().unwrap(), ["subscribe"]);
}

/// A program that is replaced gives no notice, so its periodic files are what stands of it. The new
/// one has the same pid, is injected into and is listed from its first launch.
#[test]
fn a_program_that_replaces_itself_is_injected_into_anew() {
    let world = World::new().unwrap();
    let host = world.host(&[
        "--mode=exec",
        "--launches=50",
        "--pause-before",
        "init",
        "--pause-before",
        "exit",
    ]);
    let mut host = host.start_listed("1").unwrap();
    let pid = host.pid();
    host.wait_until_ready_after_report().unwrap();
    eventually("the first half is published", || {
        Ok((world.published_by(pid)?.launches == 25).then_some(()))
    })
    .unwrap();
    host.go_on().unwrap();
    let outcome = host.finish().unwrap();
    assert!(outcome.status.success(), "{outcome:?}");
    assert_eq!(outcome.launches(), 50);
    assert_eq!(world.published_by(pid).unwrap().launches, 50);
    assert_eq!(world.cupti_log().unwrap(), ["subscribe", "subscribe"]);
}

/// `_exit` runs nothing: what was published before stands, and the rest is lost with the program.
#[test]
fn a_program_that_ends_without_handlers_keeps_what_was_published_before() {
    let world = World::new().unwrap();
    let host = world.host(&[
        "--mode=abrupt",
        "--launches=50",
        "--exit-code=7",
        "--pause-before",
        "init",
        "--pause-before",
        "exit",
    ]);
    let mut host = host.start_listed("1").unwrap();
    let pid = host.pid();
    host.wait_until_ready_after_report().unwrap();
    eventually("the periodic file appears", || {
        Ok((world.published_by(pid)?.launches == 50).then_some(()))
    })
    .unwrap();
    host.go_on().unwrap();
    assert_eq!(host.finish().unwrap().status.code(), Some(7));
    assert_eq!(world.published_by(pid).unwrap().launches, 50);
}

/// Windows last longer than the pauses between them here, so that one is open when the end comes.
const ALWAYS_IN_A_WINDOW: &str = "slow-window=100";

#[test]
fn a_program_that_ends_while_another_thread_is_in_a_window_ends_as_it_says() {
    for (end, code, signal) in [
        ("exit", Some(7), None),
        ("immediate", Some(7), None),
        ("abort", None, Some(libc::SIGABRT)),
    ] {
        let world = World::new().unwrap();
        let end = format!("--end={end}");
        let outcome = world
            .host(&[
                "--pause-before=init",
                "--mode=cut-short",
                "--exit-code=7",
                "--seconds=2",
                &end,
            ])
            .env("STANDIN_CUPTI_FAULT", ALWAYS_IN_A_WINDOW)
            .env("WARPGAUGE_WINDOW_INTERVAL", "0.01")
            .env("WARPGAUGE_WINDOW_BUDGET_PERCENT", "100")
            .start_listed("0,1,2,3")
            .unwrap()
            .finish()
            .unwrap();
        assert_eq!((outcome.status.code(), outcome.status.signal()), (code, signal), "{end}");
        assert_eq!((outcome.errors.as_str(), outcome.lines.len()), ("", 0), "{end}");
        if code == Some(7) && end.ends_with("exit") {
            assert!(world.published_by(outcome.pid).unwrap().launches > 0);
        }
    }
}

/// Where a library of the program's ends it inside a call that we make, on the program's thread or
/// on ours.
#[test]
fn an_exit_inside_a_call_of_ours_ends_the_program_as_it_says() {
    for fault in ["exit-in-window", "exit-in-subscribe"] {
        let world = World::new().unwrap();
        let outcome = world
            .host(&["--pause-before=init", "--seconds=60", "--rate=500"])
            .env("STANDIN_CUPTI_FAULT", format!("{fault}=5"))
            .start_listed("0,1")
            .unwrap()
            .finish()
            .unwrap();
        assert_eq!((outcome.status.code(), outcome.errors.as_str()), (Some(5), ""), "{fault}");
        let exited = world.cupti_log().unwrap();
        assert!(exited.last().unwrap().starts_with("exit inside"), "{exited:?}");
    }
    // Listed late, the call is made on our own thread, which then holds what the exit asks for.
    let world = World::new().unwrap();
    let host = world
        .host(&["--pause-before=launch", "--seconds=60", "--rate=500"])
        .env("STANDIN_CUPTI_FAULT", "exit-in-subscribe=5");
    let outcome = host.start_listed("1").unwrap().finish().unwrap();
    assert_eq!((outcome.status.code(), outcome.errors.as_str()), (Some(5), ""));
}

/// Ends one thread of a process, as nothing but the kernel or a debugger can: it is made to call
/// exit(2).
#[cfg(target_arch = "x86_64")]
fn kill_thread(pid: u32, thread: Pid) -> nix::Result<()> {
    /// The length of the instruction `syscall`.
    const SYSCALL_BYTES: u64 = 2;
    ptrace::attach(thread)?;
    waitpid(thread, Some(nix::sys::wait::WaitPidFlag::__WALL))?;
    let mut registers = ptrace::getregs(thread)?;
    // A thread that waits stands behind the instruction with which it began to.
    registers.rip -= SYSCALL_BYTES;
    registers.rax = libc::SYS_exit.cast_unsigned();
    registers.orig_rax = u64::MAX;
    registers.rdi = 0;
    ptrace::setregs(thread, registers)?;
    ptrace::detach(thread, None)?;
    let place = format!("/proc/{pid}/task/{thread}");
    eventually("the thread is gone", || Ok((!fs::exists(&place)?).then_some(()))).unwrap();
    Ok(())
}

#[cfg(target_arch = "x86_64")]
#[test]
fn without_its_thread_the_library_counts_on_and_publishes_at_the_exit() {
    let world = World::new().unwrap();
    let arguments = ["--pause-before=init", "--pause-before=launch", "--launches=500"];
    let host = world.host(&arguments).env("WARPGAUGE_WINDOW_INTERVAL", "0.01");
    let mut host = host.start_listed("0,1").unwrap();
    host.wait_until_ready().unwrap();
    let pid = host.pid();
    let thread = eventually("the library's thread has its name", || {
        let mut tasks = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
        let is_ours = |name: String| name.trim() == "warpgauge";
        Ok(tasks.find(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(is_ours)))
    });
    let thread = thread.unwrap().file_name().into_string().unwrap().parse().unwrap();
    if let Err(error) = kill_thread(pid, Pid::from_raw(thread)) {
        eprintln!("not shown: {error}");
        return;
    }
    host.go_on().unwrap();
    let outcome = host.finish().unwrap();
    assert!(outcome.status.success() && outcome.errors.is_empty(), "{outcome:?}");
    assert_eq!(world.published_by(pid).unwrap().launches, 500);
}
