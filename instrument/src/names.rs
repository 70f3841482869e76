//! Names as small numbers: noted on the host's threads without a lock and without an allocation.
//!
//! ```text
//! slots   tag   | place            tag: the name's hash, 0 while the slot is free
//!         tag   | place ──┐        place: where the name lies and how long it is, 0 until it does
//! words   saxpy...gemm_nt...       every name behind the other, each beginning with a whole word
//! ```
//!
//! A name gets the number of its slot, and keeps it. Two threads that note a name at the same moment
//! may give it two numbers, which costs a slot and harms nobody. The table is bounded; a name that
//! finds no room is [`NameId::NONE`].

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How many names a table holds at most.
pub const SLOTS: usize = 1 << 14;

/// Words for all names together: 2 MiB.
const WORDS: usize = 1 << 18;

/// Bytes of a name that are kept.
pub const MAX_NAME_BYTES: usize = 4096;

/// How many slots are looked at for one name.
const PROBES: usize = 64;

/// Names a text of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NameId(u32);

impl NameId {
    /// No name: there was none, or the table is full.
    pub const NONE: Self = Self(0);

    /// The number; 0 for none.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The id of a number that came from [`NameId::number`].
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }
}

#[derive(Debug)]
struct Slot {
    tag: AtomicU64,
    place: AtomicU64,
}

/// A table of names.
#[derive(Debug)]
pub struct NameTable {
    slots: [Slot; SLOTS],
    words: [AtomicU64; WORDS],
    used: AtomicU32,
    refused: AtomicU64,
}

/// The names of this process: of kernels, scopes and domains.
pub static NAMES: NameTable = NameTable::new();

impl NameTable {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: [const { Slot { tag: AtomicU64::new(0), place: AtomicU64::new(0) } }; SLOTS],
            words: [const { AtomicU64::new(0) }; WORDS],
            used: AtomicU32::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// The number of a name, of which the first [`MAX_NAME_BYTES`] count. An empty name is none.
    pub fn intern(&self, name: &[u8]) -> NameId {
        let name = name.get(..MAX_NAME_BYTES).unwrap_or(name);
        if name.is_empty() {
            return NameId::NONE;
        }
        let tag = hash(name) | 1;
        for probe in 0..PROBES {
            let index = (tag as usize >> 1).wrapping_add(probe) % SLOTS;
            let Some(slot) = self.slots.get(index) else { break };
            let id = NameId(index as u32 + 1);
            // Looking first keeps the line shared between the threads that know the name.
            if slot.tag.load(Ordering::Acquire) == tag && self.is(slot, name) {
                return id;
            }
            match slot.tag.compare_exchange(0, tag, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    let Some(place) = self.store(name) else { break };
                    slot.place.store(place, Ordering::Release);
                    return id;
                }
                // One that another thread is writing right now is passed over.
                Err(taken) if taken == tag && self.is(slot, name) => return id,
                Err(_) => {}
            }
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        NameId::NONE
    }

    /// Copies a name to the end of `text`; false where there is none of that number.
    pub fn copy(&self, id: NameId, text: &mut Vec<u8>) -> bool {
        let slot = (id.0 as usize).checked_sub(1).and_then(|index| self.slots.get(index));
        let Some((start, bytes)) = slot.and_then(place_of) else { return false };
        let words = self.words.get(start..start + bytes.div_ceil(8)).unwrap_or_default();
        let before = text.len();
        for word in words {
            text.extend_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        text.truncate(before + bytes);
        true
    }

    /// Whether a name has this number; none has.
    #[must_use]
    pub fn knows(&self, id: NameId) -> bool {
        let slot = (id.0 as usize).checked_sub(1).and_then(|index| self.slots.get(index));
        id == NameId::NONE || slot.is_some_and(|slot| place_of(slot).is_some())
    }

    /// How many names found no room, each time that one was noted.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn is(&self, slot: &Slot, name: &[u8]) -> bool {
        let Some((start, bytes)) = place_of(slot) else { return false };
        let Some(words) = self.words.get(start..start + bytes.div_ceil(8)) else { return false };
        bytes == name.len()
            && words_of(name).zip(words).all(|(mine, its)| mine == its.load(Ordering::Relaxed))
    }

    /// Where the name now lies; `None` where there is no room.
    fn store(&self, name: &[u8]) -> Option<u64> {
        let words = u32::try_from(name.len().div_ceil(8)).ok()?;
        let fits = |used: u32| used.checked_add(words).filter(|end| *end as usize <= WORDS);
        let start = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        let places = self.words.get(start as usize..)?;
        for (word, place) in words_of(name).zip(places) {
            place.store(word, Ordering::Relaxed);
        }
        Some(u64::from(start) << 32 | name.len() as u64)
    }
}

impl Default for NameTable {
    fn default() -> Self {
        Self::new()
    }
}

/// First word and bytes of a slot's name, once it is written.
fn place_of(slot: &Slot) -> Option<(usize, usize)> {
    let place = slot.place.load(Ordering::Acquire);
    (place != 0).then_some(((place >> 32) as usize, (place & 0xffff_ffff) as usize))
}

/// A name as words, the last one filled up with zeros.
fn words_of(name: &[u8]) -> impl Iterator<Item = u64> + '_ {
    name.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(chunk) {
            *to = *from;
        }
        u64::from_ne_bytes(word)
    })
}

/// Mixes words with the multiplier of SplitMix64 (Steele, Lea and Flood, 2014).
fn hash(name: &[u8]) -> u64 {
    let mixed = words_of(name).fold(name.len() as u64, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    });
    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn text(table: &NameTable, id: NameId) -> String {
        let mut text = vec![];
        assert!(table.copy(id, &mut text));
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_name_keeps_its_number() {
        static TABLE: NameTable = NameTable::new();
        let table = &TABLE;
        for name in ["saxpy", "s", "12345678", "123456789", "saxpy "] {
            let id = table.intern(name.as_bytes());
            assert_ne!(id, NameId::NONE);
            assert_eq!(table.intern(name.as_bytes()), id);
            assert_eq!(text(table, id), name);
        }
        assert_eq!(table.intern(b""), NameId::NONE);
        assert!(!table.copy(NameId::NONE, &mut vec![]));
    }

    #[test]
    fn a_full_table_refuses_new_names_and_keeps_the_old() {
        static TABLE: NameTable = NameTable::new();
        let table = &TABLE;
        let long = vec![b'x'; 2 * MAX_NAME_BYTES];
        assert_eq!(text(table, table.intern(&long)).len(), MAX_NAME_BYTES);
        let first = table.intern(b"first");
        for number in 0..2 * SLOTS {
            table.intern(format!("name {number}").as_bytes());
        }
        assert!(table.refused() >= SLOTS as u64, "{}", table.refused());
        assert_eq!(table.intern(b"first"), first);
        assert_eq!(text(table, first), "first");
    }

    #[test]
    fn threads_that_note_the_same_names_at_once_read_them_back_whole() {
        static TABLE: NameTable = NameTable::new();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                thread::spawn(|| {
                    for number in 0..2000 {
                        let name = format!("a name with the number {number}");
                        let id = TABLE.intern(name.as_bytes());
                        assert_eq!(text(&TABLE, id), name);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
