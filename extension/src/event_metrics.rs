//! Events to series. Pure: what one pass saw of each source, bounded however many names there are.
//!
//! A kernel or a scope has a series of its own while it is among the first by time; the others share
//! one. So the sum over all series is the sum over all events, whichever names come and go.

pub mod devices;
pub mod durations;
pub mod named;
pub mod open_scopes;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warpgauge_formats::event::{Copy, CopyKind, Event, Phase, Scope, Source, What};

use self::devices::DeviceTally;
use self::durations::Durations;
use self::named::{ByName, cut};
use self::open_scopes::OpenScopes;

/// Most sources that have series of their own in one pass; the events of further ones are not taken,
/// and counted.
pub const MOST_SOURCES: usize = 1_000;

/// Most devices of one source.
pub const MOST_DEVICES: usize = 256;

/// Who wrote an event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventSource {
    /// The group that the configuration gives the log.
    pub group: Option<String>,
    /// The process, as its own pid namespace counts.
    pub pid: Option<i64>,
    /// The program's name for itself.
    pub app: Option<String>,
    /// The session, in formats that have them.
    pub session: Option<String>,
}

impl EventSource {
    /// The writer of an event of a log that belongs to `group`. Long texts are cut.
    #[must_use]
    pub fn of(group: Option<&str>, source: &Source<'_>) -> Self {
        let text = |text: Option<&str>| {
            text.filter(|text| !text.is_empty()).map(|text| cut(text).to_owned())
        };
        Self {
            group: group.map(str::to_owned),
            pid: source.pid,
            app: text(source.app.as_deref()),
            session: text(source.session.as_deref()),
        }
    }
}

/// What one source did between two passes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventTally {
    /// How long kernels ran, by name.
    pub kernels: ByName,
    /// How long scopes were open, by name.
    pub scopes: ByName,
    /// Copies, their bytes and how long they took, by kind.
    pub copies: BTreeMap<CopyKind, Copies>,
    /// The last state of each device.
    pub devices: BTreeMap<i64, DeviceTally>,
}

/// Copies of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copies {
    /// How many, and how long they took.
    pub durations: Durations,
    /// Bytes that were copied.
    pub bytes: u64,
}

/// Why an event was not taken. Each is a `reason` of `warpgauge.events.skipped`.
#[derive(Debug, Clone, core::marker::Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its end lies before its beginning, or its bytes are negative.
    Negative,
    /// There are more sources in this pass than may have series.
    TooManySources,
    /// The source has more devices than may have series.
    TooManyDevices,
    /// A scope ended whose beginning no pass has seen.
    ScopeWithoutBeginning,
}

impl Refusal {
    /// Every one of them.
    pub const ALL: [Self; 4] =
        [Self::Negative, Self::TooManySources, Self::TooManyDevices, Self::ScopeWithoutBeginning];

    /// The metric's attribute.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Negative => "negative_amount",
            Self::TooManySources => "too_many_sources",
            Self::TooManyDevices => "too_many_devices",
            Self::ScopeWithoutBeginning => "scope_without_beginning",
        }
    }
}

/// What a pass saw.
#[derive(Debug, Clone, Default)]
pub struct EventMetrics {
    /// By source.
    pub sources: BTreeMap<EventSource, EventTally>,
    /// The scopes that have begun and not ended; carried from pass to pass.
    pub open: OpenScopes,
}

impl EventMetrics {
    /// Takes in one event of a log that belongs to `group`.
    ///
    /// # Errors
    /// Why it was not taken; nothing has then changed.
    pub fn add(&mut self, group: Option<&str>, event: &Event<'_>) -> Result<(), Refusal> {
        let source = EventSource::of(group, &event.source);
        let devices = match &event.what {
            What::Start(start) => &start.devices[..],
            What::Sampling(sampling) => &sampling.devices,
            What::Scope(scope) => &scope.devices,
            What::System(system) => &system.devices,
            _ => &[],
        };
        let time = match &event.what {
            What::Start(start) => start.time,
            What::Sampling(sampling) => sampling.time,
            What::Scope(scope) => scope.time,
            What::System(system) => system.time,
            _ => Default::default(),
        };
        if !devices.is_empty() {
            let tally = self.tally(&source)?;
            for device in devices {
                if tally.devices.len() >= MOST_DEVICES && !tally.devices.contains_key(&device.index)
                {
                    return Err(Refusal::TooManyDevices);
                }
                tally.devices.entry(device.index).or_default().add(time, device);
            }
        }
        match &event.what {
            What::Kernel(kernel) => {
                let duration = amount(kernel.duration.0)?;
                self.tally(&source)?.kernels.add(&kernel.name, duration);
            }
            What::Copy(copy) => self.copy(&source, copy)?,
            What::Scope(scope) => self.scope(&source, scope)?,
            _ => {}
        }
        Ok(())
    }

