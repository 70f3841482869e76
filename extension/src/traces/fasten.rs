//! Which event a record belongs to: an arrow's end to the slice around it, the end of a range to its
//! beginning.
//!
//! ```text
//! row   op ├──────────────┤          an arrow's end at the beginning of a slice belongs to it,
//!           mm ├──────┤              any other to the innermost slice around it, of the last
//!              s                     64 of its row
//! ```
//!
//! Producers write an arrow's end right behind its slice, so that a few slices of each row are enough.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use warpgauge_formats::trace::{EventType, TraceEvent, Track};

/// Slices of one row that are remembered.
const RECENT: usize = 64;

/// Ranges of one row that may be open at once; the ends of further ones are judged for themselves.
const MOST_OPEN: usize = 256;

/// Rows that are remembered; with all their slices they take 25 MiB, and with all ranges open 32 MiB
/// more. Arrows on further rows belong to no slice.
const MOST_ROWS: usize = 16_384;

/// Remembers for the last events what was decided about them.
#[derive(Debug)]
pub(super) struct Fastened<T> {
    rows: HashMap<u64, Row<T>>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Row<T> {
    slices: VecDeque<Slice<T>>,
    open: Vec<T>,
}

#[derive(Debug)]
struct Slice<T> {
    start: i64,
    end: i64,
    decided: T,
}

impl<T> Default for Fastened<T> {
    fn default() -> Self {
        Self { rows: HashMap::new(), hasher: RandomState::new() }
    }
}

impl<T: Copy> Fastened<T> {
    /// Takes in what was decided about an event, and gives what holds for it: the end of a range
    /// shares the lot of its beginning.
    pub(super) fn event(&mut self, event: &TraceEvent<'_>, decided: T) -> T {
        let key = self.key(&event.track);
        if !self.rows.contains_key(&key) && self.rows.len() >= MOST_ROWS {
            return decided;
        }
        let row = self.rows.entry(key);
        let row = row.or_insert_with(|| Row { slices: VecDeque::new(), open: vec![] });
        match (event.event_type, event.duration) {
            (_, Some(_)) => {
                if row.slices.len() >= RECENT {
                    row.slices.pop_front();
                }
                let (start, end) = (event.timestamp.0, event.end().0);
                row.slices.push_back(Slice { start, end, decided });
                decided
            }
            (EventType::RangeStart, None) => {
                if row.open.len() < MOST_OPEN {
                    row.open.push(decided);
                }
                decided
            }
            (EventType::RangeEnd, None) => row.open.pop().unwrap_or(decided),
            _ => decided,
        }
    }

    /// What was decided about the slice to which an arrow's end at that time belongs.
    pub(super) fn arrow(&self, track: &Track<'_>, time: i64) -> Option<T> {
        let slices = &self.rows.get(&self.key(track))?.slices;
        let begun = slices.iter().rev().find(|slice| slice.start == time);
        let around = || {
            let around = slices.iter().filter(|slice| slice.start <= time && time <= slice.end);
            around.max_by_key(|slice| slice.start)
        };
        begun.or_else(around).map(|slice| slice.decided)
    }

    fn key(&self, track: &Track<'_>) -> u64 {
        self.hasher.hash_one(track)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_formats::time::{Span, Timestamp};
    use warpgauge_formats::trace::Id;

    fn slice(start: i64, length: i64) -> TraceEvent<'static> {
        TraceEvent {
            timestamp: Timestamp(start),
            duration: Some(Span(length)),
            ..TraceEvent::default()
        }
    }

    #[test]
    fn an_arrow_belongs_to_the_slice_that_begins_there_or_to_the_innermost_around() {
        let mut fastened = Fastened::default();
        fastened.event(&slice(0, 100), 'o');
        fastened.event(&slice(10, 50), 'i');
        fastened.event(&slice(70, 5), 'l');
        let at = |time| fastened.arrow(&Track::default(), time);
        assert_eq!([at(0), at(10), at(30), at(65), at(75)], ['o', 'i', 'i', 'o', 'l'].map(Some));
        assert_eq!((at(-1), at(101)), (None, None));
    }

    #[test]
    fn rows_beyond_the_limit_are_not_remembered() {
        let mut fastened = Fastened::default();
        for row in 0..MOST_ROWS as i64 + 2 {
            let mut slice = slice(0, 1);
            slice.track.row = Id::Number(row);
            assert_eq!(fastened.event(&slice, row), row);
        }
        let track = |row| Track { row: Id::Number(row), ..Track::default() };
        assert_eq!(fastened.arrow(&track(5), 0), Some(5));
        assert_eq!(fastened.arrow(&track(MOST_ROWS as i64 + 1), 0), None);
        assert_eq!(fastened.rows.len(), MOST_ROWS);
    }

    #[test]
    fn the_end_of_a_range_shares_the_lot_of_its_beginning() {
        let mut fastened = Fastened::default();
        let range = |event_type| TraceEvent { event_type, ..TraceEvent::default() };
        let (begin, end) = (range(EventType::RangeStart), range(EventType::RangeEnd));
        fastened.event(&begin, 'a');
        fastened.event(&begin, 'b');
        let ends: Vec<_> = (0..3).map(|_| fastened.event(&end, 'x')).collect();
        assert_eq!(ends, ['b', 'a', 'x']);
    }
}
