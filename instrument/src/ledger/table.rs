//! A hash table of fixed size that any thread may count in without waiting for another.
//!
//! ```text
//! slot     meta   generation (16 bits) | use (2 bits): 0 empty, 1 being written, 2 in use
//!          value  what belongs to the key
//!          key    WORDS words
//! counter  generation (16 bits) | count (48 bits), one of each slot in each of SHARDS shards
//! ```
//!
//! A key lives in one of the [`WINDOW`] slots that its hash names. Threads count it in different
//! shards, so they write to different cache lines. A slot's generation moves on when it is emptied,
//! in each of its counters first; counting replaces generation and count together: whoever counts in
//! the generation in which he read the key knows that it was still that key. Two threads that bring
//! the same new key at the same time may get a slot each; whoever drains the table adds them up.
//!
//! Counting and inserting happen on the host's threads: no allocation, no lock, no loop that waits
//! for another thread. Draining is for one thread at a time. `tests/interleavings.rs` tries every
//! order of these steps.

use super::atomic::{AtomicU64, Ordering};

/// In how many slots a key may live.
const WINDOW: usize = 16;

const COUNT_BITS: u32 = 48;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

const EMPTY: u64 = 0;
const WRITTEN: u64 = 1;
const IN_USE: u64 = 2;
const USE_BITS: u32 = 2;

fn usage(meta: u64) -> u64 {
    meta & ((1 << USE_BITS) - 1)
}

/// The meta word of the same generation with another use.
fn used_as(meta: u64, usage: u64) -> u64 {
    meta >> USE_BITS << USE_BITS | usage
}

/// The generation of a slot, as it stands in its counters.
fn generation(meta: u64) -> u64 {
    meta >> USE_BITS << COUNT_BITS
}

/// The next generation, of 2^16: whoever sleeps that long between two instructions counts wrongly.
fn next_generation(meta: u64) -> u64 {
    ((meta >> USE_BITS).wrapping_add(1) % (1 << (u64::BITS - COUNT_BITS))) << USE_BITS
}

#[repr(align(64))]
pub(super) struct Slot<const WORDS: usize> {
    pub(super) meta: AtomicU64,
    pub(super) value: AtomicU64,
    pub(super) key: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Slot<WORDS> {
    fn key(&self) -> [u64; WORDS] {
        std::array::from_fn(|word| {
            self.key.get(word).map_or(0, |word| word.load(Ordering::Relaxed))
        })
    }
}

/// A table of `SLOTS` slots, a power of two, for keys of `WORDS` words, with `SHARDS` counters for
/// each key. What nobody has touched takes no memory: everything begins as zero.
pub struct Table<const WORDS: usize, const SLOTS: usize, const SHARDS: usize> {
    pub(super) slots: [Slot<WORDS>; SLOTS],
    pub(super) shards: [[AtomicU64; SLOTS]; SHARDS],
}

impl<const WORDS: usize, const SLOTS: usize, const SHARDS: usize> Table<WORDS, SLOTS, SHARDS> {
    /// The slots in which a key may live, by number. The step is odd, so no slot comes twice; it
    /// depends on the key, so keys that meet once part ways.
    fn window(&self, key: &[u64; WORDS]) -> impl Iterator<Item = (usize, &Slot<WORDS>)> {
        let hash = hash(key);
        let (start, step) = (hash, (hash >> 32) | 1);
        (0..WINDOW.min(SLOTS) as u64).filter_map(move |turn| {
            let place = start.wrapping_add(step.wrapping_mul(turn)) % SLOTS as u64;
            let place = usize::try_from(place).ok()?;
            Some((place, self.slots.get(place)?))
        })
    }

    fn counter(&self, shard: usize, place: usize) -> Option<&AtomicU64> {
        self.shards.get(shard % SHARDS)?.get(place)
    }

    /// Counts a key that is in the table so many times more, in a shard, and gives its value.
    pub fn count(&self, shard: usize, key: &[u64; WORDS], times: u64) -> Option<u64> {
        for (place, slot) in self.window(key) {
            let meta = slot.meta.load(Ordering::Acquire);
            if usage(meta) != IN_USE || slot.key() != *key {
                continue;
            }
            let value = slot.value.load(Ordering::Relaxed);
            let counter = self.counter(shard, place)?;
            let mut count = counter.load(Ordering::Relaxed);
            // Where the generation is another one, the slot was emptied a moment ago.
            while count & !COUNT == generation(meta) {
                // Release keeps the reads above before the exchange: whoever empties the slot
                // changes the counter first, so if it succeeds they belong together.
                match counter.compare_exchange_weak(
                    count,
                    count + times,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => return Some(value),
                    Err(now) => count = now,
                }
            }
        }
        None
    }

