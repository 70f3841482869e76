//! The way of records into files.

use std::cell::Cell;

use warpgauge_formats::finding::Finding;
use warpgauge_formats::trace::{Record, Sink};

use crate::events::convert::{ConvertError, Notes, Report, Sheets, Whole};
use crate::traces::arrows::Arrows;
use crate::traces::plan::{Lot, Plan, Stages};
use crate::traces::ranks;
use crate::traces::read::{End, Follow};
use crate::traces::split::{Mark, Part, SplitBy};
use crate::traces::target::Target;

/// Bytes that are gathered before they are written.
const CHUNK: usize = 256 << 10;

/// Lines by which the traces' lines are told apart.
const LINES: u32 = 40;

/// A file that is being written.
pub(super) struct Sheet {
    /// The part that it holds; none where it holds all.
    pub(super) part: Option<i64>,
    pub(super) target: Target,
    pub(super) out: Vec<u8>,
}

/// Writes what a reading says.
pub(super) struct Writing<'w> {
    stages: Stages<'w>,
    arrows: &'w Arrows,
    pages: Pages<'w>,
    notes: Notes,
    lines_before: u64,
    ends: Vec<(String, End)>,
    name: String,
    /// Members of the document that the parts say in other words.
    replaced: &'static [&'static str],
    broken: u64,
}

/// The files, and what is gathered for them.
struct Pages<'w> {
    sheets: Vec<Sheet>,
    files: Sheets,
    fault: Option<ConvertError>,
    failed: &'w Cell<bool>,
    records: u64,
}

/// What was written.
pub(super) struct Written {
    pages: Whole,
    notes: Notes,
    ends: Vec<(String, End)>,
    losses: Vec<(String, u64)>,
    left_out: Vec<(String, u64)>,
    records: u64,
}

impl<'w> Writing<'w> {
    pub(super) fn new(
        stages: Stages<'w>,
        arrows: &'w Arrows,
        sheets: Vec<Sheet>,
        files: Sheets,
        failed: &'w Cell<bool>,
    ) -> Self {
        Self {
            stages,
            arrows,
            pages: Pages { sheets, files, fault: None, failed, records: 0 },
            notes: Notes::default(),
            lines_before: 0,
            ends: vec![],
            name: String::new(),
            replaced: &[],
            broken: 0,
        }
    }

    /// Writes what stands before all records.
    pub(super) fn front(&mut self, plan: &Plan, split: Option<SplitBy>) {
        let member = |key: &'static str, json: String| Record::Document {
            key: key.into(),
            json: json.into(),
        };
        match split {
            None => {}
            Some(SplitBy::Time(_)) => {
                self.replaced = &[Mark::MEMBER];
                let mark = |part| Mark { trace: plan.mark.clone(), part };
                for part in &plan.parts {
                    let record = member(Mark::MEMBER, mark(*part).write());
                    self.pages.write(&record, Part::One(*part));
                }
            }
            Some(SplitBy::Rank) => {
                self.replaced = &[ranks::MEMBER];
                for (part, rank) in (0..).zip(&plan.ranks) {
                    for (key, json) in &rank.document {
                        let (key, json) = (key.as_str().into(), json.as_str().into());
                        self.pages.write(&Record::Document { key, json }, Part::One(part));
                    }
                }
            }
        }
        let Some(merge) = &plan.merge else { return };
        for record in &merge.front {
            self.decide(record);
        }
    }

    fn decide(&mut self, record: &Record<'_>) {
        let Self { stages, pages, replaced, .. } = self;
        if !is_replaced(record, replaced) {
            stages.decide(record, &mut |record, lot| pages.write(record, lot.part));
        }
    }

    /// Writes what waits.
    pub(super) fn finish(mut self) -> Result<Written, ConvertError> {
        self.pages.finish();
        let Pages { sheets, files, fault, records, .. } = self.pages;
        fault.map_or(Ok(()), Err)?;
        let counted = |losses: &warpgauge_formats::loss::Losses| -> Vec<_> {
            losses.iter().map(|(name, count)| (name.to_owned(), count)).collect()
        };
        let losses = sheets.iter().flat_map(|sheet| counted(sheet.target.losses()));
        let mut left_out = self.stages.sieve.as_ref().map(|sieve| counted(sieve.left_out()));
        if self.broken > 0 {
            let what = "end of an arrow whose other end was left out";
            left_out.get_or_insert_default().push((what.to_owned(), self.broken));
        }
        Ok(Written {
            losses: losses.collect(),
            pages: files.finish()?,
            notes: self.notes,
            ends: self.ends,
            left_out: left_out.unwrap_or_default(),
            records,
        })
    }
}

