//! Several traces into one: on one clock, their processes and ids apart.
//!
//! ```text
//! rank 0   base 1000   0..50        ──>  base 1000   0..50
//! rank 1   base 1030   0..50        ──>              30..80     moved by 1030 - 1000
//! ```
//!
//! Files of one rank have one set of processes. Between ranks, a process id that is taken already
//! becomes one that nobody has. The ids of a file's correlations, activities and arrows are moved
//! together where their range overlaps that of another file, so that a kernel and its arrow stay
//! joined; the parts of a trace that was split by time share their ids.

mod rewrite;

use std::collections::{BTreeMap, HashMap, HashSet};

use warpgauge_formats::trace::{Id, Label, Labelled, Record, Track};

pub(super) use self::rewrite::Rewriting;
use super::ranks::{self, Rank, Whose};
use super::survey::Survey;
use crate::events::convert::ConvertError;

/// Linux gives no process a number from here on (`PID_MAX_LIMIT`, 2^22).
const NO_PID: i64 = 1 << 22;

/// Why traces cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeFault {
    /// Its times cannot be put beside the others'.
    #[error(
        "{0} has no base time, and others have: nothing tells where its times lie among theirs"
    )]
    NoBase(String),
    /// A moved time or id would not fit.
    #[error("{0}: its {1} do not fit 64 bits beside those of the others")]
    Range(String, &'static str),
    /// It has too many processes.
    #[error("{0} has more than 65,536 processes, or names of 16 MiB for them")]
    Processes(String),
    /// It is a merged trace.
    #[error("{0} is a merged trace: split it by rank, and merge its ranks with the others")]
    Merged(String),
}

/// How the records of each file change.
#[derive(Debug)]
pub(super) struct Merge {
    /// What stands before all records.
    pub(super) front: Vec<Record<'static>>,
    /// The ranks, where there are several.
    pub(super) ranks: Vec<Rank>,
    /// Nanoseconds between the Unix epoch and the zero of the merged times.
    pub(super) base: Option<i64>,
    /// The first and last time.
    pub(super) span: Option<(i64, i64)>,
    files: Vec<FilePlan>,
    groups: Vec<Group>,
}

/// How the records of one file change.
#[derive(Debug, Clone, Copy)]
struct FilePlan {
    group: usize,
    /// Added to each time.
    shift: i64,
    /// Added to each id.
    ids: i64,
}

/// Files that belong together.
#[derive(Debug, Default)]
struct Group {
    /// What its processes are called by, where there are several groups.
    whose: Option<Whose>,
    /// The processes whose ids change.
    processes: HashMap<Id<'static>, Id<'static>>,
    /// In which order its processes are drawn, by the ids that they had.
    order: HashMap<Id<'static>, i64>,
}

impl Merge {
    /// How to merge traces of which that is known.
    pub(super) fn plan(names: &[String], surveys: &[Survey]) -> Result<Self, MergeFault> {
        let name = |file: usize| names.get(file).cloned().unwrap_or_default();
        let members = members(surveys);
        let is_one = members.len() == 1;
        let base = surveys.iter().filter_map(|survey| survey.base).min();
        let mut files = vec![FilePlan { group: 0, shift: 0, ids: 0 }; surveys.len()];
        let mut span = None;
        for (file, (survey, plan)) in surveys.iter().zip(&mut files).enumerate() {
            plan.shift = match (survey.base, base) {
                (Some(own), Some(base)) => own.checked_sub(base),
                (None, Some(_)) => return Err(MergeFault::NoBase(name(file))),
                (_, None) => Some(0),
            }
            .ok_or_else(|| MergeFault::Range(name(file), "times"))?;
            if survey.has_too_many {
                return Err(MergeFault::Processes(name(file)));
            }
            if !is_one && !survey.ranks.is_empty() {
                return Err(MergeFault::Merged(name(file)));
            }
            let Some((first, last)) = survey.span else { continue };
            let moved = first.checked_add(plan.shift).zip(last.checked_add(plan.shift));
            let (first, last) = moved.ok_or_else(|| MergeFault::Range(name(file), "times"))?;
            let (before, behind) = span.unwrap_or((first, last));
            span = Some((first.min(before), last.max(behind)));
        }
        let mut groups = vec![];
        for (group, (whose, of_group)) in members.iter().enumerate() {
            groups.push(Group { whose: (!is_one).then_some(*whose), ..Group::default() });
            for file in of_group {
                if let Some(plan) = files.get_mut(*file) {
                    plan.group = group;
                }
            }
        }
        let mut merge = Self { front: vec![], ranks: vec![], base, span, files, groups };
        merge
            .keep_ids_apart(&members, surveys)
            .map_err(|file| MergeFault::Range(name(file), "ids of correlations and arrows"))?;
        if !is_one {
            merge.keep_processes_apart(&members, surveys);
        }
        merge.write_front(&members, surveys);
        Ok(merge)
    }

