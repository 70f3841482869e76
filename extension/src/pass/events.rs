//! The event logs: read behind the cursors, turned into series, and the cursors that become true
//! together with them (decision 9).

use std::path::Path;

use opentelemetry_proto::tonic::metrics::v1::ResourceMetrics;

use crate::config::events::EventLog;
use crate::event_logs::memory::{self, Memory};
use crate::event_logs::{EventLogs, Place};
use crate::follow::{Flow, Follower};
use crate::otlp::event_mapping;
use crate::otlp::mapping::Window;
use crate::otlp::resource::{Host, instance_of};
use crate::report::EventReport;
use crate::setup::Setup;
use crate::skips::Skips;
use crate::spool::{After, Entry, SpoolError};

/// The cursors' owner.
const CONSUMER: &str = "metrics";

/// Within a window's folder.
const CURSORS: &str = "cursors.json";
const MEMORY: &str = "events.json";

/// What the event logs said in this pass.
#[derive(Debug, Default)]
pub(super) struct Events {
    logs: EventLogs,
    /// The cursors behind what was read.
    cursors: Vec<u8>,
    is_read: bool,
    failure: Option<String>,
    now_ns: u64,
}

/// The same, ready to be committed.
#[derive(Debug, Default)]
pub(super) struct EventSeries {
    pub(super) resources: Vec<ResourceMetrics>,
    pub(super) lines: u64,
    pub(super) skipped: Skips,
    /// What was taken, but looks odd.
    pub(super) suspect: u64,
    /// Whether logs were read at all.
    pub(super) is_read: bool,
    failure: Option<String>,
    memory: Memory,
    cursors: Vec<u8>,
    memory_text: Vec<u8>,
}

/// Reads what is new. Nothing is changed. What keeps it from reading at all is reported, and keeps
/// nothing else from working.
pub(super) fn read(setup: &Setup, now_ns: u64) -> Events {
    if setup.config.events.is_empty() {
        return Events::default();
    }
    try_read(setup, now_ns).unwrap_or_else(|fault| {
        let failure = Some(format!("{fault:#}"));
        Events { failure, ..Events::default() }
    })
}

fn try_read(setup: &Setup, now_ns: u64) -> anyhow::Result<Events> {
    let logs = &setup.config.events;
    let state = &setup.config.paths.state;
    let mut follower = Follower::new(state, CONSUMER, setup.event_rules.clone())?;
    let mut events = EventLogs::new(Memory::load(state)?);
    let summary = follower.read(&mut |file, line| {
        if let Some(EventLog { format, group, .. }) = logs.get(file.rule) {
            let (path, family) = (file.path.as_path(), file.family.as_str());
            let (group, is_past) = (group.as_deref(), file.is_past(&line));
            events.line(Place { format: *format, group, path, family, is_past }, line);
        }
        Flow::Next
    });
    if summary.has_more {
        tracing::warn!("event logs: there is more than one pass reads; the next goes on");
    }
    events.skipped.merge(summary.refused);
    let cursors = follower.pending()?;
    Ok(Events { logs: events, cursors, is_read: true, failure: None, now_ns })
}

impl Events {
    /// What a preview tells.
    pub(super) fn report(self) -> Option<EventReport> {
        self.without_series().report()
    }

    fn without_series(self) -> EventSeries {
        let Self { logs, is_read, failure, .. } = self;
        let EventLogs { lines, skipped, suspect, .. } = logs;
        let suspect = suspect.total();
        EventSeries { lines, skipped, suspect, is_read, failure, ..EventSeries::default() }
    }

    /// Turns what was read into series of this window.
    pub(super) fn series(
        self,
        setup: &Setup,
        host: &Host,
        window: Window,
    ) -> anyhow::Result<EventSeries> {
        if !self.is_read {
            return Ok(self.without_series());
        }
        let (lines, suspect) = (self.logs.lines, self.logs.suspect.total());
        let (mut memory, metrics, skipped) = self.logs.into_memory(self.now_ns);
        skipped.log("event logs: not taken");
        let mut resources = Vec::new();
        for (source, tally) in &metrics.sources {
            let of_group = |log: &&EventLog| log.group == source.group;
            let limit = setup.config.events.iter().filter(of_group).map(|log| log.kernels).max();
            let resource = host.event_source(source);
            memory.instances.insert(instance_of(&resource).to_owned(), self.now_ns);
            let tally = event_mapping::event_tally(resource, tally, limit.unwrap_or(0), window);
            if tally.scope_metrics.iter().any(|scope| !scope.metrics.is_empty()) {
                resources.push(tally);
            }
        }
        let (cursors, memory_text) = (self.cursors, memory.to_json()?);
        Ok(EventSeries {
            resources,
            lines,
            skipped,
            suspect,
            is_read: true,
            failure: None,
            memory,
            cursors,
            memory_text,
        })
    }
}

impl EventSeries {
    /// For people and machines; `None` where no logs are configured.
    pub(super) fn report(&self) -> Option<EventReport> {
        let Self { lines, skipped, suspect, failure, .. } = self;
        let report = || EventReport::new(*lines, skipped, *suspect, failure.clone());
        (self.is_read || failure.is_some()).then(report)
    }

    /// The sources whose totals go on.
    pub(super) fn instances(&self) -> impl Iterator<Item = String> {
        self.memory.instances.keys().cloned()
    }

    /// What is committed with the window.
    pub(super) fn after(&self) -> Vec<After<'_>> {
        let all = [(CURSORS, &self.cursors), (MEMORY, &self.memory_text)];
        let written = all.into_iter().filter(|_| self.is_read);
        written.map(|(name, content)| After { name, content }).collect()
    }
}

/// Puts what a window carries on where the next pass reads it.
pub(super) fn apply(entry: &Entry, state: &Path) -> Result<(), SpoolError> {
    entry.apply_after(CURSORS, &Follower::cursor_file(state, CONSUMER))?;
    entry.apply_after(MEMORY, &state.join(memory::FILE))
}
