//! Lanes: slices on one lane lie one within the other or one behind the other.

/// The lanes of one thread or stream. The first is its own track.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    /// When the last slice on it began.
    last_start: u64,
    /// When the slices that are open end, the innermost last.
    open: Vec<u64>,
}

impl Lane {
    fn fits(&self, start: u64, end: u64) -> bool {
        let around = self.open.iter().rev().find(|open| **open > start);
        start >= self.last_start && around.is_none_or(|around| *around >= end)
    }
}

impl Lanes {
    /// Gives a slice its lane. `ended` takes the ends, in order, of those slices on it that have to
    /// be closed before.
    pub(crate) fn place(&mut self, start: u64, end: u64, ended: &mut Vec<u64>) -> usize {
        let found = self.lanes.iter().position(|lane| lane.fits(start, end));
        let place = found.unwrap_or(self.lanes.len());
        if found.is_none() {
            self.lanes.push(Lane::default());
        }
        if let Some(lane) = self.lanes.get_mut(place) {
            while let Some(open) = lane.open.pop_if(|open| *open <= start) {
                ended.push(open);
            }
            lane.last_start = start;
            lane.open.push(end);
        }
        place
    }

    /// The lanes with the ends of the slices that are still open on each, innermost first.
    pub(crate) fn close(self) -> impl Iterator<Item = (usize, Vec<u64>)> {
        self.lanes.into_iter().map(|lane| lane.open.into_iter().rev().collect()).enumerate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_overlaps_partly_goes_to_a_lane_of_its_own() {
        let (mut lanes, mut ended) = (Lanes::default(), vec![]);
        assert_eq!(lanes.place(0, 10, &mut ended), 0);
        assert_eq!(lanes.place(2, 8, &mut ended), 0, "within");
        assert_eq!(lanes.place(5, 9, &mut ended), 1, "across the end of the second");
        assert!(ended.is_empty());
        assert_eq!(lanes.place(8, 10, &mut ended), 0, "behind the second");
        assert_eq!(ended, [8]);
        assert_eq!(lanes.place(1, 2, &mut ended), 2, "too late for the others");
    }

    proptest! {
        #[test]
        fn on_a_lane_ends_come_before_what_begins_later_and_every_slice_ends_where_it_should(
            slices in prop::collection::vec((0..40_u64, 0..12_u64), 0..40),
        ) {
            let mut lanes = Lanes::default();
            // Begins (true) and ends (false) as they would be written, by lane.
            let mut written = std::collections::BTreeMap::<usize, Vec<(u64, bool)>>::new();
            let mut placed = std::collections::BTreeMap::<usize, Vec<(u64, u64)>>::new();
            for (start, length) in slices {
                let mut ended = vec![];
                let lane = lanes.place(start, start + length, &mut ended);
                let events = written.entry(lane).or_default();
                events.extend(ended.into_iter().map(|end| (end, false)));
                events.push((start, true));
                placed.entry(lane).or_default().push((start, start + length));
            }
            for (lane, ends) in lanes.close() {
                written.entry(lane).or_default().extend(ends.into_iter().map(|end| (end, false)));
            }
            for (lane, events) in written {
                prop_assert!(events.is_sorted_by_key(|(time, _)| *time));
                let (mut open, mut read) = (vec![], vec![]);
                for (time, begins) in events {
                    if begins {
                        open.push(time);
                    } else {
                        read.push((open.pop().unwrap(), time));
                    }
                }
                read.sort_unstable();
                let mut expected = placed.remove(&lane).unwrap();
                expected.sort_unstable();
                prop_assert_eq!(read, expected);
            }
        }
    }
}