    /// Moves the ids of each trace behind those of the traces before it, where they overlap. Gives
    /// the file whose ids would not fit.
    fn keep_ids_apart(&mut self, members: &Members, surveys: &[Survey]) -> Result<(), usize> {
        let mut taken: Vec<(i64, i64)> = vec![];
        for files in traces(members, surveys) {
            let ids = files.iter().filter_map(|file| surveys.get(*file)?.ids);
            let Some((low, high)) = ids.reduce(|(a, b), (c, d)| (a.min(c), b.max(d))) else {
                continue;
            };
            let mut moved = 0;
            if taken.iter().any(|(from, to)| low <= *to && *from <= high) {
                let file = files.first().copied().unwrap_or_default();
                let behind = taken.iter().map(|(_, to)| *to).max().unwrap_or_default();
                let free = behind.checked_add(1).ok_or(file)?;
                moved = free.checked_sub(low).ok_or(file)?;
                high.checked_add(moved).ok_or(file)?;
            }
            taken.push((low + moved, high + moved));
            for file in files {
                if let Some(plan) = self.files.get_mut(file) {
                    plan.ids = moved;
                }
            }
        }
        Ok(())
    }

    fn keep_processes_apart(&mut self, members: &Members, surveys: &[Survey]) {
        let all = surveys.iter().flat_map(|survey| survey.processes.keys());
        let used: HashSet<i64> = all.filter_map(Id::number).collect();
        let mut free = (NO_PID..).filter(|number| !used.contains(number));
        let (mut taken, mut place) = (HashSet::new(), 0);
        for (group, (whose, files)) in self.groups.iter_mut().zip(members) {
            let mut processes = BTreeMap::new();
            for survey in files.iter().filter_map(|file| surveys.get(*file)) {
                for (id, process) in &survey.processes {
                    let said = processes.entry(id.clone()).or_insert(*process);
                    said.is_named |= process.is_named;
                    said.sort_index = said.sort_index.or(process.sort_index);
                }
            }
            let mut rank = Rank { whose: *whose, processes: vec![], document: vec![] };
            let mut by_order: Vec<_> = processes.iter().collect();
            by_order.sort_by_key(|(_, process)| process.sort_index.unwrap_or(i64::MAX));
            for (id, process) in by_order {
                let new = match id {
                    // A record of no process belongs to the trace.
                    Id::None => continue,
                    id if taken.insert(id.clone()) => id.clone(),
                    Id::Number(_) => Id::Number(free.next().unwrap_or(NO_PID)),
                    Id::Text(text) => {
                        let mut apart = format!("{text} ({whose})").trim_start().to_owned();
                        while !taken.insert(Id::Text(apart.clone().into())) {
                            apart.push('\'');
                        }
                        Id::Text(apart.into())
                    }
                };
                if new != *id {
                    group.processes.insert(id.clone(), new.clone());
                }
                group.order.insert(id.clone(), place);
                let label = |says| {
                    let track = Track { process: new.clone(), row: Id::None };
                    Record::Label(Label { timestamp: None, track, says })
                };
                if !process.is_named {
                    self.front.push(label(Labelled::ProcessName(whose.to_string().into())));
                }
                if process.sort_index.is_none() {
                    self.front.push(label(Labelled::ProcessSortIndex(place)));
                }
                place += 1;
                rank.processes.push(new);
            }
            self.ranks.push(rank);
        }
    }

