//! A hash table of fixed size that any thread may count in without waiting for another.
//!
//! ```text
//! slot   meta   tag (16 bits) | count (48 bits)     tag % 4: 0 empty, 1 being written, 2 in use
//!        value  what belongs to the key
//!        key    WORDS words
//! ```
//!
//! A key lives in one of the [`WINDOW`] slots that its hash names. A slot's tag moves on whenever
//! the slot changes hands, and counting replaces tag and count together: whoever counts with the
//! tag under which he read the key knows that it was still that key. Two threads that bring the
//! same new key at the same time may get a slot each; whoever drains the table adds them up.
//!
//! Counting and inserting happen on the host's threads: no allocation, no lock, no loop that waits
//! for another thread. Draining is for one thread at a time.

use std::sync::atomic::{AtomicU64, Ordering};

/// In how many slots a key may live.
const WINDOW: usize = 16;

const COUNT_BITS: u32 = 48;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const TAG: u64 = 1 << COUNT_BITS;

/// What a slot is used for, by the two lowest bits of its tag.
#[derive(PartialEq)]
enum Use {
    Empty,
    BeingWritten,
    Taken,
}

fn usage(meta: u64) -> Use {
    match (meta >> COUNT_BITS) & 3 {
        0 => Use::Empty,
        2 => Use::Taken,
        _ => Use::BeingWritten,
    }
}

/// The same slot two steps further: from being written to... and from in use to empty.
fn tag_after(meta: u64, steps: u64) -> u64 {
    (meta & !COUNT).wrapping_add(TAG.wrapping_mul(steps))
}

