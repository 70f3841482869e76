//! The scopes that have begun and not ended.

use std::collections::{BTreeMap, HashMap};

use super::processes::Place;
use crate::event::Scope;
use crate::time::Timestamp;
use crate::trace::Track;

/// Most scopes that are open.
const MOST: usize = 65_536;

/// Most bytes of their texts.
const MOST_BYTES: usize = 16 << 20;

/// How many of the scopes that began last are asked whether another lies in them.
const MOST_ASKED: usize = 256;

/// What an end says of its scope.
type Key = (Place, Option<i64>, String);

/// A scope that has begun.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) line: u64,
    source: Place,
    pub(super) name: String,
    pub(super) instance: Option<i64>,
    depth: Option<i64>,
    /// In the log's time.
    pub(super) began: Timestamp,
    /// In the trace's time.
    pub(super) timestamp: Timestamp,
    pub(super) track: Track<'static>,
    pub(super) thread: Option<i64>,
    /// What its begin tells, for the slice that its end makes of it.
    pub(super) parent: Option<Parent>,
    pub(super) tag: Option<String>,
    pub(super) path: Option<String>,
    pub(super) repeat: Option<i64>,
    pub(super) warmup: Option<i64>,
}

impl Open {
    fn key(&self) -> Key {
        (self.source, self.instance, self.name.clone())
    }

    fn text_bytes(&self) -> usize {
        let texts = [&self.tag, &self.path].into_iter().flatten().map(String::len);
        // The name is part of the key, too.
        texts.sum::<usize>() + 2 * self.name.len()
    }
}

/// The scope around another: its number or, where it has none, its name.
#[derive(Debug, Clone)]
pub(super) enum Parent {
    Instance(i64),
    Name(String),
}

/// All of them, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct OpenScopes {
    next: u64,
    scopes: BTreeMap<u64, Open>,
    /// Their places, of those with equal keys the innermost last.
    places: HashMap<Key, Vec<u64>>,
    /// Bytes of their texts.
    bytes: usize,
}

impl OpenScopes {
    /// A scope begins.
    pub(super) fn begin(
        &mut self,
        line: u64,
        source: Place,
        scope: &Scope<'_>,
        timestamp: Timestamp,
        (track, thread): (Track<'static>, Option<i64>),
    ) {
        let text = |text: &Option<crate::event::Text<'_>>| text.as_deref().map(str::to_owned);
        let parent = self.parent(source, scope);
        let open = Open {
            line,
            source,
            name: scope.name.to_string(),
            instance: scope.instance,
            depth: scope.depth,
            began: scope.time,
            timestamp,
            track,
            thread,
            parent,
            tag: text(&scope.tag),
            path: text(&scope.path),
            repeat: scope.repeat,
            warmup: scope.warmup,
        };
        self.bytes += open.text_bytes();
        self.places.entry(open.key()).or_default().push(self.next);
        self.scopes.insert(self.next, open);
        self.next += 1;
    }

    /// Takes the oldest where too many are open.
    pub(super) fn overflow(&mut self) -> Option<Open> {
        if self.scopes.len() <= MOST && self.bytes <= MOST_BYTES {
            return None;
        }
        let place = *self.scopes.first_key_value()?.0;
        self.take(place)
    }

    /// The scope that ends: that of the same number, or the innermost of the same name.
    pub(super) fn end(&mut self, source: Place, scope: &Scope<'_>) -> Option<Open> {
        let key = (source, scope.instance, scope.name.to_string());
        let place = *self.places.get(&key)?.last()?;
        self.take(place)
    }

    fn take(&mut self, place: u64) -> Option<Open> {
        let open = self.scopes.remove(&place)?;
        self.bytes = self.bytes.saturating_sub(open.text_bytes());
        let key = open.key();
        if let Some(places) = self.places.get_mut(&key) {
            if places.pop_if(|last| *last == place).is_none() {
                places.retain(|known| *known != place);
            }
            if places.is_empty() {
                self.places.remove(&key);
            }
        }
        Some(open)
    }

    /// The scope around one that begins: the path names it, and it lies one level above.
    fn parent(&self, source: Place, scope: &Scope<'_>) -> Option<Parent> {
        let named = scope.path.as_deref().and_then(|path| path.rsplit('|').nth(1));
        let is_it = |open: &&Open| {
            let level = match (open.depth, scope.depth) {
                (Some(above), Some(depth)) => above.checked_add(1) == Some(depth),
                _ => named.is_some(),
            };
            open.source == source && level && named.is_none_or(|named| open.name == named)
        };
        match self.scopes.values().rev().take(MOST_ASKED).find(is_it) {
            Some(open) => Some(match open.instance {
                Some(instance) => Parent::Instance(instance),
                None => Parent::Name(open.name.clone()),
            }),
            None => named.map(|named| Parent::Name(named.to_owned())),
        }
    }

    /// All that are still open.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Open> + use<> {
        (self.places, self.bytes) = (HashMap::new(), 0);
        std::mem::take(&mut self.scopes).into_values()
    }
}
