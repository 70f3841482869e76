//! Launches that wait to be published.

use std::collections::BTreeMap;
use std::fmt::Write;

use warpgauge_wire::limits::MAX_LINES_PER_ID;
use warpgauge_wire::proportion::lines_standing_for;
use warpgauge_wire::{Function, Measurement, PrimitiveId, Value};

/// How many different occupancies are kept apart. A device has a few dozen; more come together only
/// while nothing can be written for long.
const MAX_OCCUPANCIES: usize = 4096;

/// Launches and their occupancies since the last file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    launches: u64,
    /// Launches by occupancy, as the bits of a float that is not negative: these sort like it.
    occupancies: BTreeMap<u64, u64>,
}

impl Tally {
    /// Adds launches of the same occupancy in percent, if that is known.
    pub fn add(&mut self, occupancy: Option<f64>, launches: u64) {
        self.launches = self.launches.saturating_add(launches);
        let Some(occupancy) = occupancy.map(f64::to_bits) else { return };
        if let Some(known) = self.occupancies.get_mut(&occupancy) {
            *known = known.saturating_add(launches);
        } else if self.occupancies.len() < MAX_OCCUPANCIES {
            self.occupancies.insert(occupancy, launches);
        }
    }

    /// Launches in total.
    #[must_use]
    pub fn launches(&self) -> u64 {
        self.launches
    }

    /// The lines of a measurement file: as few of id 1 as stand for the launches in exact proportion,
    /// [`MAX_LINES_PER_ID`] at most, and one of id 4. Launches of unknown occupancy are in the
    /// line of id 4 alone; the extension lets the others stand for them. Empty without a launch.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut lines = String::new();
        if self.launches == 0 {
            return lines;
        }
        let weights: Vec<u64> = self.occupancies.values().copied().collect();
        let shares = lines_standing_for(&weights, MAX_LINES_PER_ID as u64);
        for (occupancy, share) in self.occupancies.keys().zip(shares) {
            let value = Value::Percent(f64::from_bits(*occupancy));
            let line = Measurement { id: Function::Occupancy.id(), value };
            for _ in 0..share {
                // Writing to a string does not fail.
                let _written = write!(lines, "{line}");
            }
        }
        let total = Measurement { id: PrimitiveId::LAUNCHES, value: Value::Count(self.launches) };
        let _written = write!(lines, "{total}");
        lines
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_keep_the_proportion_of_the_launches() {
        let mut tally = Tally::default();
        tally.add(Some(100.0), 2);
        tally.add(Some(12.5), 1);
        tally.add(None, 4);
        assert_eq!(tally.lines(), "1:12.5\n1:100\n1:100\n4:7\n");
        assert_eq!(Tally::default().lines(), "");
    }

    #[test]
    fn launches_in_no_simple_proportion_share_a_thousand_lines() {
        let mut tally = Tally::default();
        tally.add(Some(50.0), 3_000_001);
        tally.add(Some(100.0), 1_000_000);
        let lines = tally.lines();
        let count = |wanted: &str| lines.lines().filter(|line| *line == wanted).count();
        assert_eq!((count("1:50"), count("1:100"), count("4:4000001")), (750, 250, 1));
    }

    proptest! {
        #[test]
        fn a_file_never_grows_over_its_bound_and_counts_every_launch(
            added in proptest::collection::vec((0_u32..=10_000, 1_u64..1_000_000), 1..2000)
        ) {
            let mut tally = Tally::default();
            for (occupancy, launches) in &added {
                tally.add(Some(f64::from(*occupancy) / 100.0), *launches);
            }
            let lines = tally.lines();
            prop_assert!(lines.lines().count() <= MAX_LINES_PER_ID + 1);
            let total: u64 = added.iter().map(|(_, launches)| launches).sum();
            let last = format!("4:{total}\n");
            prop_assert!(lines.ends_with(&last));
        }
    }
}
