//! Texts stored once and named by small typed handles.
//!
//! ```text
//! bytes   k1k2_longer...         every text behind the other
//! ends    2  11  ...             where each ends: handle 0 is bytes[0..2], handle 1 is [2..11]
//! table   hash -> handle         to find a text that is there already
//! ```
//!
//! A handle carries in its type what kind of text it names, so that a kernel's name cannot be
//! looked up among the scopes.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;

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

/// Stores texts of one kind.
#[derive(Debug)]
pub struct Interner<K> {
    bytes: String,
    ends: Vec<usize>,
    table: HashMap<u64, Vec<u32>, Finished>,
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
            table: HashMap::default(),
            hasher: RandomState::new(),
            limit,
            kind: PhantomData,
        }
    }

    /// The handle of `text`, and whether the text is new.
    ///
    /// # Errors
    /// Where it is new and does not fit any more.
    pub fn intern(&mut self, text: &str) -> Result<(Handle<K>, bool), Full> {
        let hash = self.hasher.hash_one(text);
        if let Some(index) = self.find(hash, text) {
            return Ok((self.handle(index), false));
        }
        let full = Full { limit: self.limit };
        if self.bytes.len() + text.len() > self.limit {
            return Err(full);
        }
        let index = u32::try_from(self.ends.len()).map_err(|_| full)?;
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        self.table.entry(hash).or_default().push(index);
        Ok((self.handle(index), true))
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
        let index = index as usize;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(index).copied().unwrap_or(0);
        self.bytes.get(start.unwrap_or(0)..end).unwrap_or_default()
    }

    fn find(&self, hash: u64, text: &str) -> Option<u32> {
        let candidates = self.table.get(&hash)?;
        candidates.iter().copied().find(|index| self.at(*index) == text)
    }
}

/// The table's keys are hashes already.
#[derive(Debug, Default, Clone)]
struct Finished;

impl BuildHasher for Finished {
    type Hasher = Finish;
    fn build_hasher(&self) -> Finish {
        Finish(0)
    }
}

#[derive(Debug)]
struct Finish(u64);

impl std::hash::Hasher for Finish {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
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
    fn a_full_interner_keeps_what_it_has_and_says_its_limit() {
        let mut interner = Interner::<Kernel>::with_limit(4);
        let (known, new) = interner.intern("abcd").unwrap();
        assert!(new);
        assert_eq!(interner.intern("e"), Err(Full { limit: 4 }));
        assert_eq!(interner.intern("abcd"), Ok((known, false)));
    }
}