#[repr(align(64))]
struct Slot<const WORDS: usize> {
    meta: AtomicU64,
    value: AtomicU64,
    key: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Slot<WORDS> {
    const fn new() -> Self {
        Self {
            meta: AtomicU64::new(0),
            value: AtomicU64::new(0),
            key: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    fn key(&self) -> [u64; WORDS] {
        std::array::from_fn(|word| {
            self.key.get(word).map_or(0, |word| word.load(Ordering::Relaxed))
        })
    }
}

/// A table of `SLOTS` slots, a power of two, for keys of `WORDS` words.
pub struct Table<const WORDS: usize, const SLOTS: usize> {
    slots: [Slot<WORDS>; SLOTS],
}

impl<const WORDS: usize, const SLOTS: usize> Table<WORDS, SLOTS> {
    /// An empty table; all zero bytes, so that an untouched one takes no memory.
    #[must_use]
    pub const fn new() -> Self {
        assert!(SLOTS.is_power_of_two() && SLOTS >= WINDOW);
        Self { slots: [const { Slot::new() }; SLOTS] }
    }

    /// The slots in which a key may live. The step is odd, so no slot comes twice; it depends on
    /// the key, so keys that meet once part ways.
    fn window(&self, key: &[u64; WORDS]) -> impl Iterator<Item = &Slot<WORDS>> {
        let hash = hash(key);
        let (start, step) = (hash, (hash >> 32) | 1);
        (0..WINDOW as u64).filter_map(move |turn| {
            let slot = start.wrapping_add(step.wrapping_mul(turn)) % SLOTS as u64;
            self.slots.get(usize::try_from(slot).ok()?)
        })
    }

    /// Counts a key that is in the table so many times more, and gives its value.
    pub fn count(&self, key: &[u64; WORDS], times: u64) -> Option<u64> {
        for slot in self.window(key) {
            let mut meta = slot.meta.load(Ordering::Acquire);
            while usage(meta) == Use::Taken && slot.key() == *key {
                let value = slot.value.load(Ordering::Relaxed);
                // Release keeps the reads above before the exchange: if it succeeds, the slot had
                // the same tag all the while, and what was read belongs together.
                let counted = slot.meta.compare_exchange_weak(
                    meta,
                    meta + times,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                );
                match counted {
                    Ok(_) => return Some(value),
                    Err(now) => meta = now,
                }
            }
        }
        None
    }

    /// Puts a key in, counted so many times. False where its window is full.
    pub fn insert(&self, key: &[u64; WORDS], value: u64, times: u64) -> bool {
        for slot in self.window(key) {
            let meta = slot.meta.load(Ordering::Relaxed);
            if usage(meta) != Use::Empty {
                continue;
            }
            let writing = tag_after(meta, 1);
            let claimed =
                slot.meta.compare_exchange(meta, writing, Ordering::Acquire, Ordering::Relaxed);
            if claimed.is_err() {
                continue;
            }
            slot.value.store(value, Ordering::Relaxed);
            for (place, word) in slot.key.iter().zip(key) {
                place.store(*word, Ordering::Relaxed);
            }
            slot.meta.store(tag_after(writing, 1) | times & COUNT, Ordering::Release);
            return true;
        }
        false
    }

    /// Takes all counts out, giving each key that was counted with its value. Keys that were not
    /// counted since the last time are thrown out if `forget_idle`. Returns how many slots are in
    /// use. For one thread at a time.
    pub fn drain(&self, forget_idle: bool, mut each: impl FnMut(&[u64; WORDS], u64, u64)) -> usize {
        let mut in_use = 0;
        for slot in &self.slots {
            let meta = slot.meta.load(Ordering::Acquire);
            if usage(meta) != Use::Taken {
                continue;
            }
            let count = meta & COUNT;
            if count == 0 && forget_idle {
                // A thread that counts at this moment keeps the slot in use.
                let emptied = slot.meta.compare_exchange(
                    meta,
                    tag_after(meta, 2),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                in_use += usize::from(emptied.is_err());
                continue;
            }
            in_use += 1;
            if count > 0 {
                // Only this thread lowers counts and empties slots, so the key stands still.
                slot.meta.fetch_sub(count, Ordering::AcqRel);
                each(&slot.key(), slot.value.load(Ordering::Relaxed), count);
            }
        }
        in_use
    }
}

impl<const WORDS: usize, const SLOTS: usize> Default for Table<WORDS, SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

/// Multiplies and folds each word in; handles are aligned addresses, so their low bits say little
/// and the high half of the product has to reach the result.
pub fn hash<const WORDS: usize>(key: &[u64; WORDS]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    key.iter().fold(0, |hash: u64, word| {
        let product = u128::from(hash ^ word) * u128::from(ODD);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
        let folded = (product >> 64) as u64 ^ product as u64;
        folded.rotate_left(23).wrapping_add(ODD)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_key_is_counted_after_it_was_put_in() {
        let table: Table<2, 16> = Table::new();
        assert_eq!(table.count(&[1, 2], 1), None);
        assert!(table.insert(&[1, 2], 50, 1));
        assert_eq!(table.count(&[1, 2], 1), Some(50));
        let mut drained = Vec::new();
        assert_eq!(table.drain(false, |key, value, count| drained.push((*key, value, count))), 1);
        assert_eq!(drained, [([1, 2], 50, 2)]);
    }

    #[test]
    fn what_is_idle_makes_room_and_what_is_counted_stays() {
        let table: Table<1, 16> = Table::new();
        for key in 0..16 {
            assert!(table.insert(&[key], key, 1));
        }
        assert!(!table.insert(&[99], 0, 1), "a full window takes no more");
        table.drain(true, |_, _, _| {});
        table.count(&[3], 1);
        assert_eq!(table.drain(true, |_, _, _| {}), 1);
        assert!(table.insert(&[99], 0, 1));
        assert_eq!((table.count(&[3], 1), table.count(&[4], 1)), (Some(3), None));
    }

    #[test]
    fn aligned_handles_spread_over_the_table() {
        let table: Table<6, 4096> = Table::new();
        let fitted = (0..2048_u64)
            .filter(|n| table.insert(&[0x5555_0000, 0x7f00_0000_0000 + n * 64, 1, 1, 256, 0], 0, 1))
            .count();
        assert_eq!(fitted, 2048, "half full, every key finds a place");
    }

    /// Threads count while another drains and throws out; every count is given exactly once, with
    /// the value of its own key.
    #[test]
    fn no_count_is_lost_or_given_to_another_key() {
        const THREADS: u64 = 4;
        const ROUNDS: u64 = 20_000;
        static TABLE: Table<2, 32> = Table::new();
        let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
        let mut add = |key: &[u64; 2], value: u64, count: u64| {
            assert_eq!(value, key[0] * 10 + 1, "a value belongs to its key");
            *sums.entry(key[0]).or_default() += count;
        };
        let unfitted: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut unfitted = 0;
                        for round in 0..ROUNDS {
                            let name = (round / 7 + thread) % 40;
                            let key = [name, !name];
                            match TABLE.count(&key, 1) {
                                Some(value) => assert_eq!(value, name * 10 + 1),
                                None => {
                                    unfitted += u64::from(!TABLE.insert(&key, name * 10 + 1, 1))
                                }
                            }
                        }
                        unfitted
                    })
                })
                .collect();
            while !threads.iter().all(|thread| thread.is_finished()) {
                TABLE.drain(true, &mut add);
            }
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        TABLE.drain(true, &mut add);
        assert_eq!(sums.values().sum::<u64>() + unfitted, THREADS * ROUNDS);
    }
}
