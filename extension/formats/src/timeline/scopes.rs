//! Scopes: slices on their session's row.

use super::Timeline;
use super::device_work::{integer, text};
use super::open_scopes::{Open, Parent};
use super::processes::Place;
use crate::event::{Phase, Scope, Text};
use crate::time::Timestamp;
use crate::trace::{EventType, Metadata, Record, TraceEvent, Value};

/// The category under which Kineto files what the program itself marks.
const CATEGORY: &str = "user_annotation";

impl Timeline<'_> {
    pub(super) fn scope(&mut self, line: u64, source: Place, scope: &Scope<'_>) {
        self.state(line, source, scope.time, scope.host.as_ref(), &scope.devices);
        match scope.phase {
            Phase::Begin => {
                let timestamp = self.time(line, scope.time);
                let track = self.processes.host(source);
                self.open.begin(line, source, scope, timestamp, track);
                while let Some(oldest) = self.open.overflow() {
                    self.record(oldest.line, &unended(&oldest));
                }
            }
            Phase::End => self.scope_end(line, source, scope),
            Phase::Continue => self.scope_instant(line, source, scope, "continued"),
            Phase::Suspend => self.scope_instant(line, source, scope, "suspended"),
            Phase::Sample => self.scope_instant(line, source, scope, "sampled"),
        }
    }

    fn scope_end(&mut self, line: u64, source: Place, scope: &Scope<'_>) {
        let open = self.open.end(source, scope);
        let told = match (scope.began, scope.duration) {
            (Some(began), _) => Some(began),
            (None, Some(duration)) => scope.time.0.checked_sub(duration.0).map(Timestamp),
            (None, None) => None,
        };
        let began = told.or(open.as_ref().map(|open| open.began));
        let Some(began) = began else {
            return self.scope_instant(line, source, scope, "ended");
        };
        let timestamp = self.time(line, began);
        let (track, thread) = self.processes.host(source);
        let mut metadata = metadata(scope);
        if let Some(open) = &open {
            add_missing(&mut metadata, open_metadata(open));
        }
        let duration = scope.duration.unwrap_or_else(|| scope.time.since(began));
        let event = TraceEvent {
            event_type: EventType::Custom,
            category: Some(CATEGORY.into()),
            name: Text::Borrowed(&scope.name),
            timestamp,
            duration: Some(duration),
            resource: track.row.number(),
            track,
            thread,
            metadata,
            ..TraceEvent::default()
        };
        self.record(line, &Record::Event(event));
    }

    /// What happens to a scope in between, or an end of which the beginning is not known.
    fn scope_instant(&mut self, line: u64, source: Place, scope: &Scope<'_>, what: &'static str) {
        let mut metadata = metadata(scope);
        metadata.push(("scope was".into(), Value::Text(what.into())));
        if let Some(start) = scope.original_start {
            let start = self.time(line, start);
            metadata.push(("original start (ns)".into(), Value::Integer(start.0)));
        }
        self.instant(line, source, scope.time, Text::Borrowed(&scope.name), CATEGORY, metadata);
    }
}

/// A scope that has begun and not ended.
pub(super) fn unended(open: &Open) -> Record<'_> {
    Record::Event(TraceEvent {
        event_type: EventType::RangeStart,
        category: Some(CATEGORY.into()),
        name: Text::Borrowed(&open.name),
        timestamp: open.timestamp,
        resource: open.track.row.number(),
        track: open.track.clone(),
        thread: open.thread,
        metadata: open_metadata(open),
        ..TraceEvent::default()
    })
}

fn metadata<'e>(scope: &'e Scope<'_>) -> Metadata<'e> {
    let mut metadata = Metadata::new();
    integer(&mut metadata, "instance", scope.instance);
    integer(&mut metadata, "depth", scope.depth);
    text(&mut metadata, "path", scope.path.as_ref());
    text(&mut metadata, "tag", scope.tag.as_ref().filter(|tag| !tag.is_empty()));
    integer(&mut metadata, "repeat", scope.repeat);
    integer(&mut metadata, "warmup", scope.warmup);
    metadata
}

fn open_metadata(open: &Open) -> Metadata<'_> {
    let mut metadata = Metadata::new();
    for (name, item) in [("path", &open.path), ("tag", &open.tag)] {
        if let Some(item) = item.as_ref().filter(|item| !item.is_empty()) {
            metadata.push((name.into(), Value::Text(Text::Borrowed(item))));
        }
    }
    integer(&mut metadata, "instance", open.instance);
    integer(&mut metadata, "repeat", open.repeat);
    integer(&mut metadata, "warmup", open.warmup);
    match &open.parent {
        Some(Parent::Instance(instance)) => integer(&mut metadata, "parent", Some(*instance)),
        Some(Parent::Name(name)) => {
            metadata.push(("parent".into(), Value::Text(Text::Borrowed(name))));
        }
        None => {}
    }
    metadata
}

/// Adds what is not said yet.
fn add_missing<'e>(metadata: &mut Metadata<'e>, more: Metadata<'e>) {
    for (name, item) in more {
        if metadata.iter().all(|(known, _)| *known != name) {
            metadata.push((name, item));
        }
    }
}