    /// What is said of the whole: once where all say the same, else by rank.
    fn write_front(&mut self, members: &Members, surveys: &[Survey]) {
        let mut shared = Said::default();
        let all_say = |key: &str, json: &str| {
            let says = |(name, said): &(String, String)| name == key && said == json;
            members.len() == 1 || surveys.iter().all(|survey| survey.document.iter().any(says))
        };
        for (group, files) in members.values().enumerate() {
            let mut own = Said::default();
            let documents = files.iter().filter_map(|file| surveys.get(*file));
            for (key, json) in documents.flat_map(|survey| &survey.document) {
                let said = if all_say(key, json) { &mut shared } else { &mut own };
                said.add(key, json);
            }
            if let Some(rank) = self.ranks.get_mut(group) {
                rank.document = own.members;
            }
        }
        if let Some(merged) = surveys.iter().find(|survey| !survey.ranks.is_empty()) {
            self.ranks.clone_from(&merged.ranks);
        }
        if !self.ranks.is_empty() {
            shared.members.push((ranks::MEMBER.to_owned(), ranks::write(&self.ranks)));
        }
        let document = shared.members.into_iter();
        let document =
            document.map(|(key, json)| Record::Document { key: key.into(), json: json.into() });
        let base = self.base.map(Record::BaseTime);
        self.front = document.chain(base).chain(std::mem::take(&mut self.front)).collect();
    }
}

/// Members of a document, each once. What is said otherwise the second time gets a key of its own:
/// `traceName (2)`.
#[derive(Debug, Default)]
struct Said {
    members: Vec<(String, String)>,
}

impl Said {
    fn add(&mut self, key: &str, json: &str) {
        let mut number = 1_u64;
        let mut numbered = key.to_owned();
        while let Some((_, said)) = self.members.iter().find(|(known, _)| *known == numbered) {
            if said == json {
                return;
            }
            number += 1;
            numbered = format!("{key} ({number})");
        }
        self.members.push((numbered, json.to_owned()));
    }
}

/// The files of each rank, in the order of the ranks.
type Members = BTreeMap<Whose, Vec<usize>>;

/// The files of each trace, in the order of the ranks: one, unless it was split by time.
fn traces(members: &Members, surveys: &[Survey]) -> Vec<Vec<usize>> {
    let mut traces: Vec<Vec<usize>> = vec![];
    let mut of_marks: HashMap<&str, usize> = HashMap::new();
    for file in members.values().flatten() {
        let mark = surveys.get(*file).and_then(|survey| survey.mark.as_ref());
        let place = mark.map(|mark| *of_marks.entry(&mark.trace).or_insert(traces.len()));
        match place.and_then(|place| traces.get_mut(place)) {
            Some(trace) => trace.push(*file),
            None => traces.push(vec![*file]),
        }
    }
    traces
}

fn members(surveys: &[Survey]) -> Members {
    let mut members = Members::new();
    let mut of_marks: HashMap<&str, Whose> = HashMap::new();
    for (file, survey) in surveys.iter().enumerate() {
        let alone = Whose::Trace(i64::try_from(file + 1).unwrap_or(i64::MAX));
        let own = survey.rank.map_or(alone, Whose::Rank);
        let whose = match &survey.mark {
            Some(mark) => *of_marks.entry(&mark.trace).or_insert(own),
            None => own,
        };
        members.entry(whose).or_default().push(file);
    }
    members
}

impl From<MergeFault> for ConvertError {
    fn from(fault: MergeFault) -> Self {
        Self::Merge(fault.to_string())
    }
}