    /// Puts a key in, counted so many times in a shard. False where its window is full.
    pub fn insert(&self, shard: usize, key: &[u64; WORDS], value: u64, times: u64) -> bool {
        for (place, slot) in self.window(key) {
            let meta = slot.meta.load(Ordering::Relaxed);
            if usage(meta) != EMPTY {
                continue;
            }
            let claimed = slot.meta.compare_exchange(
                meta,
                used_as(meta, WRITTEN),
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            if claimed.is_err() {
                continue;
            }
            slot.value.store(value, Ordering::Relaxed);
            for (place, word) in slot.key.iter().zip(key) {
                place.store(*word, Ordering::Relaxed);
            }
            // Counted before anybody can see it, so that it is not found idle.
            if let Some(counter) = self.counter(shard, place) {
                counter.fetch_add(times & COUNT, Ordering::Relaxed);
            }
            slot.meta.store(used_as(meta, IN_USE), Ordering::Release);
            return true;
        }
        false
    }

    /// Takes all counts out, giving each key that was counted with its value. Keys that were not
    /// counted since the last time are thrown out if `forget_idle`. Returns how many slots are in
    /// use. For one thread at a time.
    pub fn drain(&self, forget_idle: bool, mut each: impl FnMut(&[u64; WORDS], u64, u64)) -> usize {
        let mut in_use = 0;
        for (place, slot) in self.slots.iter().enumerate() {
            let meta = slot.meta.load(Ordering::Acquire);
            if usage(meta) != IN_USE {
                continue;
            }
            let mut count = self.take_counts(place);
            let is_idle = count == 0 && forget_idle;
            let next = next_generation(meta);
            if is_idle {
                // What was counted since the look above; from here on nobody counts in this slot.
                count = self.change_generation(place, next);
            } else {
                in_use += 1;
            }
            if count > 0 {
                // Only this thread empties slots, so the key stands still.
                each(&slot.key(), slot.value.load(Ordering::Relaxed), count);
            }
            if is_idle {
                slot.meta.store(used_as(next, EMPTY), Ordering::Release);
            }
        }
        in_use
    }

    fn take_counts(&self, place: usize) -> u64 {
        let counters = self.shards.iter().filter_map(|shard| shard.get(place));
        counters.fold(0, |total, counter| {
            let count = counter.load(Ordering::Relaxed) & COUNT;
            if count > 0 {
                counter.fetch_sub(count, Ordering::AcqRel);
            }
            total + count
        })
    }

    /// Ends a generation in all counters of a slot, and takes out what they held.
    fn change_generation(&self, place: usize, next: u64) -> u64 {
        let counters = self.shards.iter().filter_map(|shard| shard.get(place));
        counters.map(|counter| counter.swap(generation(next), Ordering::AcqRel) & COUNT).sum()
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_key_is_counted_after_it_was_put_in() {
        let table: Table<2, 16, 4> = Table::new();
        assert_eq!(table.count(0, &[1, 2], 1), None);
        assert!(table.insert(1, &[1, 2], 50, 1));
        assert_eq!(table.count(0, &[1, 2], 1), Some(50));
        let mut drained = Vec::new();
        assert_eq!(table.drain(false, |key, value, count| drained.push((*key, value, count))), 1);
        assert_eq!(drained, [([1, 2], 50, 2)]);
    }

    #[test]
    fn what_is_idle_makes_room_and_what_is_counted_stays() {
        let table: Table<1, 16, 4> = Table::new();
        for key in 0..16 {
            assert!(table.insert(1, &[key], key, 1));
        }
        assert!(!table.insert(1, &[99], 0, 1), "a full window takes no more");
        table.drain(true, |_, _, _| {});
        table.count(0, &[3], 1);
        assert_eq!(table.drain(true, |_, _, _| {}), 1);
        assert!(table.insert(1, &[99], 0, 1));
        assert_eq!((table.count(0, &[3], 1), table.count(0, &[4], 1)), (Some(3), None));
    }

    #[test]
    fn aligned_handles_spread_over_the_table() {
        let table: Table<6, 4096, 4> = Table::new();
        let fitted = (0..2048_u64)
            .filter(|n| {
                table.insert(1, &[0x5555_0000, 0x7f00_0000_0000 + n * 64, 1, 1, 256, 0], 0, 1)
            })
            .count();
        assert_eq!(fitted, 2048, "half full, every key finds a place");
    }

    /// Threads count while another drains and throws out; every count is given exactly once, with
    /// the value of its own key.
    #[test]
    fn no_count_is_lost_or_given_to_another_key() {
        const THREADS: u64 = 4;
        const ROUNDS: u64 = 20_000;
        static TABLE: Table<2, 32, 3> = Table::new();
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
                        // Of four threads two share a shard.
                        let shard = usize::try_from(thread).unwrap();
                        for round in 0..ROUNDS {
                            let name = (round / 7 + thread) % 40;
                            let key = [name, !name];
                            match TABLE.count(shard, &key, 1) {
                                Some(value) => assert_eq!(value, name * 10 + 1),
                                None => {
                                    unfitted +=
                                        u64::from(!TABLE.insert(shard, &key, name * 10 + 1, 1))
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
