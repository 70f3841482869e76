//! Who wrote a log.

use std::collections::{HashMap, HashSet};

use warpgauge_formats::event::{Event, Source, What};

use crate::events::clock::Clock;

/// Most sessions and processes that are kept apart.
const MOST: usize = 1_024;

/// Sessions and processes.
#[derive(Debug, Default)]
pub struct Sources {
    totals: Vec<SourceTotals>,
    places: HashMap<(Option<String>, Option<i64>), usize>,
    /// The one that wrote last: it mostly writes next.
    last: usize,
    bounds: HashSet<Vec<u8>>,
    /// Events of those beyond the first 1,024.
    pub left_out: u64,
}

/// One session or process.
#[derive(Debug, Default, Clone)]
pub struct SourceTotals {
    /// Its session and process.
    pub source: Source<'static>,
    /// Events that it wrote.
    pub events: u64,
    /// From when to when.
    pub clock: Clock,
}

impl Sources {
    /// Counts the event for its source and gives the source's place, [`MOST`] for all beyond; `None`
    /// where it only says again, in another channel, that the source began or ended.
    pub(super) fn note(&mut self, event: &Event<'_>) -> Option<usize> {
        if matches!(event.what, What::Start(_) | What::End(_)) && !self.is_new(event) {
            return None;
        }
        let place = self.place(&event.source);
        if let Some(totals) = self.totals.get_mut(place) {
            totals.events += 1;
            totals.clock.note(event);
        } else {
            self.left_out += 1;
        }
        Some(place)
    }

    fn place(&mut self, source: &Source<'_>) -> usize {
        let is_same = |totals: &SourceTotals| {
            totals.source.pid == source.pid && totals.source.session == source.session
        };
        if self.totals.get(self.last).is_some_and(is_same) {
            return self.last;
        }
        let key = (source.session.as_deref().map(str::to_owned), source.pid);
        if let Some(place) = self.places.get(&key) {
            self.last = *place;
        } else if self.totals.len() < MOST {
            self.last = self.totals.len();
            self.places.insert(key, self.last);
            let source = source.clone().into_owned();
            self.totals.push(SourceTotals { source, ..SourceTotals::default() });
        } else {
            return MOST;
        }
        self.last
    }

    fn is_new(&mut self, event: &Event<'_>) -> bool {
        let mut told = vec![];
        event.write_json(&mut told);
        if self.bounds.len() >= MOST {
            self.bounds.clear();
        }
        self.bounds.insert(told)
    }

    /// All of them, those that wrote most first.
    #[must_use]
    pub fn by_events(&self) -> Vec<&SourceTotals> {
        let mut sources: Vec<_> = self.totals.iter().collect();
        sources.sort_by(|a, b| {
            let key = |totals: &SourceTotals| (totals.source.session.clone(), totals.source.pid);
            b.events.cmp(&a.events).then_with(|| key(a).cmp(&key(b)))
        });
        sources
    }
}
