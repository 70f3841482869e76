//! Records as they stand in the merged trace.

use std::collections::HashSet;

use warpgauge_formats::time::Timestamp;
use warpgauge_formats::trace::{Flow, Id, Label, Labelled, Record, Track};

use super::{FilePlan, Group, Merge};

/// Bytes of labels that are remembered, so that parts of one trace do not say them again.
const MOST_BYTES: usize = 16 << 20;

/// Rewrites the records of one file after the other.
#[derive(Debug)]
pub(in crate::traces) struct Rewriting<'m> {
    merge: &'m Merge,
    file: usize,
    said: HashSet<String>,
    bytes: usize,
}

impl<'m> Rewriting<'m> {
    pub(in crate::traces) fn new(merge: &'m Merge) -> Self {
        Self { merge, file: 0, said: HashSet::new(), bytes: 0 }
    }

    /// The records of that file follow.
    pub(in crate::traces) fn file_begins(&mut self, file: usize) {
        self.file = file;
    }

    /// A record as it stands in the merged trace; none where the front says it or it was said.
    pub(in crate::traces) fn rewrite<'a>(&mut self, record: &Record<'a>) -> Option<Record<'a>> {
        let merge = self.merge;
        let FilePlan { group, shift, ids } = *merge.files.get(self.file)?;
        let group = merge.groups.get(group)?;
        let moved = |time: Timestamp| Timestamp(time.0.saturating_add(shift));
        let id = |id: Option<i64>| id.map(|id| id.saturating_add(ids));
        let flow = |flow: Flow| Flow { id: flow.id.saturating_add(ids), ..flow };
        let mut record = record.clone();
        match &mut record {
            Record::Event(event) => {
                event.timestamp = moved(event.timestamp);
                event.correlation = id(event.correlation);
                event.linked = id(event.linked);
                event.flow = event.flow.map(flow);
                rename(group, &mut event.track);
            }
            Record::Flow(point) => {
                point.timestamp = moved(point.timestamp);
                point.flow = flow(point.flow);
                rename(group, &mut point.track);
            }
            Record::Memory(event) => {
                event.timestamp = moved(event.timestamp);
                rename(group, &mut event.track);
            }
            Record::Counter(event) => {
                event.timestamp = moved(event.timestamp);
                rename(group, &mut event.track);
            }
            Record::Label(label) => {
                label.timestamp = label.timestamp.map(moved);
                relabel(group, label);
                rename(group, &mut label.track);
                if !self.is_new(label) {
                    return None;
                }
            }
            Record::BaseTime(_) | Record::Document { .. } => return None,
            Record::Other(_) => {}
        }
        Some(record)
    }

    fn is_new(&mut self, label: &Label<'_>) -> bool {
        let words = format!("{:?}", (&label.track, &label.says));
        if self.said.contains(&words) {
            return false;
        }
        self.bytes += words.len();
        if self.bytes <= MOST_BYTES {
            self.said.insert(words);
        }
        true
    }
}

fn rename(group: &Group, track: &mut Track<'_>) {
    // The map is shared, so that it may be asked with a key of a shorter life.
    let processes: &std::collections::HashMap<Id<'_>, Id<'_>> = &group.processes;
    if processes.is_empty() {
        return;
    }
    if let Some(new) = processes.get(&track.process) {
        track.process = new.clone().into_owned();
    }
}

/// Puts the rank before a process's name, and the processes of a rank beside one another.
fn relabel(group: &Group, label: &mut Label<'_>) {
    let Some(whose) = group.whose else { return };
    match &mut label.says {
        Labelled::ProcessName(name) => {
            let whose = whose.to_string();
            let rest = name.strip_prefix(&whose);
            if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(": ")) {
                *name = format!("{whose}: {name}").into();
            }
        }
        Labelled::ProcessSortIndex(index) => {
            let order: &std::collections::HashMap<Id<'_>, i64> = &group.order;
            *index = order.get(&label.track.process).copied().unwrap_or(*index);
        }
        _ => {}
    }
}
