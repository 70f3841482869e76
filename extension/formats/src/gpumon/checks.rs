//! What only several lines together tell: pairs of begin and end, and one beginning for a process.

use std::collections::{HashMap, HashSet};

use crate::event::{Event, Phase, Scope, Source, What};
use crate::finding::{Finding, Sink};
use crate::time::{Span, Timestamp};

/// Most scopes that may be open at once, and most processes, until the oldest knowledge is dropped.
const MOST_KEPT: usize = 65_536;

/// Follows scopes and processes.
///
/// Bounded: a log with more than 65,536 open scopes or processes makes it forget all of them, once
/// each time, which it says.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// Open scopes by pid and name, the innermost last.
    open: HashMap<(Option<i64>, String), Vec<Timestamp>>,
    open_count: usize,
    began: HashSet<Option<i64>>,
    ended: HashSet<Option<i64>>,
}

impl Checks {
    /// Looks at one event; completes the end of a scope with what its begin said.
    pub(super) fn event(&mut self, line: u64, event: &mut Event<'_>, sink: &mut dyn Sink) {
        match &mut event.what {
            What::Start(_) => {
                once(&mut self.began, line, &event.source, "one init for a process", sink)
            }
            What::End(_) => {
                once(&mut self.ended, line, &event.source, "one shutdown for a process", sink)
            }
            What::Scope(scope) => self.scope(line, event.source.pid, scope, sink),
            _ => {}
        }
    }

    fn scope(&mut self, line: u64, pid: Option<i64>, scope: &mut Scope<'_>, sink: &mut dyn Sink) {
        match scope.phase {
            Phase::Begin => {
                if self.open_count >= MOST_KEPT {
                    self.open.clear();
                    self.open_count = 0;
                    let found = "more; those before are forgotten";
                    sink.finding(Finding::suspect(line, "", "at most 65536 open scopes", found));
                }
                self.open_count += 1;
                self.open.entry((pid, scope.name.to_string())).or_default().push(scope.time);
            }
            Phase::End => {
                let key = (pid, scope.name.to_string());
                let began = self.open.get_mut(&key).and_then(Vec::pop);
                if began.is_some() {
                    self.open_count -= 1;
                    if self.open.get(&key).is_some_and(Vec::is_empty) {
                        self.open.remove(&key);
                    }
                } else {
                    sink.finding(Finding::suspect(
                        line,
                        "name",
                        "a scope that has begun",
                        &scope.name,
                    ));
                }
                complete(line, scope, began, sink);
            }
            _ => {}
        }
    }
}

fn complete(line: u64, scope: &mut Scope<'_>, began: Option<Timestamp>, sink: &mut dyn Sink) {
    if scope.began.is_none() {
        scope.began = began;
        scope.duration = began.map(|began| scope.time.since(began));
    }
    let (Some(began), Some(duration)) = (scope.began, scope.duration) else { return };
    if scope.time.since(began) != duration {
        let found = duration.0.to_string();
        sink.finding(Finding::suspect(line, "duration_ns", "ts_end_ns - ts_start_ns", found));
    }
    if scope.time.since(began) < Span(0) {
        let found = scope.time.0.to_string();
        sink.finding(Finding::suspect(line, "ts_end_ns", "not before ts_start_ns", found));
    }
}

fn once(
    seen: &mut HashSet<Option<i64>>,
    line: u64,
    source: &Source<'_>,
    expected: &'static str,
    sink: &mut dyn Sink,
) {
    if seen.len() >= MOST_KEPT {
        seen.clear();
    }
    if !seen.insert(source.pid) {
        let pid = source.pid.map_or_else(|| "none".to_owned(), |pid| pid.to_string());
        sink.finding(Finding::suspect(line, "pid", expected, format!("another one for pid {pid}")));
    }
}
