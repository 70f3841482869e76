//! The ends of a process: exit and fork.
//!
//! `_exit`, `exec` and a signal give no notice; what was published until then stands.
#![allow(unsafe_code, reason = "libc registers C functions")]

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::libc;

use crate::guard::{Entry, guard};
use crate::lifecycle::LIFECYCLE;
use crate::{scopes, signals, worker};

/// The process that was injected into.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Asks libc to tell when the process forks or exits. Whoever comes second has the same answer.
///
/// # Errors
/// Out of memory, in libc's words.
pub fn register() -> io::Result<()> {
    static ANSWER: OnceLock<Result<(), i32>> = OnceLock::new();
    ANSWER
        .get_or_init(|| register_once().map_err(|error| error.raw_os_error().unwrap_or_default()))
        .map_err(io::Error::from_raw_os_error)
}

fn register_once() -> io::Result<()> {
    OWNER.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: the handler is safe in a child of a process with threads: it only stores to atomics.
    let error = unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: the handler is part of this library, which is never unmapped.
    if unsafe { libc::atexit(at_exit) } != 0 {
        return Err(io::Error::from_raw_os_error(libc::ENOMEM));
    }
    Ok(())
}

/// A child has none of our threads and cannot use CUDA; what its parent counted is the parent's to
/// publish. Locks may be held by threads that are gone, so nothing may be asked but these two.
extern "C" fn in_forked_child() {
    LIFECYCLE.switch_off();
    scopes::switch_off();
}

extern "C" fn at_exit() {
    // A child made by a plain clone() did not pass through the fork handler.
    if OWNER.load(Ordering::Relaxed) == std::process::id() {
        guard(Entry::Exit, (), || signals::without(worker::finish));
    }
}
