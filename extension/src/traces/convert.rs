//! From one form of traces to another, and nothing lost without a word.

mod writing;

use std::cell::Cell;
use std::io::{self, Write};
use std::path::PathBuf;

use indicatif::ProgressBar;

use self::writing::{Sheet, Writing};
use super::filter::Filter;
use super::plan::Plan;
use super::source::Source;
use super::split::{SplitBy, part_path};
use super::target::Target;
use crate::events::convert::{ConvertError, Report, Sheets, Whole};
use crate::events::format::Format;

/// Parts that are written at once; the trace is read again for the next ones.
const AT_ONCE: usize = 32;

/// What to convert and into what.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// Traces, or an event log; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// Their format; without one the content tells.
    pub from: Option<Format>,
    /// The format to write.
    pub to: Format,
    /// Where to; `None` is standard output.
    pub out: Option<PathBuf>,
    /// Whether what the format cannot hold may be left out.
    pub lossy: bool,
    /// Whether what stands at `out` may be replaced.
    pub force: bool,
    /// Whether quotes that were written as `/"` are mended.
    pub repair: bool,
    /// What is wanted.
    pub filter: Filter,
    /// Whether several traces become one.
    pub merge: bool,
    /// Whether one becomes several; `out` then is what their names are made of.
    pub split: Option<SplitBy>,
}

impl Conversion {
    /// Converts; what goes to standard output goes to `stdout`, as a whole at the end.
    ///
    /// A trace is read once. It is read once more for each of these: to merge, to split, or to count
    /// times from its beginning; to find arrows that lost an end, or stretches without events; and for
    /// each 32 parts behind the first. Standard input is copied to a file without a name then.
    ///
    /// # Errors
    /// Where an input cannot be opened or an output not be written. What is wrong within a trace stands
    /// in the report.
    pub fn run(&self, bar: &ProgressBar, stdout: &mut dyn Write) -> Result<Report, ConvertError> {
        if !self.to.is_trace() {
            return Err(ConvertError::NoTrace(self.to));
        }
        let again = self.merge || self.split.is_some() || !self.filter.is_empty();
        let mut source = Source::open(&self.files, self.from, self.repair, again, bar)?;
        if self.merge && source.is_log() {
            return Err(ConvertError::OneLog);
        }
        if !self.merge && source.names().len() > 1 {
            return Err(ConvertError::Several);
        }
        let once = bar.length();
        let readings = |count: usize| {
            if let Some(once) = once {
                bar.set_length(once.saturating_mul(count as u64));
            }
        };
        let before = Plan::readings(&self.filter, self.merge, self.split);
        readings(before + 1);
        let plan = Plan::make(&mut source, &self.filter, self.merge, self.split, bar)?;
        let parts = self.parts(&plan)?;
        readings(before + parts.len().div_ceil(AT_ONCE));
        let (mut report, mut whole) = (Report::default(), Whole::default());
        for (batch, parts) in parts.chunks(AT_ONCE).enumerate() {
            let failed = Cell::new(false);
            let paths: Vec<_> = parts.iter().filter_map(|part| part.path.clone()).collect();
            let files = match paths.is_empty() {
                true => Sheets::one(None)?,
                false => Sheets::at(&paths)?,
            };
            let sheets = parts.iter().map(|part| Sheet {
                part: part.number,
                target: Target::new(self.to, parts.len()),
                out: vec![],
            });
            let mut writing = Writing::new(
                plan.stages(&self.filter, self.split),
                &plan.arrows,
                sheets.collect(),
                files,
                &failed,
            );
            writing.front(&plan, self.split);
            source.read(bar, &failed, &mut writing)?;
            let of_batch = writing.finish()?;
            of_batch.into(&mut report, &mut whole, batch == 0, source.is_log());
        }
        if plan.left_out > 0 {
            let what = "what a trace says of itself beyond 1 MiB";
            report.losses.push((what.to_owned(), plan.left_out));
        }
        if plan.arrows.beyond() > 0 {
            let beyond = plan.arrows.beyond();
            report.remarks.push(format!("{beyond} arrows may have lost one of their ends: there are more than 4,194,304 that did"));
        }
        if report.losses.is_empty() || self.lossy {
            report.written = whole.place(self.force, stdout)?;
            report.is_placed = true;
        }
        Ok(report)
    }

    /// The files that will be written.
    fn parts(&self, plan: &Plan) -> Result<Vec<PartFile>, ConvertError> {
        let (Some(split), Some(out)) = (self.split, &self.out) else {
            return Ok(vec![PartFile { number: None, path: self.out.clone() }]);
        };
        let mut files: Vec<PartFile> = vec![];
        for number in &plan.parts {
            let name = match split {
                SplitBy::Time(_) => format!("{number:04}"),
                SplitBy::Rank => {
                    let place = usize::try_from(*number).unwrap_or_default();
                    let rank = plan.ranks.get(place);
                    rank.map(|rank| rank.whose.in_file_name()).unwrap_or_default()
                }
            };
            let path = part_path(out, &name);
            if !self.force && path.symlink_metadata().is_ok() {
                let words = "is there already; --force replaces it";
                let error = io::Error::new(io::ErrorKind::AlreadyExists, words);
                return Err(ConvertError::Output { path, error });
            }
            files.push(PartFile { number: Some(*number), path: Some(path) });
        }
        Ok(files)
    }
}

/// A file that will be written.
#[derive(Debug)]
struct PartFile {
    /// The part; none where there is but one.
    number: Option<i64>,
    /// Where to; none for standard output.
    path: Option<PathBuf>,
}
