//! What is found out about traces before they are written: what they say, what filters leave of their
//! arrows, and which parts they have.

use std::cell::Cell;
use std::collections::BTreeSet;

use indicatif::ProgressBar;
use warpgauge_formats::finding::Finding;
use warpgauge_formats::trace::{Record, Sink};

use super::arrows::Arrows;
use super::filter::{Filter, Sieve};
use super::merge::{Merge, Rewriting};
use super::ranks::{Rank, Whose};
use super::read::{End, Follow};
use super::source::Source;
use super::split::{Mark, Part, SplitBy, Splitting};
use super::survey::Survey;
use crate::events::convert::ConvertError;

/// Most parts of one trace.
pub const MOST_PARTS: usize = 400;

/// What the writing goes by.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// How several traces become one.
    pub(super) merge: Option<Merge>,
    /// The ranks, where the trace is split by them.
    pub(super) ranks: Vec<Rank>,
    /// The time of the first event.
    pub(super) first: i64,
    /// Nanoseconds between the Unix epoch and the zero of the times.
    pub(super) base: Option<i64>,
    /// The name that the parts of the trace share.
    pub(super) mark: String,
    /// Arrows that lost an end.
    pub(super) arrows: Arrows,
    /// The parts that have any records.
    pub(super) parts: BTreeSet<i64>,
    /// Members of documents that found no place.
    pub(super) left_out: u64,
}

impl Plan {
    /// How often the traces are read for it.
    pub(super) fn readings(filter: &Filter, merge: bool, split: Option<SplitBy>) -> usize {
        let (surveys, looks) = (surveys(filter, merge, split), looks(filter, split));
        usize::from(surveys) + usize::from(looks)
    }

    /// Reads the traces as often as it takes.
    pub(super) fn make(
        source: &mut Source,
        filter: &Filter,
        merge: bool,
        split: Option<SplitBy>,
        bar: &ProgressBar,
    ) -> Result<Self, ConvertError> {
        let mut plan = Self::default();
        if surveys(filter, merge, split) {
            plan.survey(source, merge, split, bar)?;
        }
        if looks(filter, split) {
            let (mut arrows, parts) = plan.look(source, filter, split, bar)?;
            arrows.close();
            if parts.len() > MOST_PARTS {
                return Err(ConvertError::Parts(MOST_PARTS));
            }
            (plan.arrows, plan.parts) = (arrows, parts);
        }
        if split == Some(SplitBy::Rank) {
            plan.parts = (0..plan.ranks.len()).filter_map(|part| part.try_into().ok()).collect();
            if plan.parts.len() > MOST_PARTS {
                return Err(ConvertError::Parts(MOST_PARTS));
            }
        }
        Ok(plan)
    }

    fn survey(
        &mut self,
        source: &mut Source,
        merge: bool,
        split: Option<SplitBy>,
        bar: &ProgressBar,
    ) -> Result<(), ConvertError> {
        let mut surveying = Surveying::default();
        source.read(bar, &Cell::new(false), &mut surveying)?;
        let mut surveys = surveying.surveys;
        self.left_out = surveys.iter().map(|survey| survey.left_out).sum();
        self.mark = mark(&surveys);
        if merge {
            let merge = Merge::plan(&source.names(), &surveys)?;
            self.first = merge.span.map_or(0, |(first, _)| first);
            (self.base, self.ranks) = (merge.base, merge.ranks.clone());
            self.merge = Some(merge);
        }
        if let [survey] = surveys.as_mut_slice() {
            self.first = survey.span.map_or(0, |(first, _)| first);
            self.base = survey.base;
            self.ranks = std::mem::take(&mut survey.ranks);
        }
        if let (true, Some(rank)) = (self.ranks.is_empty(), surveys.first().and_then(|s| s.rank)) {
            let whose = Whose::Rank(rank);
            self.ranks.push(Rank { whose, processes: vec![], document: vec![] });
        }
        if split == Some(SplitBy::Rank) && self.ranks.is_empty() {
            return Err(ConvertError::NoRanks);
        }
        Ok(())
    }

    fn look(
        &self,
        source: &mut Source,
        filter: &Filter,
        split: Option<SplitBy>,
        bar: &ProgressBar,
    ) -> Result<(Arrows, BTreeSet<i64>), ConvertError> {
        let stop = Cell::new(false);
        let mut looking = Looking {
            stages: self.stages(filter, split),
            arrows: Arrows::default(),
            parts: BTreeSet::new(),
            stop: &stop,
        };
        source.read(bar, &stop, &mut looking)?;
        Ok((looking.arrows, looking.parts))
    }

