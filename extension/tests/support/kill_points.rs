//! Passes that are killed right before a chosen change to the world.
//!
//! The pass runs under ptrace(2), and every system call with which it could change something that
//! outlives it is counted. So each state of the disk that a kill can leave behind is met, and not
//! only those that chance finds.

use std::process::{Command, Stdio};

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::world::World;

/// What became of a pass that was to be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It was killed, right before that change.
    Killed,
    /// It came to its end, with this exit code, before it made so many changes.
    Finished(i32),
    /// This machine does not let a process trace its child.
    Untraceable,
}

/// Runs a pass and kills it right before its change number `change`, from 0.
pub(crate) fn pass_killed_before(world: &World, change: usize) -> End {
    let pass = world.command(&["run", "--json"]);
    let mut shell = Command::new("/bin/sh");
    // It waits to be traced, and becomes the pass.
    shell.env_clear().args(["-c", "kill -STOP $$; exec \"$0\" \"$@\""]);
    shell.arg(pass.get_program()).args(pass.get_args());
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[expect(clippy::zombie_processes, reason = "its end is waited for by its pid")]
    let child = shell.spawn().unwrap();
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    let stopped = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert_eq!(stopped, WaitStatus::Stopped(pid, Signal::SIGSTOP));
    let options =
        Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_EXITKILL;
    if ptrace::seize(pid, options).is_err() {
        kill(pid, Signal::SIGKILL).unwrap();
        waitpid(pid, None).unwrap();
        return End::Untraceable;
    }
    kill(pid, Signal::SIGCONT).unwrap();
    follow(pid, change)
}

fn follow(pass: Pid, change: usize) -> End {
    // Only what this thread traces: the other tests of this process have children too.
    let of_this_thread = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    let mut changes = 0;
    loop {
        // A thread that was killed in between cannot be resumed any more; its end is reported.
        match waitpid(Pid::from_raw(-1), Some(of_this_thread)).unwrap() {
            WaitStatus::PtraceSyscall(thread) => {
                if is_about_to_change_something(thread) {
                    if changes == change {
                        kill(pass, Signal::SIGKILL).unwrap();
                    }
                    changes += 1;
                }
                ptrace::syscall(thread, None).ok();
            }
            WaitStatus::PtraceEvent(thread, ..) => {
                ptrace::syscall(thread, None).ok();
            }
            WaitStatus::Stopped(thread, signal) => {
                ptrace::syscall(thread, signal).ok();
            }
            WaitStatus::Exited(thread, code) if thread == pass => return End::Finished(code),
            WaitStatus::Signaled(thread, ..) if thread == pass => return End::Killed,
            _ => {}
        }
    }
}

/// Whether a thread stands before a system call that changes something which outlives the process.
fn is_about_to_change_something(thread: Pid) -> bool {
    let Ok(registers) = ptrace::getregs(thread) else { return false };
    // What the kernel puts there on the way in, and a result on the way out.
    const ON_THE_WAY_IN: u64 = (-(libc::ENOSYS as i64)).cast_unsigned();
    if registers.rax != ON_THE_WAY_IN {
        return false;
    }
    match registers.orig_rax.cast_signed() {
        libc::SYS_rename
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_unlink
        | libc::SYS_unlinkat
        | libc::SYS_rmdir
        | libc::SYS_mkdir
        | libc::SYS_mkdirat
        | libc::SYS_chmod
        | libc::SYS_fchmod
        | libc::SYS_ftruncate
        | libc::SYS_pwrite64
        | libc::SYS_sendto
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_shutdown => true,
        // What it says to its caller is lost with it.
        libc::SYS_write => registers.rdi > 2,
        libc::SYS_openat => registers.rdx & libc::O_CREAT.unsigned_abs() as u64 != 0,
        _ => false,
    }
}
