//! Launches that wait to be published.

use std::collections::BTreeMap;
use std::fmt::Write;

use warpgauge_wire::limits::MAX_LINES_PER_ID;
use warpgauge_wire::proportion::lines_standing_for;
use warpgauge_wire::{Function, Measurement, PrimitiveId, Value};

use crate::estimator::Estimate;
use crate::probes::COUNTED;

/// How many different values of a function are kept apart. A device has a few dozen occupancies;
/// more values come together only while nothing can be written for long.
const MAX_VALUES: usize = 4096;

/// The functions whose values are percentages.
const PERCENTAGES: [Function; 3] =
    [Function::Occupancy, Function::Coalescence, Function::Divergence];

/// Launches and what was measured of them since the last file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    launches: u64,
    instructions: Option<u64>,
    /// Per function of [`PERCENTAGES`], launches by value, as the bits of a float that is not
    /// negative: these sort like it.
    percentages: [BTreeMap<u64, u64>; PERCENTAGES.len()],
}

impl Tally {
    /// Adds launches of the same occupancy in percent, if that is known.
    pub fn add(&mut self, occupancy: Option<f64>, launches: u64) {
        self.launches = self.launches.saturating_add(launches);
        if let Some(occupancy) = occupancy {
            self.add_value(Function::Occupancy, occupancy, launches);
        }
    }

    /// Adds an estimate. Its launches are counted already.
    pub fn add_estimate(&mut self, estimate: &Estimate) {
        if let Some(instructions) = estimate.instructions {
            let so_far = self.instructions.unwrap_or(0);
            self.instructions = Some(so_far.saturating_add(instructions));
        }
        for (probe, percents) in COUNTED.iter().zip(&estimate.percents) {
            for (percent, launches) in percents {
                self.add_value(probe.function(), *percent, *launches);
            }
        }
    }

    fn add_value(&mut self, function: Function, percent: f64, launches: u64) {
        let place = PERCENTAGES.iter().position(|known| *known == function);
        let Some(values) = place.and_then(|place| self.percentages.get_mut(place)) else { return };
        // Adding zero turns -0 into 0, whose bits sort first.
        let percent = (percent + 0.0).to_bits();
        if let Some(known) = values.get_mut(&percent) {
            *known = known.saturating_add(launches);
        } else if values.len() < MAX_VALUES {
            values.insert(percent, launches);
        }
    }

    /// Launches in total.
    #[must_use]
    pub fn launches(&self) -> u64 {
        self.launches
    }

    /// Whether there is nothing to publish.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The lines of a measurement file: one of id 0 where anything was measured; of each of the ids
    /// 1 to 3 as few as stand for the launches in exact proportion, [`MAX_LINES_PER_ID`] at most;
    /// and one of id 4. Launches of unknown occupancy are in the line of id 4 alone; the extension
    /// lets the others stand for them. Nothing is written for what was not measured.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut lines = String::new();
        if self.is_empty() {
            return lines;
        }
        let mut write = |id, value| {
            // Writing to a string does not fail.
            let _written = write!(lines, "{}", Measurement { id, value });
        };
        if let Some(instructions) = self.instructions {
            write(Function::Instructions.id(), Value::Count(instructions));
        }
        for (function, values) in PERCENTAGES.iter().zip(&self.percentages) {
            let weights: Vec<u64> = values.values().copied().collect();
            let shares = lines_standing_for(&weights, MAX_LINES_PER_ID as u64);
            for (percent, share) in values.keys().zip(shares) {
                for _ in 0..share {
                    write(function.id(), Value::Percent(f64::from_bits(*percent)));
                }
            }
        }
        write(PrimitiveId::LAUNCHES, Value::Count(self.launches));
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

    #[test]
    fn every_function_has_its_lines_and_an_estimate_counts_no_launches_again() {
        let mut tally = Tally::default();
        tally.add(Some(100.0), 4);
        let percents = [vec![], vec![(50.0, 3), (12.5, 1)], vec![(0.0, 4)]];
        tally.add_estimate(&Estimate { instructions: Some(48), percents });
        tally.add_estimate(&Estimate { instructions: Some(2), ..Estimate::default() });
        assert_eq!(tally.lines(), "0:50\n1:100\n2:12.5\n2:50\n2:50\n2:50\n3:0\n4:4\n");
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
