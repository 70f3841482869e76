//! The one boundary between the host program and this library.
//!
//! Every entry from outside passes through [`guard`]: a panic ends there, the host gets the answer
//! that lets it go on, and from then on every entry returns at once. The worker finds the fault,
//! says so in the log and gives CUPTI's slot back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};

/// The ways into this library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Entry {
    /// The driver injects us.
    Injection = 1,
    /// CUPTI calls back.
    Callback = 2,
    /// Our own thread.
    Worker = 3,
    /// The process exits.
    Exit = 4,
    /// NVTX injects us.
    Nvtx = 5,
    /// The program says what it does.
    Scope = 6,
}

impl Entry {
    const ALL: [Self; 6] =
        [Self::Injection, Self::Callback, Self::Worker, Self::Exit, Self::Nvtx, Self::Scope];
}

/// The entry that panicked; 0 while none has.
static FAULT: AtomicU8 = AtomicU8::new(0);

/// Where a panic happened, if one has.
#[must_use]
pub fn fault() -> Option<Entry> {
    let number = FAULT.load(Ordering::Acquire);
    Entry::ALL.into_iter().find(|entry| *entry as u8 == number)
}

/// Runs the body of an entry; `otherwise` is the answer when it panics, or when one has before.
pub fn guard<T>(entry: Entry, otherwise: T, body: impl FnOnce() -> T) -> T {
    if FAULT.load(Ordering::Relaxed) != 0 {
        return otherwise;
    }
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(answer) => answer,
        Err(payload) => {
            FAULT.store(entry as u8, Ordering::Release);
            // Dropping a payload runs code that may panic again, this time for the host to see.
            std::mem::forget(payload);
            otherwise
        }
    }
}

/// Keeps panics of this library off the host's standard error. The library carries its own copy of
/// the standard library, so the hook of a host written in Rust is another one.
pub fn silence_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because the fault is the process's.
    #[test]
    fn after_a_panic_every_entry_answers_in_the_hosts_favour() {
        assert_eq!(guard(Entry::Callback, 0, || 7), 7);
        assert_eq!(fault(), None);
        assert_eq!(guard(Entry::Callback, 0, || panic!("a fault of ours")), 0);
        assert_eq!(fault(), Some(Entry::Callback));
        assert_eq!(guard(Entry::Exit, 0, || 7), 0);
        FAULT.store(0, Ordering::Release);
    }
}
