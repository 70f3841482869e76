//! A program that is sent signals all the time.
#![allow(unsafe_code, reason = "system calls and C functions that no safe interface has")]

use std::ffi::c_int;
use std::fs;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::libc;

use crate::modes::RunError;

static END: AtomicBool = AtomicBool::new(false);

/// Signals that come all the time, to whichever thread. The handler does nothing.
pub(crate) struct Storm(JoinHandle<()>);

extern "C" fn on_signal(_: c_int) {}

impl Storm {
    /// Begins to send `per_second` of SIGUSR1 to every thread, with SIGPROF by the timer that
    /// profilers use. `restart` as in sigaction(2), `SA_RESTART`.
    pub(crate) fn begin(per_second: f64, restart: bool) -> Self {
        // SAFETY: numbers and pointers alone, for which zero is a value.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = if restart { libc::SA_RESTART } else { 0 };
        for signal in [libc::SIGUSR1, libc::SIGPROF] {
            // SAFETY: the handler does nothing.
            unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
        }
        let period = Duration::from_secs_f64(1.0 / per_second);
        let microseconds = period.as_micros().try_into().unwrap_or(1000);
        let every = libc::timeval { tv_sec: 0, tv_usec: microseconds };
        let timer = libc::itimerval { it_interval: every, it_value: every };
        // SAFETY: setitimer(2) with a valid timer.
        unsafe { libc::syscall(libc::SYS_setitimer, libc::ITIMER_PROF, &raw const timer, 0) };
        Self(std::thread::spawn(move || send_to_all(period)))
    }

    /// Ends it.
    pub(crate) fn end(self) -> Result<(), RunError> {
        END.store(true, Ordering::Release);
        self.0.join().map_err(|_| RunError::Thread)
    }
}

fn send_to_all(period: Duration) {
    while !END.load(Ordering::Acquire) {
        for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let number: i32 = task.file_name().to_str().and_then(|n| n.parse().ok()).unwrap_or(0);
            let own = std::process::id();
            // SAFETY: plain numbers; a thread that is gone gives an error.
            unsafe { libc::syscall(libc::SYS_tgkill, own, number, libc::SIGUSR1) };
        }
        std::thread::sleep(period);
    }
}
