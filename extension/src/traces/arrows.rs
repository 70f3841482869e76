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

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_formats::trace::{FlowPoint, FlowType, TraceEvent};

    fn end(category: &'static str, id: i64) -> Record<'static> {
        let flow = Flow { id, ..Flow::default() };
        Record::Flow(FlowPoint { flow, category: category.into(), ..FlowPoint::default() })
    }

    #[test]
    fn arrows_of_two_categories_are_apart_and_those_on_events_are_found() {
        let mut arrows = Arrows::default();
        [3, 1, 3].into_iter().for_each(|id| arrows.note(&end("ac2g", id)));
        arrows.close();
        let held = |record| arrows.holds(&record);
        assert_eq!([1, 2, 3].map(|id| held(end("ac2g", id))), [true, false, true]);
        assert!(!held(end("fwdbwd", 1)));
        let flow = Flow { id: 3, flow_type: FlowType::AsyncCpuToGpu, start: true };
        let event = TraceEvent { flow: Some(flow), ..TraceEvent::default() };
        assert!(held(Record::Event(event)));
    }

    #[test]
    fn further_categories_share_a_place() {
        let mut arrows = Arrows::default();
        let names: Vec<_> = (0..MOST_CATEGORIES + 5).map(|place| place.to_string()).collect();
        let end = |name: &str| {
            let category = name.to_owned().into();
            Record::Flow(FlowPoint { category, ..FlowPoint::default() })
        };
        names.iter().for_each(|name| arrows.note(&end(name)));
        arrows.close();
        assert!(names.iter().all(|name| arrows.holds(&end(name))));
        assert_eq!(arrows.ids.len(), MOST_CATEGORIES + 1);
    }

    #[test]
    fn what_is_beyond_the_limit_is_counted() {
        let mut arrows = Arrows::default();
        let mut point = FlowPoint { category: "ac2g".into(), ..FlowPoint::default() };
        for id in 0..MOST as i64 + 3 {
            point.flow.id = id;
            arrows.note(&Record::Flow(point.clone()));
        }
        arrows.close();
        assert_eq!((arrows.beyond(), arrows.count), (3, MOST));
        assert!(arrows.holds(&end("ac2g", 0)) && !arrows.holds(&end("ac2g", MOST as i64 + 1)));
    }
}
