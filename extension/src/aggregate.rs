//! From measurement lines to one tally per process and per group. Pure: no clock, no file.
//!
//! A file says how many launches it stands for (id 4); its lines of a percentage then weigh
//! launches / lines each. A file without id 4, from an older module, weighs each line one, and its
//! launches are its lines of id 1. Tallies merge by their counts, never by averaging averages.

pub mod distribution;

use warpgauge_wire::{Function, Measurement, PrimitiveId, Value};

pub use self::distribution::{Distribution, Shape};

/// The functions whose lines are percentages, in the order of [`Tally::percentages`].
pub const PERCENTAGES: [Function; 3] =
    [Function::Occupancy, Function::Coalescence, Function::Divergence];

/// What one file says, before it is known how many launches its lines stand for.
#[derive(Debug, Clone)]
pub struct FileTally {
    instructions: Option<u128>,
    launches: Option<u128>,
    percentages: [Distribution; 3],
    lines: u64,
    unknown: u64,
}

impl FileTally {
    /// Nothing read yet; `shape` says which buckets to keep.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self {
            instructions: None,
            launches: None,
            percentages: [(); 3].map(|()| Distribution::new(shape)),
            lines: 0,
            unknown: 0,
        }
    }

    /// Ready for the next file.
    pub fn clear(&mut self) {
        self.instructions = None;
        self.launches = None;
        self.percentages.iter_mut().for_each(Distribution::clear);
        self.lines = 0;
        self.unknown = 0;
    }

    /// Takes one line in.
    pub fn add(&mut self, measurement: Measurement) {
        match measurement.value {
            Value::Percent(percent) => {
                // Ids 1 to 3 are the percentages, so the index is id - 1.
                let index = measurement.id.0.wrapping_sub(1) as usize;
                if let Some(distribution) = self.percentages.get_mut(index) {
                    distribution.add(percent / 100.0);
                }
            }
            Value::Count(count) if measurement.id == PrimitiveId::LAUNCHES => {
                *self.launches.get_or_insert(0) += u128::from(count);
            }
            Value::Count(count) => *self.instructions.get_or_insert(0) += u128::from(count),
            Value::Unknown => {
                self.unknown += 1;
                return;
            }
        }
        self.lines += 1;
    }

    /// Lines taken in that have a meaning here.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Lines of ids that have none.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }
}

/// What is known of a process, or of a group, over one window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// Warp-level instructions; `None` when nobody reported any.
    pub instructions: Option<u128>,
    /// Launches; `None` when nobody reported any.
    pub launches: Option<u128>,
    /// The distributions of [`PERCENTAGES`], 0 to 1, weighted by launches.
    pub percentages: [Option<Distribution>; 3],
}

impl Tally {
    /// Merges a whole file.
    pub fn merge_file(&mut self, file: &FileTally) {
        let [occupancy, ..] = &file.percentages;
        let by_lines = (occupancy.count() > 0).then(|| u128::from(occupancy.count()));
        add(&mut self.launches, file.launches.or(by_lines));
        add(&mut self.instructions, file.instructions);
        for (sum, distribution) in self.percentages.iter_mut().zip(&file.percentages) {
            if distribution.count() == 0 {
                continue;
            }
            match file.launches.map(|launches| u64::try_from(launches).unwrap_or(u64::MAX)) {
                // No launch to weigh them with: the lines say nothing.
                Some(0) => {}
                Some(launches) => merge(sum, &distribution.standing_for(launches)),
                None => merge(sum, distribution),
            }
        }
    }

    /// Merges another process of the same group, or the same process's other half.
    pub fn merge(&mut self, other: &Self) {
        add(&mut self.instructions, other.instructions);
        add(&mut self.launches, other.launches);
        for (sum, distribution) in self.percentages.iter_mut().zip(&other.percentages) {
            if let Some(distribution) = distribution {
                merge(sum, distribution);
            }
        }
    }

