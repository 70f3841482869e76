//! Texts stored once and named by small typed handles.
//!
//! ```text
//! bytes   k1k2_longer...         every text behind the other
//! ends    2  11  ...             where each ends: handle 0 is bytes[0..2], handle 1 is [2..11]
//! table   . . (hash, 1) . (hash, 0) . .   open addressing, to find a text that is there already
//! ```
//!
//! A handle carries in its type what kind of text it names, so that a kernel's name cannot be
//! looked up among the scopes.

use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::Range;

use foldhash::fast::RandomState;

/// Names one text of an [`Interner`] of the same kind.
pub struct Handle<K> {
    index: u32,
    kind: PhantomData<fn() -> K>,
}

impl<K> Handle<K> {
    /// The handle's place in the order of first sight, from 0.
    #[must_use]
    pub fn index(self) -> u32 {
        self.index
    }
}

// Derived, these would ask the same of `K`, which is only a name.
impl<K> Clone for Handle<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Handle<K> {}
impl<K> PartialEq for Handle<K> {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}
impl<K> Eq for Handle<K> {}
impl<K> std::hash::Hash for Handle<K> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.index.hash(state);
    }
}
impl<K> std::fmt::Debug for Handle<K> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "#{}", self.index)
    }
}

/// The interner holds as many bytes as it may; the text was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the dictionary is full: it holds {limit} bytes of distinct texts")]
pub struct Full {
    /// Most bytes that all texts may have together.
    pub limit: usize,
}

/// A place of the table: some bits of a text's hash, and the text's place; free without one.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    hash: u32,
    text: Option<NonZeroU32>,
}

/// Stores texts of one kind.
#[derive(Debug)]
pub struct Interner<K> {
    bytes: String,
    ends: Vec<usize>,
    /// As many slots as a power of two, or none; at most three of four are taken.
    table: Vec<Slot>,
    hasher: RandomState,
    limit: usize,
    kind: PhantomData<fn() -> K>,
}

impl<K> Interner<K> {
    /// An empty one, for texts of `limit` bytes together.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            bytes: String::new(),
            ends: vec![],
            table: vec![],
            hasher: RandomState::default(),
            limit,
            kind: PhantomData,
        }
    }

    /// The handle of `text`, and whether the text is new.
    ///
    /// # Errors
    /// Where it is new and does not fit any more.
    pub fn intern(&mut self, text: &str) -> Result<(Handle<K>, bool), Full> {
        let hash = self.hash(text);
        if let Some(index) = self.find(hash, text) {
            return Ok((self.handle(index), false));
        }
        let full = Full { limit: self.limit };
        if self.bytes.len() + text.len() > self.limit {
            return Err(full);
        }
        let index = self.len();
        let place = index.checked_add(1).and_then(NonZeroU32::new).ok_or(full)?;
        if self.ends.len() >= self.table.len() / 4 * 3 {
            self.grow();
        }
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        self.put(Slot { hash, text: Some(place) });
        Ok((self.handle(index), true))
    }

    /// The handle of `text`, where it has one.
    #[must_use]
    pub fn get(&self, text: &str) -> Option<Handle<K>> {
        self.find(self.hash(text), text).map(|index| self.handle(index))
    }

    /// The text that `handle` names; empty for a handle of another interner that is longer.
    #[must_use]
    pub fn text(&self, handle: Handle<K>) -> &str {
        self.at(handle.index)
    }

    /// The text that was seen as the `index`-th, from 0; empty where there are not so many.
    #[must_use]
    pub fn nth(&self, index: u32) -> &str {
        self.at(index)
    }

    /// How many bytes all texts have together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// All texts in the order of first sight.
    pub fn iter(&self) -> impl Iterator<Item = (Handle<K>, &str)> {
        (0..self.len()).map(|index| (self.handle(index), self.at(index)))
    }

    /// How many texts there are.
    #[must_use]
    pub fn len(&self) -> u32 {
        // `intern` stores no more than fit.
        u32::try_from(self.ends.len()).unwrap_or(u32::MAX)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn handle(&self, index: u32) -> Handle<K> {
        Handle { index, kind: PhantomData }
    }

    fn at(&self, index: u32) -> &str {
        self.bytes.get(self.range(index)).unwrap_or_default()
    }

    /// Where a text stands; nothing at the beginning where there are not so many.
    #[inline]
    fn range(&self, index: u32) -> Range<usize> {
        let index = index as usize;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        match self.ends.get(index) {
            Some(end) => start.unwrap_or(0)..*end,
            None => 0..0,
        }
    }

    /// The lower bits of the hash.
    fn hash(&self, text: &str) -> u32 {
        self.hasher.hash_one(text) as u32
    }

    /// The places where a text of that hash may be, the likeliest first.
    fn probes(&self, hash: u32) -> impl Iterator<Item = usize> + use<K> {
        let slots = self.table.len();
        (0..slots).map(move |step| (hash as usize).wrapping_add(step) & (slots - 1))
    }

    fn find(&self, hash: u32, text: &str) -> Option<u32> {
        for place in self.probes(hash) {
            let slot = self.table.get(place)?;
            let index = slot.text?.get() - 1;
            if slot.hash == hash
                && self.bytes.as_bytes().get(self.range(index)) == Some(text.as_bytes())
            {
                return Some(index);
            }
        }
        None
    }

    /// Takes the first free slot, of which there is always one.
    fn put(&mut self, slot: Slot) {
        let is_free = |place: &usize| self.table.get(*place).is_some_and(|it| it.text.is_none());
        let free = self.probes(slot.hash).find(is_free);
        if let Some(place) = free.and_then(|place| self.table.get_mut(place)) {
            *place = slot;
        }
    }

    fn grow(&mut self) {
        let slots = (self.table.len() * 2).max(16);
        let before = std::mem::replace(&mut self.table, vec![Slot::default(); slots]);
        before.into_iter().filter(|slot| slot.text.is_some()).for_each(|slot| self.put(slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Kernel;

    proptest! {
        #[test]
        fn equal_texts_have_one_handle_and_every_handle_gives_its_text(
            texts in prop::collection::vec("[ab]{0,3}", 0..50),
        ) {
            let mut interner = Interner::<Kernel>::with_limit(usize::MAX);
            let handles: Vec<_> = texts.iter().map(|text| interner.intern(text).unwrap().0).collect();
            for (text, handle) in texts.iter().zip(&handles) {
                prop_assert_eq!(interner.text(*handle), text);
            }
            let distinct: std::collections::HashSet<_> = texts.iter().collect();
            prop_assert_eq!(interner.len() as usize, distinct.len());
        }
    }

    #[test]
    fn thousands_of_texts_are_found_again_and_others_are_not() {
        let mut interner = Interner::<Kernel>::with_limit(usize::MAX);
        let text = |number: u32| format!("kernel {number}");
        for number in 0..10_000 {
            let (handle, new) = interner.intern(&text(number)).unwrap();
            assert!(new && handle.index() == number);
        }
        for number in 0..10_000 {
            assert_eq!(interner.get(&text(number)).map(Handle::index), Some(number));
            assert_eq!(interner.get(&text(number + 10_000)), None);
        }
    }

    #[test]
    fn a_full_interner_keeps_what_it_has_and_says_its_limit() {
        let mut interner = Interner::<Kernel>::with_limit(4);
        let (known, new) = interner.intern("abcd").unwrap();
        assert!(new);
        assert_eq!(interner.intern("e"), Err(Full { limit: 4 }));
        assert_eq!(interner.intern("abcd"), Ok((known, false)));
    }
}
