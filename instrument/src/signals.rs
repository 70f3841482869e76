//! Signals that our own writing raises must not reach the program.
//!
//! A write over the limit for file sizes raises SIGXFSZ, one to a pipe without a reader SIGPIPE, one
//! to the terminal of another job SIGTTOU. Each would end or stop a program that never wrote. Our
//! own thread has every signal blocked; [`without`] is for the moments on a thread of the program's.
#![allow(unsafe_code, reason = "nix has no sigtimedwait")]

use std::mem::MaybeUninit;
use std::ptr;

use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};

const RAISED_BY_WRITING: [Signal; 3] = [Signal::SIGXFSZ, Signal::SIGPIPE, Signal::SIGTTOU];

/// Runs `body`, and takes back the signals that it raised by writing. One that was waiting for the
/// thread before still does.
pub fn without<T>(body: impl FnOnce() -> T) -> T {
    let waiting = waiting();
    let mut raised = SigSet::empty();
    for signal in RAISED_BY_WRITING {
        if !waiting.contains(signal) {
            raised.add(signal);
        }
    }
    let before = raised.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let answer = body();
    if let Ok(before) = before {
        while take(&raised) {}
        // The mask was valid a moment ago, so it can be set again.
        let _restored = before.thread_set_mask();
    }
    answer
}

/// The signals that wait until the thread does not block them any more.
fn waiting() -> SigSet {
    let mut waiting = MaybeUninit::uninit();
    // SAFETY: the set may be written.
    if unsafe { libc::sigpending(waiting.as_mut_ptr()) } != 0 {
        return SigSet::empty();
    }
    // SAFETY: the call has filled the set in.
    let waiting = unsafe { waiting.assume_init() };
    // SAFETY: the call has made it a set.
    unsafe { SigSet::from_sigset_t_unchecked(waiting) }
}

/// Takes one of the signals, all of which are blocked; false where none waits.
fn take(signals: &SigSet) -> bool {
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the set is valid; what is known of the signal is not asked for.
    unsafe { libc::sigtimedwait(signals.as_ref(), ptr::null_mut(), &raw const at_once) > 0 }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// The default action of SIGPIPE would end this test; the hook of the test program ignores it.
    #[test]
    fn a_signal_that_was_raised_inside_is_gone_and_the_mask_is_as_before() {
        let mask = SigSet::thread_get_mask().unwrap();
        let answer = without(|| {
            let (reader, mut writer) = std::io::pipe().unwrap();
            drop(reader);
            assert!(writer.write_all(b"x").is_err());
            nix::sys::signal::raise(Signal::SIGXFSZ).unwrap();
            7
        });
        assert_eq!(answer, 7);
        assert!(!waiting().contains(Signal::SIGXFSZ) && !waiting().contains(Signal::SIGPIPE));
        assert_eq!(SigSet::thread_get_mask().unwrap(), mask);
    }
}
