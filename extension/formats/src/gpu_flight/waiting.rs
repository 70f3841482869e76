//! Batches that came before the dictionary that explains them.

use std::collections::{BTreeMap, HashMap};

use super::dictionary::Kind;
use super::rows::Type;

/// Bytes of lines that may wait in all.
const MOST_BYTES: usize = 8 << 20;

/// What a line costs besides its text and its session's name.
const LINE: usize = 256;

/// A line that waits, and the first id in it that nobody has explained yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) line: u64,
    pub(super) of: Type,
    pub(super) session: String,
    pub(super) text: String,
    pub(super) id: (Kind, i64),
}

impl Waiting {
    fn bytes(&self) -> usize {
        self.text.len() + self.session.len() + LINE
    }
}

/// The lines that wait, by the order in which they came, and who waits for an id of a session.
///
/// A dictionary looks up its own ids and no others: what waits costs nothing while it waits.
#[derive(Debug, Default)]
pub(super) struct Queue {
    lines: BTreeMap<u64, Waiting>,
    by_id: HashMap<(Kind, i64), Vec<u64>>,
    next: u64,
    bytes: usize,
}

impl Queue {
    /// Adds a line; gives back the oldest ones, where there is no room for all.
    pub(super) fn push(&mut self, waiting: Waiting) -> Vec<Waiting> {
        self.bytes += waiting.bytes();
        self.by_id.entry(waiting.id).or_default().push(self.next);
        self.lines.insert(self.next, waiting);
        self.next += 1;
        let mut crowded_out = vec![];
        while self.bytes > MOST_BYTES {
            let Some((place, oldest)) = self.lines.pop_first() else { break };
            self.bytes -= oldest.bytes();
            if let Some(places) = self.by_id.get_mut(&oldest.id) {
                // Those that wait for one id are in order too.
                places.retain(|other| *other != place);
                if places.is_empty() {
                    self.by_id.remove(&oldest.id);
                }
            }
            crowded_out.push(oldest);
        }
        crowded_out
    }

    /// Takes out the lines of a session that wait for one of these ids, in the order in which they
    /// came.
    pub(super) fn take(
        &mut self,
        session: &str,
        ids: impl Iterator<Item = (Kind, i64)>,
    ) -> Vec<Waiting> {
        if self.lines.is_empty() {
            return vec![];
        }
        let mut ready = BTreeMap::new();
        for id in ids {
            let Some(places) = self.by_id.remove(&id) else { continue };
            let is_its =
                |place: &u64| self.lines.get(place).is_some_and(|line| line.session == session);
            let (its, others): (Vec<u64>, Vec<u64>) = places.into_iter().partition(is_its);
            if !others.is_empty() {
                self.by_id.insert(id, others);
            }
            ready.extend(
                its.into_iter().filter_map(|place| Some((place, self.lines.remove(&place)?))),
            );
        }
        self.bytes -= ready.values().map(Waiting::bytes).sum::<usize>();
        ready.into_values().collect()
    }

    /// Whether the line that came last waits.
    pub(super) fn ends_with(&self, line: u64) -> bool {
        self.lines.last_key_value().is_some_and(|(_, waiting)| waiting.line == line)
    }

    /// Takes out all that is left.
    pub(super) fn drain(&mut self) -> Vec<Waiting> {
        std::mem::take(self).lines.into_values().collect()
    }
}
