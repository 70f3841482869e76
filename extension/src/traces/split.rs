//! One trace into several: by rank, or by time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use warpgauge_formats::json::Reader;
use warpgauge_formats::json::write::Object;
use warpgauge_formats::trace::{Id, Record, Track};

use super::fasten::Fastened;
use super::filter::Length;
use super::ranks::{Rank, by_process};

/// By what a trace is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitBy {
    /// A file for each rank of a merged trace.
    Rank,
    /// A file for each stretch of that length, counted from the first event.
    Time(Length),
}

impl FromStr for SplitBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("time=")) {
            ("rank", _) => Ok(Self::Rank),
            (_, Some(length)) => match length.parse().map_err(|fault| format!("{fault}"))? {
                Length(0) => Err("a part must have a length".to_owned()),
                length => Ok(Self::Time(length)),
            },
            _ => Err(format!("expected rank or time=LENGTH (time=100ms), found {text:?}")),
        }
    }
}

/// Says of which trace a file is a part, so that the parts find together again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub(super) trace: String,
    pub(super) part: i64,
}

impl Mark {
    /// The key of the document's member.
    pub(super) const MEMBER: &str = "warpgauge_part";

    /// A trace's name of its hash.
    pub(super) fn name(hash: u64) -> String {
        format!("{hash:016x}")
    }

    /// The member's value.
    pub(super) fn write(&self) -> String {
        let mut out = vec![];
        let mut object = Object::open(&mut out);
        object.text("trace", &self.trace).integer("part", self.part);
        object.close();
        String::from_utf8(out).unwrap_or_default()
    }

    /// The mark of a member's value; none where it is another.
    pub(super) fn read(json: &str) -> Option<Self> {
        let mut reader = Reader::new(json);
        let (mut trace, mut part) = (None, None);
        reader.enter_object().ok()?;
        while let Some(key) = reader.next_key().ok()? {
            match key.as_ref() {
                "trace" => trace = Some(reader.text().ok()?.into_owned()),
                "part" => part = reader.number().ok()?.whole(),
                _ => drop(reader.skip().ok()?),
            }
        }
        Some(Self { trace: trace?, part: part? })
    }
}

/// Into which part a record goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Into all of them.
    All,
    /// Into the one of that number.
    One(i64),
}

/// Tells the parts of a trace's records.
#[derive(Debug)]
pub(super) enum Splitting {
    /// By the place of their rank.
    Rank { ranks: HashMap<Id<'static>, usize> },
    /// By the stretch in which they begin, counted from 1. An arrow's end goes with its slice, and a
    /// range's end with its beginning.
    Time { first: i64, length: Length, slices: Box<Fastened<i64>>, last: i64 },
}

impl Splitting {
    /// By rank. Processes of no rank go to the first.
    pub(super) fn by_rank(ranks: &[Rank]) -> Self {
        Self::Rank { ranks: by_process(ranks) }
    }

    /// By time.
    pub(super) fn by_time(first: i64, length: Length) -> Self {
        Self::Time { first, length, slices: Box::default(), last: 1 }
    }

    /// The part of a record. Asked once for each record, in their order.
    pub(super) fn part(&mut self, record: &Record<'_>) -> Part {
        match self {
            Self::Rank { ranks } => match track(record) {
                Some(track) => {
                    let ranks: &HashMap<Id<'_>, usize> = ranks;
                    let place = ranks.get(&track.process).copied().unwrap_or_default();
                    Part::One(i64::try_from(place).unwrap_or_default())
                }
                None if matches!(record, Record::Other(_)) => Part::One(0),
                None => Part::All,
            },
            Self::Time { first, length, slices, last } => {
                let at = |time: i64| {
                    let since = i128::from(time) - i128::from(*first);
                    let part = since.div_euclid(i128::from(length.0)) + 1;
                    i64::try_from(part).unwrap_or_default()
                };
                *last = match record {
                    Record::Event(event) => slices.event(event, at(event.timestamp.0)),
                    Record::Flow(point) => {
                        let of_slice = slices.arrow(&point.track, point.timestamp.0);
                        of_slice.unwrap_or_else(|| at(point.timestamp.0))
                    }
                    Record::Memory(event) => at(event.timestamp.0),
                    Record::Counter(event) => at(event.timestamp.0),
                    Record::Other(_) => *last,
                    Record::Label(_) | Record::BaseTime(_) | Record::Document { .. } => {
                        return Part::All;
                    }
                };
                Part::One(*last)
            }
        }
    }
}

/// Where a record is drawn.
fn track<'r, 't>(record: &'r Record<'t>) -> Option<&'r Track<'t>> {
    match record {
        Record::Event(event) => Some(&event.track),
        Record::Flow(point) => Some(&point.track),
        Record::Memory(event) => Some(&event.track),
        Record::Counter(event) => Some(&event.track),
        Record::Label(label) => Some(&label.track),
        Record::BaseTime(_) | Record::Document { .. } | Record::Other(_) => None,
    }
}

/// The name of a part's file: the part's own name before the endings that tell form and packing.
pub(super) fn part_path(out: &Path, part: &str) -> PathBuf {
    let name = out.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let mut stem = name.as_ref();
    for ending in [".gz", ".zst", ".json", ".pftrace", ".perfetto-trace", ".perfetto", ".pb"] {
        stem = stem.strip_suffix(ending).filter(|stem| !stem.is_empty()).unwrap_or(stem);
    }
    let endings = name.get(stem.len()..).unwrap_or_default();
    out.with_file_name(format!("{stem}.{part}{endings}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_stands_before_the_endings() {
        for (out, path) in [
            ("a/trace.json.gz", "a/trace.0002.json.gz"),
            ("trace.pftrace.zst", "trace.0002.pftrace.zst"),
            ("trace", "trace.0002"),
            ("v1.2", "v1.2.0002"),
            (".json", ".json.0002"),
        ] {
            assert_eq!(part_path(Path::new(out), "0002"), Path::new(path));
        }
    }

    #[test]
    fn a_mark_comes_back_as_it_was_written() {
        let mark = Mark { trace: "00ff".to_owned(), part: 3 };
        assert_eq!(Mark::read(&mark.write()), Some(mark));
        assert_eq!(Mark::read("{\"part\":3}"), None);
    }

    #[test]
    fn what_to_split_by_is_rank_or_a_length_of_time() {
        assert_eq!("rank".parse(), Ok(SplitBy::Rank));
        assert_eq!("time=2us".parse(), Ok(SplitBy::Time(Length(2_000))));
        for text in ["time=0s", "time=", "2us", "time=5"] {
            assert!(text.parse::<SplitBy>().is_err(), "{text}");
        }
    }
}