    /// Whether nothing was reported at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The distribution of a percentage.
    #[must_use]
    pub fn percentage(&self, function: Function) -> Option<&Distribution> {
        let index = PERCENTAGES.iter().position(|known| *known == function)?;
        self.percentages.get(index)?.as_ref()
    }
}

fn add(sum: &mut Option<u128>, more: Option<u128>) {
    if let Some(more) = more {
        *sum.get_or_insert(0) += more;
    }
}

fn merge(sum: &mut Option<Distribution>, more: &Distribution) {
    match sum {
        Some(sum) => sum.merge(more),
        None => *sum = Some(more.clone()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpgauge_wire::measurement::parse_line;

    use super::*;

    fn file(lines: &str) -> FileTally {
        let mut tally = FileTally::new(Shape::None);
        for line in lines.lines() {
            tally.add(parse_line(line.as_bytes()).unwrap().unwrap());
        }
        tally
    }

    fn tally(files: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for lines in files {
            tally.merge_file(&file(lines));
        }
        tally
    }

    #[test]
    fn lines_weigh_the_launches_that_they_stand_for() {
        // 100,000 launches at 50 % in one file, one launch at 100 % in another.
        let tally = tally(&["1:50\n1:50\n4:100000", "1:100\n4:1"]);
        assert_eq!(tally.launches, Some(100_001));
        let occupancy = tally.percentage(Function::Occupancy).unwrap();
        assert_eq!(occupancy.count(), 100_001);
        let mean = (0.5 * 100_000.0 + 1.0) / 100_001.0;
        assert!((occupancy.mean().unwrap() - mean).abs() < 1e-12);
        assert_eq!((occupancy.min(), occupancy.max()), (Some(0.5), Some(1.0)));
    }

    #[test]
    fn an_older_modules_lines_weigh_one_each() {
        let tally = tally(&["1:25\n1:75\n0:5\n0:6", "2:10"]);
        assert_eq!((tally.launches, tally.instructions), (Some(2), Some(11)));
        assert_eq!(tally.percentage(Function::Occupancy).unwrap().mean(), Some(0.5));
        assert_eq!(tally.percentage(Function::Divergence), None);
    }

    #[test]
    fn nothing_is_invented_as_zero() {
        let tally = tally(&["2:10"]);
        assert_eq!((tally.launches, tally.instructions), (None, None));
        assert!(Tally::default().is_empty() && !tally.is_empty());
    }

    #[test]
    fn unknown_ids_are_counted_and_change_nothing() {
        let file = file("77:5\n0:1");
        assert_eq!((file.lines(), file.unknown()), (1, 1));
    }

    #[test]
    fn sums_beyond_64_bits_are_exact() {
        let line = format!("0:{}", u64::MAX);
        let tally = tally(&[&line, &line]);
        assert_eq!(tally.instructions, Some(2 * u128::from(u64::MAX)));
    }

    proptest! {
        #[test]
        fn how_files_are_split_over_workers_changes_nothing(
            files in proptest::collection::vec("(0:[0-9]{1,6}\n|1:[0-9]{1,2}\n|3:100\n){0,8}(4:[0-9]{1,4}\n)?", 0..8),
            cut in 0_usize..8,
        ) {
            let texts: Vec<_> = files.iter().map(String::as_str).collect();
            let (left, right) = texts.split_at(cut.min(texts.len()));
            let mut merged = tally(left);
            merged.merge(&tally(right));
            let whole = tally(&texts);
            prop_assert_eq!((merged.launches, merged.instructions), (whole.launches, whole.instructions));
            for function in PERCENTAGES {
                let (a, b) = (merged.percentage(function), whole.percentage(function));
                prop_assert_eq!(a.map(Distribution::count), b.map(Distribution::count));
                let mean = |side: Option<&Distribution>| side.and_then(Distribution::mean).unwrap_or(0.0);
                prop_assert!((mean(a) - mean(b)).abs() < 1e-9);
            }
        }
    }
}