    /// What the records of one reading pass through.
    pub(super) fn stages<'p>(&'p self, filter: &'p Filter, split: Option<SplitBy>) -> Stages<'p> {
        Stages {
            merge: self.merge.as_ref().map(Rewriting::new),
            sieve: (!filter.is_empty()).then(|| Sieve::new(filter, self.first, self.base)),
            split: split.map(|split| match split {
                SplitBy::Rank => Splitting::by_rank(&self.ranks),
                SplitBy::Time(length) => Splitting::by_time(self.first, length),
            }),
        }
    }
}

/// Whether it must be known what the traces say of themselves and how far their times reach.
fn surveys(filter: &Filter, merge: bool, split: Option<SplitBy>) -> bool {
    merge || split.is_some() || filter.needs_times()
}

/// Whether it must be known which arrows lose an end, or which stretches of time have any events.
fn looks(filter: &Filter, split: Option<SplitBy>) -> bool {
    !filter.is_empty() || matches!(split, Some(SplitBy::Time(_)))
}

/// A name that the parts of a trace share and other traces have not: FNV-1a over what is known of it.
fn mark(surveys: &[Survey]) -> String {
    let known = surveys.iter().map(|survey| {
        let Survey { base, rank, span, ids, records, document, .. } = survey;
        format!("{base:?} {rank:?} {span:?} {ids:?} {records} {document:?}")
    });
    let known: String = known.collect();
    let hash = known.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Mark::name(hash)
}

/// What records pass through on their way from a reader to a writer.
#[derive(Debug)]
pub(super) struct Stages<'p> {
    merge: Option<Rewriting<'p>>,
    pub(super) sieve: Option<Sieve<'p>>,
    split: Option<Splitting>,
}

/// What became of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lot {
    /// Whether the filter wants it.
    pub(super) is_wanted: bool,
    /// The part to which it belongs.
    pub(super) part: Part,
}

impl Stages<'_> {
    /// The records of that trace follow.
    pub(super) fn trace_begins(&mut self, trace: usize) {
        if let Some(merge) = &mut self.merge {
            merge.file_begins(trace);
        }
    }

    /// Hands the record on as it will stand, with what becomes of it.
    pub(super) fn pass(&mut self, record: &Record<'_>, next: &mut dyn FnMut(&Record<'_>, Lot)) {
        match &mut self.merge {
            None => self.decide(record, next),
            Some(merge) => {
                if let Some(record) = merge.rewrite(record) {
                    self.decide(&record, next);
                }
            }
        }
    }

    /// The same for a record that the merging has made.
    pub(super) fn decide(&mut self, record: &Record<'_>, next: &mut dyn FnMut(&Record<'_>, Lot)) {
        let part = self.split.as_mut().map_or(Part::All, |split| split.part(record));
        let is_wanted = self.sieve.as_mut().is_none_or(|sieve| sieve.wants(record));
        next(record, Lot { is_wanted, part });
    }
}

#[derive(Debug, Default)]
struct Surveying {
    surveys: Vec<Survey>,
}

impl Follow for Surveying {
    fn trace_begins(&mut self, _: usize, _: &str) {
        self.surveys.push(Survey::default());
    }

    fn trace_ends(&mut self, _: usize, _: End) {}
}

impl Sink for Surveying {
    fn record(&mut self, line: u64, record: &Record<'_>) {
        if let Some(survey) = self.surveys.last_mut() {
            survey.record(line, record);
        }
    }

    // Both are heard when the trace is written.
    fn finding(&mut self, _: Finding) {}
    fn unknown(&mut self, _: u64, _: &str) {}
}

/// Looks which arrows lose an end, and which parts there are.
struct Looking<'p> {
    stages: Stages<'p>,
    arrows: Arrows,
    parts: BTreeSet<i64>,
    stop: &'p Cell<bool>,
}

impl Follow for Looking<'_> {
    fn trace_begins(&mut self, trace: usize, _: &str) {
        self.stages.trace_begins(trace);
    }

    fn trace_ends(&mut self, _: usize, _: End) {}
}

impl Sink for Looking<'_> {
    fn record(&mut self, _: u64, record: &Record<'_>) {
        let Self { stages, arrows, parts, stop } = self;
        stages.pass(record, &mut |record, lot| match lot {
            Lot { is_wanted: false, .. } => arrows.note(record),
            Lot { part: Part::One(part), .. } => {
                parts.insert(part);
                if parts.len() > MOST_PARTS {
                    stop.set(true);
                }
            }
            Lot { part: Part::All, .. } => {}
        });
    }

    // Both are heard when the trace is written.
    fn finding(&mut self, _: Finding) {}
    fn unknown(&mut self, _: u64, _: &str) {}
}