fn is_replaced(record: &Record<'_>, members: &[&str]) -> bool {
    matches!(record, Record::Document { key, .. } if members.contains(&&**key))
}

impl Pages<'_> {
    fn write(&mut self, record: &Record<'_>, part: Part) {
        let mut is_written = false;
        for (place, sheet) in self.sheets.iter_mut().enumerate() {
            let belongs = match (part, sheet.part) {
                (Part::One(part), Some(own)) => part == own,
                _ => true,
            };
            if !belongs {
                continue;
            }
            is_written = true;
            sheet.target.write(record, &mut sheet.out);
            if sheet.out.len() >= CHUNK {
                flush(&mut self.files, place, &mut sheet.out, &mut self.fault);
                self.failed.set(self.fault.is_some());
            }
        }
        let says_what_happened =
            !matches!(record, Record::Document { .. } | Record::BaseTime(_) | Record::Label(_));
        self.records += u64::from(is_written && says_what_happened);
    }

    fn finish(&mut self) {
        for (place, sheet) in self.sheets.iter_mut().enumerate() {
            sheet.target.finish(&mut sheet.out);
            flush(&mut self.files, place, &mut sheet.out, &mut self.fault);
        }
    }
}

fn flush(files: &mut Sheets, place: usize, out: &mut Vec<u8>, fault: &mut Option<ConvertError>) {
    if fault.is_none() {
        *fault = files.write_to(place, out).err();
    }
    out.clear();
}

impl Written {
    /// Adds it to what was written before. What was read is told once, of the `first` reading.
    pub(super) fn into(self, report: &mut Report, whole: &mut Whole, first: bool, is_log: bool) {
        whole.append(self.pages);
        report.events += self.records;
        add(&mut report.losses, self.losses);
        if !first {
            return;
        }
        if is_log {
            // A trace hands on what it cannot read as it stands; a log cannot.
            add(&mut report.losses, self.notes.losses().collect());
        }
        report.notes = self.notes;
        report.left_out = self.left_out;
        for (name, end) in self.ends {
            add(&mut report.losses, end.losses);
            if let Some(fault) = end.fault {
                report.remarks.push(format!("{name}:{fault}"));
                let what = "the rest of a trace that cannot be read on";
                add(&mut report.losses, vec![(what.to_owned(), 1)]);
            }
            if end.mended > 0 {
                let s = if end.mended == 1 { "" } else { "s" };
                report.remarks.push(format!("{name}: {} quote{s} mended", end.mended));
            }
        }
    }
}

fn add(counts: &mut Vec<(String, u64)>, more: Vec<(String, u64)>) {
    for (name, count) in more {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += count,
            None => counts.push((name, count)),
        }
    }
}

impl Follow for Writing<'_> {
    fn trace_begins(&mut self, trace: usize, name: &str) {
        self.stages.trace_begins(trace);
        self.lines_before = (trace as u64) << LINES;
        self.notes.places.file_begins(name, self.lines_before);
        name.clone_into(&mut self.name);
    }

    fn trace_ends(&mut self, _: usize, end: End) {
        self.ends.push((self.name.clone(), end));
    }

    fn log_file_begins(&mut self, name: &str, lines_before: u64) {
        self.notes.places.file_begins(name, lines_before);
    }
}

impl Sink for Writing<'_> {
    fn record(&mut self, _: u64, record: &Record<'_>) {
        let Self { stages, arrows, pages, replaced, broken, .. } = self;
        if !replaced.is_empty() && is_replaced(record, replaced) {
            return;
        }
        stages.pass(record, &mut |record, Lot { is_wanted, part }| match record {
            _ if !is_wanted => {}
            Record::Flow(_) if arrows.holds(record) => *broken += 1,
            Record::Event(event) if event.flow.is_some() && arrows.holds(record) => {
                *broken += 1;
                let mut event = event.clone();
                event.flow = None;
                pages.write(&Record::Event(event), part);
            }
            _ => pages.write(record, part),
        });
    }

    fn finding(&mut self, mut finding: Finding) {
        finding.line += self.lines_before;
        self.notes.finding(&finding);
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.notes.unknown.note(line + self.lines_before, name);
    }
}
