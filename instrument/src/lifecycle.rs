//! What the library is doing, and which changes are allowed.
//!
//! ```text
//!          arm             listed
//!   off ────────> armed <─────────> measuring
//!    ^              │    unlisted       │
//!    │              └───────┬───────────┘
//!    └── child, exit ───────┼──> disabled      (a fault of CUPTI's, the driver's or ours)
//! ```
//!
//! One byte, so that a fork handler may change it and a callback may ask it.

use std::sync::atomic::{AtomicU8, Ordering};

/// What the library is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Before the injection, in a forked child, and once the process exits.
    Off = 0,
    /// Polling; not listed.
    Armed = 1,
    /// Listed: launches are counted.
    Measuring = 2,
    /// For the life of the process, after a fault.
    Disabled = 3,
}

/// The state of a process. There is one in use ([`LIFECYCLE`]); tests make their own.
#[derive(Debug)]
pub struct Lifecycle(AtomicU8);

/// The state of this process.
pub static LIFECYCLE: Lifecycle = Lifecycle::new();

impl Lifecycle {
    /// Off.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU8::new(State::Off as u8))
    }

    /// The state now.
    #[must_use]
    pub fn state(&self) -> State {
        match self.0.load(Ordering::Acquire) {
            1 => State::Armed,
            2 => State::Measuring,
            3 => State::Disabled,
            _ => State::Off,
        }
    }

    /// Whether launches are to be counted.
    #[must_use]
    pub fn is_measuring(&self) -> bool {
        self.0.load(Ordering::Relaxed) == State::Measuring as u8
    }

    /// Makes one change; false where the state was another one, because the process forked, exits
    /// or hit a fault meanwhile.
    pub fn change(&self, from: State, to: State) -> bool {
        self.0.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Falls silent for the life of the process. What is off stays off.
    pub fn disable(&self) {
        for from in [State::Armed, State::Measuring] {
            if self.change(from, State::Disabled) {
                return;
            }
        }
    }

    /// Switches everything off: a forked child, or an exit. Safe in a fork handler.
    pub fn switch_off(&self) {
        self.0.store(State::Off as u8, Ordering::Release);
    }
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_off_cannot_be_listed_any_more() {
        let lifecycle = Lifecycle::new();
        assert!(lifecycle.change(State::Off, State::Armed));
        assert!(lifecycle.change(State::Armed, State::Measuring));
        assert!(lifecycle.is_measuring());
        lifecycle.switch_off();
        assert!(!lifecycle.change(State::Armed, State::Measuring));
        lifecycle.disable();
        assert_eq!(lifecycle.state(), State::Off);
    }

    #[test]
    fn a_fault_is_for_life() {
        let lifecycle = Lifecycle::new();
        lifecycle.change(State::Off, State::Armed);
        lifecycle.disable();
        assert_eq!(lifecycle.state(), State::Disabled);
        assert!(!lifecycle.change(State::Armed, State::Measuring));
    }
}