    fn copy(&mut self, source: &EventSource, copy: &Copy<'_>) -> Result<(), Refusal> {
        let (bytes, duration) = (amount(copy.bytes)?, amount(copy.duration.0)?);
        // A number that has no name says nothing, and there are many.
        let kind = copy.kind.name().map_or(CopyKind(0), |_| copy.kind);
        let copies = self.tally(source)?.copies.entry(kind).or_default();
        copies.durations.add(duration);
        copies.bytes = copies.bytes.saturating_add(bytes);
        Ok(())
    }

    fn scope(&mut self, source: &EventSource, scope: &Scope<'_>) -> Result<(), Refusal> {
        match scope.phase {
            Phase::Begin => self.open.begin(source, scope),
            Phase::End => {
                let began = self.open.end(source, scope);
                let duration = scope.duration.or_else(|| Some(scope.time.since(began?)));
                let duration = duration.ok_or(Refusal::ScopeWithoutBeginning)?;
                self.tally(source)?.scopes.add(&scope.name, amount(duration.0)?);
            }
            Phase::Continue | Phase::Suspend | Phase::Sample => {}
        }
        Ok(())
    }

    fn tally(&mut self, source: &EventSource) -> Result<&mut EventTally, Refusal> {
        if !self.sources.contains_key(source) && self.sources.len() >= MOST_SOURCES {
            return Err(Refusal::TooManySources);
        }
        Ok(self.sources.entry(source.clone()).or_default())
    }
}

fn amount(value: i64) -> Result<u64, Refusal> {
    u64::try_from(value).map_err(|_| Refusal::Negative)
}

#[cfg(test)]
mod tests {
    use warpgauge_formats::event::{Device, Kernel, System};
    use warpgauge_formats::time::{Span, Timestamp};

    use super::*;

    fn event(pid: i64, what: What<'static>) -> Event<'static> {
        Event { source: Source { pid: Some(pid), ..Source::default() }, what }
    }

    fn scope(phase: Phase, time: i64, instance: Option<i64>) -> What<'static> {
        let time = Timestamp(time);
        What::Scope(Scope { phase, time, name: "step".into(), instance, ..Scope::default() })
    }

    #[test]
    fn a_scope_that_began_in_an_earlier_pass_has_its_whole_duration() {
        let mut metrics = EventMetrics::default();
        metrics.add(None, &event(1, scope(Phase::Begin, 10, None))).unwrap();
        metrics.add(None, &event(1, scope(Phase::Begin, 12, None))).unwrap();
        metrics.add(None, &event(1, scope(Phase::End, 15, None))).unwrap();
        let text = serde_json::to_string(&metrics.open).unwrap();
        let open = serde_json::from_str(&text).unwrap();
        let mut next = EventMetrics { open, ..EventMetrics::default() };
        next.add(None, &event(1, scope(Phase::End, 110, None))).unwrap();
        let tally = next.sources.values().next().unwrap();
        assert_eq!(tally.scopes.total().sum_ns(), 100);
        let again = next.add(None, &event(1, scope(Phase::End, 110, None)));
        assert_eq!(again, Err(Refusal::ScopeWithoutBeginning));
    }

    #[test]
    fn scopes_of_one_name_are_told_apart_by_instance_and_process() {
        let mut metrics = EventMetrics::default();
        for (pid, instance, time) in [(1, Some(1), 0), (1, Some(2), 10), (2, Some(1), 100)] {
            metrics.add(None, &event(pid, scope(Phase::Begin, time, instance))).unwrap();
        }
        metrics.add(None, &event(1, scope(Phase::End, 1_000, Some(1)))).unwrap();
        assert_eq!(metrics.sources.values().next().unwrap().scopes.total().sum_ns(), 1_000);
    }

    #[test]
    fn what_cannot_be_is_not_taken() {
        let mut metrics = EventMetrics::default();
        let kernel = Kernel { duration: Span(-1), ..Kernel::default() };
        assert_eq!(metrics.add(None, &event(1, What::Kernel(kernel))), Err(Refusal::Negative));
        assert_eq!(metrics.sources.len(), 0);
    }

    #[test]
    fn sources_and_devices_are_bounded() {
        let mut metrics = EventMetrics::default();
        let system = |index| {
            let devices = vec![Device { index, ..Device::default() }];
            What::System(System { devices, ..System::default() })
        };
        for pid in 0..1_000 {
            metrics.add(None, &event(pid, system(0))).unwrap();
        }
        assert_eq!(metrics.add(None, &event(1_000, system(0))), Err(Refusal::TooManySources));
        for index in 0..256 {
            metrics.add(None, &event(7, system(index))).unwrap();
        }
        assert_eq!(metrics.add(None, &event(7, system(256))), Err(Refusal::TooManyDevices));
    }
}
