//! Beginnings and ends of sessions, each told once.
//!
//! The channels of a session are read one after the other, and each may begin and end it: what is
//! said twice is handed on once, and an end comes last.

use std::collections::HashSet;

use warpgauge_formats::event::{Event, What};
use warpgauge_formats::finding::{Finding, Sink};

/// Most ends of sessions that are held back, and most beginnings that are remembered.
const MOST_SESSIONS: usize = 65_536;

/// Hands events on to `next`.
pub struct Bounds<'s> {
    next: &'s mut dyn Sink,
    told: HashSet<Vec<u8>>,
    ends: Vec<(u64, Event<'static>)>,
}

impl<'s> Bounds<'s> {
    /// Before `next`.
    pub fn new(next: &'s mut dyn Sink) -> Self {
        Self { next, told: HashSet::new(), ends: vec![] }
    }

    /// Hands on the ends. Call it behind the last event.
    pub fn end(&mut self) {
        for (line, end) in std::mem::take(&mut self.ends) {
            self.next.event(line, &end);
        }
    }

    /// Whether the beginning or end of a session comes for the first time.
    fn is_new(&mut self, event: &Event<'_>) -> bool {
        let mut told = vec![];
        event.write_json(&mut told);
        if self.told.len() >= MOST_SESSIONS {
            self.told.clear();
        }
        self.told.insert(told)
    }
}

impl Sink for Bounds<'_> {
    fn event(&mut self, line: u64, event: &Event<'_>) {
        match &event.what {
            What::Start(_) if !self.is_new(event) => {}
            What::End(time) => {
                if self.ends.len() >= MOST_SESSIONS {
                    self.next.event(line, event);
                } else if self.is_new(event) {
                    let source = event.source.clone().into_owned();
                    self.ends.push((line, Event { source, what: What::End(*time) }));
                }
            }
            _ => self.next.event(line, event),
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.next.finding(finding);
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.next.unknown(line, name);
    }
}
