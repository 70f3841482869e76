//! How a wish for a window goes from the worker to whoever launches, and the window back.
//!
//! ```text
//!            arm (worker)       open (host, at a launch's entry)       done (host, at its exit)
//!   idle ──────────────> armed ────────────────────────────────> busy ─────────────────────> done
//!    ^                     │ disarm (worker)                                                   │
//!    └─────────────────────┴─────────────────────────────────────────────── take (worker) ─────┘
//! ```
//!
//! Words alone, so that every order of these steps can be tried: `tests/interleavings.rs` does.
//!
//! A launch keeps a mark from its entry to its exit: the window that it opened (`OPENED`), or the
//! one that was last when it entered. If another one has been opened meanwhile, it disturbed that.
//! One hole is known: a launch that entered before a window and whose exit is so late that the
//! worker has taken the window by then disturbs it unseen. Its kernel must have run inside, and the
//! way back from the driver taken longer than the worker's next survey.

use super::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

const IDLE: u8 = 0;
const ARMED: u8 = 1;
const BUSY: u8 = 2;
const DONE: u8 = 3;

const OPENED: u64 = 1;

/// A wish for up to `WANTED` shapes, and the window that comes of it.
#[derive(Debug)]
pub(super) struct Handover<const WANTED: usize> {
    pub(super) state: AtomicU8,
    /// Hashes of the shapes that are wanted, each at its own place; 0 for none. One place to look
    /// at: of two that fall together the first has it, and the other one's turn comes after.
    pub(super) wanted: [AtomicU64; WANTED],
    pub(super) functions: AtomicU8,
    pub(super) lazily: AtomicBool,
    /// Number of windows opened so far.
    pub(super) opened: AtomicU64,
    /// The context of the last one.
    pub(super) context: AtomicU64,
    /// The last window that another launch met.
    pub(super) disturbed: AtomicU64,
}

/// What a window is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    /// The window's number.
    pub(super) number: u64,
    /// The functions to count for, as bits.
    pub(super) functions: u8,
    /// Whether to patch kernels as they are launched.
    pub(super) lazily: bool,
}

impl Order {
    /// The mark of the launch that opened the window.
    pub(super) fn mark(self) -> u64 {
        self.number << 1 | OPENED
    }

    /// The mark of a launch that wanted to and could not.
    pub(super) fn mark_of_refused(self) -> u64 {
        self.number << 1
    }
}

impl<const WANTED: usize> Handover<WANTED> {
    fn place(&self, hash: u64) -> Option<&AtomicU64> {
        // The lowest bit is always set.
        self.wanted.get(usize::try_from((hash >> 1) % WANTED as u64).ok()?)
    }

    /// Asks for a window around the next launch of one of these shapes, none of which is 0. False
    /// unless it is idle. For the worker.
    pub(super) fn arm(
        &self,
        shapes: impl Iterator<Item = u64>,
        functions: u8,
        lazily: bool,
    ) -> bool {
        if self.state.load(Ordering::Acquire) != IDLE {
            return false;
        }
        for place in &self.wanted {
            place.store(0, Ordering::Relaxed);
        }
        for hash in shapes {
            if let Some(place) = self.place(hash).filter(|p| p.load(Ordering::Relaxed) == 0) {
                place.store(hash, Ordering::Relaxed);
            }
        }
        self.functions.store(functions, Ordering::Relaxed);
        self.lazily.store(lazily, Ordering::Relaxed);
        self.state.store(ARMED, Ordering::Release);
        true
    }

    /// Takes the wish back. False while a window is open: it has to end first. For the worker.
    pub(super) fn disarm(&self) -> bool {
        let disarmed =
            self.state.compare_exchange(ARMED, IDLE, Ordering::AcqRel, Ordering::Acquire);
        disarmed != Err(BUSY)
    }

    /// Whether a window is open now.
    pub(super) fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) == BUSY
    }

    /// Whether a shape is wanted, by its hash.
    pub(super) fn is_wanted(&self, hash: u64) -> bool {
        self.place(hash).is_some_and(|place| place.load(Ordering::Relaxed) == hash)
    }

    /// A launch enters: its mark, and whether it may open a window.
    pub(super) fn entering(&self, context: u64) -> (u64, bool) {
        let number = self.opened.load(Ordering::Acquire);
        let state = self.state.load(Ordering::Acquire);
        if state == BUSY {
            self.disturb(context, number);
        }
        (number << 1, state == ARMED)
    }

    /// Opens a window. From then on until [`Self::done`] it is the caller's alone.
    pub(super) fn open(&self, context: u64) -> Option<Order> {
        self.state.compare_exchange(ARMED, BUSY, Ordering::AcqRel, Ordering::Acquire).ok()?;
        let number = self.opened.load(Ordering::Relaxed) + 1;
        self.context.store(context, Ordering::Release);
        self.opened.store(number, Ordering::Release);
        let functions = self.functions.load(Ordering::Relaxed);
        Some(Order { number, functions, lazily: self.lazily.load(Ordering::Relaxed) })
    }

    /// The window is over, and the worker's to take.
    pub(super) fn done(&self) {
        self.state.store(DONE, Ordering::Release);
    }

    /// A launch leaves with the mark of its entry. Whether it opened the window that is open.
    pub(super) fn leaving(&self, mark: u64, context: u64) -> bool {
        let number = self.opened.load(Ordering::Acquire);
        let busy = self.is_open();
        if mark == (number << 1 | OPENED) && busy {
            return true;
        }
        if busy || mark >> 1 != number {
            // A window opened while this launch was on its way.
            self.disturb(context, number);
        }
        false
    }

    /// Gives up the window that is open, if one is: the exit of its launch will not come.
    pub(super) fn abandon(&self) {
        let _was_not_open =
            self.state.compare_exchange(BUSY, IDLE, Ordering::AcqRel, Ordering::Acquire);
    }

    fn disturb(&self, context: u64, number: u64) {
        if self.context.load(Ordering::Acquire) == context {
            self.disturbed.store(number, Ordering::Release);
        }
    }

    /// Gives what `read` finds in a window that is over, with whether it was disturbed. For the
    /// worker.
    pub(super) fn take<T>(
        &self,
        read: impl FnOnce(&dyn Fn(u64) -> bool) -> Option<T>,
    ) -> Option<T> {
        if self.state.load(Ordering::Acquire) != DONE {
            return None;
        }
        let was_disturbed = |number| self.disturbed.load(Ordering::Acquire) == number;
        let taken = read(&was_disturbed);
        self.state.store(IDLE, Ordering::Release);
        taken
    }
}
