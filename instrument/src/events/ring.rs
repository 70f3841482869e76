//! The ring between the program's threads and the writer: many push, one takes.
//!
//! ```text
//! slot    turn | word 0 .. word 6        one cache line
//! turn    2 * lap: free in this lap      2 * lap + 1: holds a record of this lap
//! ```
//!
//! Nobody waits: a record that finds no room is counted and gone. Zeroed memory is an empty ring, so
//! that pages which were never needed cost nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a record.
pub const WORDS: usize = 7;

/// A record, as words.
pub type Words = [u64; WORDS];

#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    turn: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// A number that threads write all the time, in a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Apart(AtomicU64);

/// A ring of `N` records; `N` is a power of two.
#[derive(Debug)]
pub struct Ring<const N: usize> {
    next: Apart,
    taken: Apart,
    dropped: Apart,
    slots: [Slot; N],
}

impl<const N: usize> Ring<N> {
    /// An empty ring.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N.is_power_of_two()) };
        Self {
            next: Apart(AtomicU64::new(0)),
            taken: Apart(AtomicU64::new(0)),
            dropped: Apart(AtomicU64::new(0)),
            slots: [const {
                Slot { turn: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; WORDS] }
            }; N],
        }
    }

    fn slot(&self, position: u64) -> Option<(&Slot, u64)> {
        let lap = position / N as u64;
        self.slots.get(position as usize % N).map(|slot| (slot, 2 * lap))
    }

    /// Adds a record; false where there is no room. Any thread, at any moment, also inside a signal
    /// handler that interrupts this very call.
    pub fn push(&self, words: &Words) -> bool {
        let mut position = self.next.0.load(Ordering::Relaxed);
        loop {
            let Some((slot, free)) = self.slot(position) else { return false };
            let turn = slot.turn.load(Ordering::Acquire);
            if turn < free {
                self.dropped.0.fetch_add(1, Ordering::Relaxed);
                return false;
            }
            if turn > free {
                position = self.next.0.load(Ordering::Relaxed);
                continue;
            }
            let claim = self.next.0.compare_exchange_weak(
                position,
                position + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match claim {
                Ok(_) => {
                    for (place, word) in slot.words.iter().zip(words) {
                        place.store(*word, Ordering::Relaxed);
                    }
                    slot.turn.store(free + 1, Ordering::Release);
                    return true;
                }
                Err(now) => position = now,
            }
        }
    }

    /// Takes the oldest record; for one thread at a time. `None` where there is none, or where the
    /// thread that adds the oldest one has not finished yet.
    pub fn pop(&self) -> Option<Words> {
        let position = self.taken.0.load(Ordering::Relaxed);
        let (slot, free) = self.slot(position)?;
        if slot.turn.load(Ordering::Acquire) != free + 1 {
            return None;
        }
        let mut words = [0; WORDS];
        for (word, place) in words.iter_mut().zip(&slot.words) {
            *word = place.load(Ordering::Relaxed);
        }
        slot.turn.store(free + 2, Ordering::Release);
        self.taken.0.store(position + 1, Ordering::Relaxed);
        Some(words)
    }

    /// Records that wait, those included that are being added.
    #[must_use]
    pub fn len(&self) -> u64 {
        let taken = self.taken.0.load(Ordering::Relaxed);
        self.next.0.load(Ordering::Relaxed).saturating_sub(taken)
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Records that found no room so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.0.load(Ordering::Relaxed)
    }
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::thread;

    use super::*;

    #[test]
    fn a_full_ring_counts_what_it_drops_and_goes_on_when_there_is_room() {
        let ring = Ring::<4>::new();
        for lap in 0..3 {
            for number in 0..6 {
                assert_eq!(ring.push(&[10 * lap + number; WORDS]), number < 4);
            }
            assert_eq!((ring.len(), ring.dropped()), (4, 2 * (lap + 1)));
            for number in 0..4 {
                assert_eq!(ring.pop(), Some([10 * lap + number; WORDS]));
            }
            assert_eq!(ring.pop(), None);
        }
    }

    #[test]
    fn every_record_of_every_thread_is_taken_whole_and_in_its_order_or_counted() {
        static RING: Ring<64> = Ring::new();
        const EACH: u64 = 20_000;
        const THREADS: u64 = 3;
        let pushing: Vec<_> = (0..THREADS)
            .map(|thread| {
                thread::spawn(move || {
                    for number in 0..EACH {
                        let mut words = [thread << 32 | number; WORDS];
                        words[6] = thread;
                        RING.push(&words);
                    }
                })
            })
            .collect();
        let mut last = BTreeMap::new();
        let mut taken = 0;
        while taken + RING.dropped() < EACH * THREADS {
            let Some(words) = RING.pop() else {
                thread::yield_now();
                continue;
            };
            let [first, .., thread] = words;
            assert!(words[..6].iter().all(|word| *word == first), "{words:?}");
            assert_eq!(first >> 32, thread);
            let before = last.insert(thread, first);
            assert!(before.is_none_or(|before| before < first));
            taken += 1;
        }
        pushing.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(RING.pop(), None);
    }
}
