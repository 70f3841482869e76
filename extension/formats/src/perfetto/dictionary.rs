//! Texts that come again and again, written once and then named by numbers from 1.

use super::wire;
use crate::interner::Interner;

/// Most memory of all texts of a kind. Those beyond are written out each time.
const LIMIT: usize = 4 << 20;
/// Memory that a text takes beside its own bytes: its end, and its share of the table.
const BESIDE: usize = 32;

struct Names;
struct Categories;
struct Keys;

/// The texts that have numbers.
pub(super) struct Dictionary {
    names: Interner<Names>,
    categories: Interner<Categories>,
    keys: Interner<Keys>,
    /// Body of the `InternedData` that defines the numbers given since the last one was written.
    pub(super) defined: Vec<u8>,
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Dictionary").finish_non_exhaustive()
    }
}

impl Dictionary {
    pub(super) fn new() -> Self {
        Self {
            names: Interner::with_limit(LIMIT),
            categories: Interner::with_limit(LIMIT),
            keys: Interner::with_limit(LIMIT),
            defined: vec![],
        }
    }

    /// Writes an event's name into its `TrackEvent`.
    pub(super) fn name(&mut self, event: &mut Vec<u8>, name: &str) {
        match number(&mut self.names, name, 2, &mut self.defined) {
            Some(number) => wire::unsigned(event, 10, number),
            None => wire::text(event, 23, name),
        }
    }

    /// Writes an event's category into its `TrackEvent`.
    pub(super) fn category(&mut self, event: &mut Vec<u8>, category: &str) {
        match number(&mut self.categories, category, 1, &mut self.defined) {
            Some(number) => wire::unsigned(event, 3, number),
            None => wire::text(event, 22, category),
        }
    }

    /// Writes an annotation's name into its `DebugAnnotation`.
    pub(super) fn key(&mut self, annotation: &mut Vec<u8>, name: &str) {
        match number(&mut self.keys, name, 3, &mut self.defined) {
            Some(number) => wire::unsigned(annotation, 1, number),
            None => wire::text(annotation, 10, name),
        }
    }
}

/// The text's number; none where the dictionary is full. A new one is defined in the list `field` of
/// `InternedData`.
fn number<K>(
    interner: &mut Interner<K>,
    text: &str,
    field: u64,
    defined: &mut Vec<u8>,
) -> Option<u64> {
    let handle = interner.get(text);
    let new = handle.is_none();
    let handle = match handle {
        Some(handle) => handle,
        None => {
            let held = interner.bytes() + (interner.len() as usize + 1) * BESIDE;
            if held + text.len() > LIMIT {
                return None;
            }
            interner.intern(text).ok()?.0
        }
    };
    let number = u64::from(handle.index()) + 1;
    if new {
        wire::message(defined, field, |entry| {
            wire::unsigned(entry, 1, number);
            wire::text(entry, 2, text);
        });
    }
    Some(number)
}
