//! Arrows that lost one end to a filter: the other end goes, too.

use std::collections::BTreeMap;

use warpgauge_formats::trace::{Flow, Record};

/// Arrows that are remembered, in 8 bytes each.
const MOST: usize = 4 << 20;

/// Categories of arrows that are told apart; those beyond share a place.
const MOST_CATEGORIES: usize = 64;

/// Arrows by category and id.
#[derive(Debug, Default)]
pub(super) struct Arrows {
    ids: BTreeMap<String, Vec<i64>>,
    count: usize,
    beyond: u64,
}

impl Arrows {
    /// Remembers the arrow whose end a record is.
    pub(super) fn note(&mut self, record: &Record<'_>) {
        let Some((category, flow)) = arrow(record) else { return };
        if self.count >= MOST {
            self.beyond += 1;
            return;
        }
        self.count += 1;
        let ids = match self.ids.get_mut(category) {
            Some(ids) => ids,
            None => {
                let is_room = self.ids.len() < MOST_CATEGORIES;
                self.ids
                    .entry(if is_room { category.to_owned() } else { String::new() })
                    .or_default()
            }
        };
        ids.push(flow.id);
    }

    /// Makes them ready to be asked.
    pub(super) fn close(&mut self) {
        for ids in self.ids.values_mut() {
            ids.sort_unstable();
            ids.dedup();
        }
    }

    /// Whether a record is an end of an arrow that was noted, or has one.
    pub(super) fn holds(&self, record: &Record<'_>) -> bool {
        let Some((category, flow)) = arrow(record) else { return false };
        let within = |category: &str| {
            self.ids.get(category).is_some_and(|ids| ids.binary_search(&flow.id).is_ok())
        };
        within(category) || self.ids.len() >= MOST_CATEGORIES && within("")
    }

    /// How many arrows' ends were not remembered, because there were too many.
    pub(super) fn beyond(&self) -> u64 {
        self.beyond
    }
}

/// The end of an arrow that a record is, or that is fastened to it.
fn arrow<'r>(record: &'r Record<'_>) -> Option<(&'r str, Flow)> {
    match record {
        Record::Flow(point) => Some((point.category.as_ref(), point.flow)),
        Record::Event(event) => event.flow.map(|flow| (flow.flow_type.category(), flow)),
        _ => None,
    }
}
