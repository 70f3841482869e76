//! The range of each series of counters.

use std::collections::BTreeMap;

use warpgauge_formats::time::Timestamp;
use warpgauge_formats::trace::{CounterEvent, Track};

/// Most series that are kept apart.
const MOST: usize = 1_024;

/// Counters by track, name and series.
#[derive(Debug, Default)]
pub struct Counters {
    tracks: BTreeMap<Track<'static>, BTreeMap<String, BTreeMap<String, Range>>>,
    series: usize,
    /// Values of series beyond the first 1,024.
    pub left_out: u64,
    /// Values that are no numbers.
    pub no_numbers: u64,
}

/// What the values of one series were.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// Their unit, in UCUM, where the trace tells it.
    pub unit: Option<String>,
    /// How many.
    pub count: u64,
    /// The lowest.
    pub lowest: f64,
    /// The highest, and when first.
    pub highest: (f64, Timestamp),
}

impl Counters {
    pub(super) fn note(&mut self, event: &CounterEvent<'_>) {
        let track = event.track.clone().into_owned();
        for (series, value) in &event.values {
            let Some(value) = value.as_f64() else {
                self.no_numbers += 1;
                continue;
            };
            let names = self.tracks.get_mut(&track);
            let known = names.and_then(|names| names.get_mut(&*event.name)?.get_mut(&**series));
            if let Some(range) = known {
                range.note(value, event.timestamp);
            } else if self.series < MOST {
                self.series += 1;
                let names = self.tracks.entry(track.clone()).or_default();
                let all = names.entry(event.name.to_string()).or_default();
                let unit = event.unit.as_deref().map(str::to_owned);
                let highest = (value, event.timestamp);
                let range = Range { unit, count: 1, lowest: value, highest };
                all.insert(series.to_string(), range);
            } else {
                self.left_out += 1;
            }
        }
    }

    /// All series: track, counter, series, range.
    pub fn iter(&self) -> impl Iterator<Item = (&Track<'static>, &str, &str, &Range)> {
        self.tracks.iter().flat_map(|(track, names)| {
            names.iter().flat_map(move |(name, all)| {
                all.iter()
                    .map(move |(series, range)| (track, name.as_str(), series.as_str(), range))
            })
        })
    }
}

impl Range {
    fn note(&mut self, value: f64, at: Timestamp) {
        self.count += 1;
        self.lowest = self.lowest.min(value);
        let (highest, when) = self.highest;
        if value > highest || (value >= highest && at < when) {
            self.highest = (value, at);
        }
    }
}
