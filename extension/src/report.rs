//! What a pass did, for its caller: people, machines (`--json`) and the exit code.

use std::time::Duration;

use serde::Serialize;
use warpgauge_wire::Function;

use crate::aggregate::{Distribution, Tally};
use crate::control::RuntimeConfigOutcome;
use crate::forward::Forwarded;
use crate::listing::ListedProcess;
use crate::skips::Skips;

/// Everything that one pass did.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// One row for each process that reported something.
    pub processes: Vec<Row>,
    /// Measurements read and attributed.
    pub read: u64,
    /// Lines and files refused, by reason.
    pub refused: Vec<Refused>,
    /// Measurements of processes that were never listed.
    pub unattributed: u64,
    /// Processes in the runtime configuration.
    pub listed: usize,
    /// Whether the runtime configuration was rewritten.
    pub runtime_config_changed: bool,
    /// What is wrong with persons' lines in it.
    pub remarks: Vec<String>,
    /// Why it could not be written.
    pub runtime_config_failure: Option<String>,
    /// What became of the requests.
    pub delivery: Delivery,
    /// What the event logs said; nothing where none are configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<EventReport>,
    /// What the devices said; nothing where they are not asked, or there is no management library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices: Option<DeviceReport>,
    /// What became of the event logs; `None` where none are forwarded.
    pub forwarding: Option<Forwarding>,
    /// How long the pass took, in seconds.
    pub duration_s: f64,
}

/// What the event logs said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventReport {
    /// Lines that were read.
    pub lines: u64,
    /// What was not taken, by reason.
    pub skipped: Vec<Refused>,
    /// Findings about lines that were taken all the same.
    pub suspect: u64,
    /// Why they could not be read at all.
    pub failure: Option<String>,
}

/// What the devices said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DeviceReport {
    /// GPUs of which anything is known.
    pub gpus: usize,
    /// MIG instances of which anything is known.
    pub mig_instances: usize,
    /// What could not be read, by reason.
    pub faults: Vec<Refused>,
    /// TelemetryEvent v2 records that were written; `None` where none are asked for.
    pub records: Option<usize>,
    /// Why they could not be written.
    pub failure: Option<String>,
}

/// What one process reported in the window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its group; `None` for a process that a person listed.
    pub group: Option<String>,
    /// Its pid.
    pub pid: u32,
    /// Its executable.
    pub executable: String,
    /// Launches, where known.
    pub launches: Option<u128>,
    /// Warp-level instructions, where measured.
    pub instructions: Option<u128>,
    /// Mean occupancy, 0 to 1.
    pub occupancy: Option<f64>,
    /// Mean global memory coalescence, 0 to 1.
    pub coalescence: Option<f64>,
    /// Mean branch divergence, 0 to 1.
    pub divergence: Option<f64>,
}

/// What was refused for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The metric's attribute.
    pub reason: &'static str,
    /// How often.
    pub count: u64,
    /// The first of them.
    pub example: String,
}

/// What the measurements folder said.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// Measurements read and attributed.
    pub read: u64,
    /// Measurements of processes that were never listed.
    pub unattributed: u64,
    /// What was refused.
    pub refused: &'a Skips,
}

/// What became of the requests that waited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Delivery {
    /// Points that the receiver has taken.
    pub accepted_points: u64,
    /// Points that it refused out of requests that it took.
    pub rejected_points: u64,
    /// Points of requests that it refused as a whole.
    pub refused_points: u64,
    /// Points that the spool's limits took.
    pub dropped_points: u64,
    /// Requests that still wait.
    pub waiting_requests: usize,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// Why they wait.
    pub waits_for: Option<String>,
    /// What a person has to mend before anything can be sent.
    pub misconfigured: Option<String>,
}

/// What became of the lines of event logs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Forwarding {
    /// Lines that the backend has taken.
    pub lines: u64,
    /// Bytes of the request bodies that brought them there.
    pub bytes: u64,
    /// Lines that were set aside, by reason.
    pub refused: Vec<Refused>,
    /// Requests that were sent once more.
    pub retries: u64,
    /// Logs that are not read, by reason; each is told of when it is first met.
    pub unread: Vec<Refused>,
    /// Why the rest waits: the backend, a log or the disk is not ready.
    pub waits_for: Option<String>,
    /// Which limit of the configuration left the rest to the next pass.
    pub left_by: Option<&'static str>,
    /// What a person has to mend before anything can go.
    pub misconfigured: Option<String>,
}

/// How a command ends (design, "Command line").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// `check`, `lint`, `validate` found something.
    Findings = 1,
    /// Wrong usage.
    Usage = 2,
    /// The receiver refused part of the data.
    PartlyRefused = 4,
    /// The receiver refused data for good (`EX_DATAERR`).
    Refused = 65,
    /// The receiver was away for so long that the spool's limits dropped data (`EX_UNAVAILABLE`).
    Dropped = 69,
    /// Try again later, nothing is lost (`EX_TEMPFAIL`).
    TryAgain = 75,
    /// The configuration is wrong (`EX_CONFIG`).
    Config = 78,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Delivery {
    /// Says why requests wait.
    pub(crate) fn waits(&mut self, reason: String) {
        self.waits_for = Some(reason);
    }

    /// Whether everything that there was has arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.waiting_requests == 0
            && self.rejected_points + self.refused_points + self.dropped_points == 0
    }
}

impl Row {
    /// The row of one process.
    #[must_use]
    pub fn new(process: &ListedProcess, tally: &Tally) -> Self {
        let mean = |function| tally.percentage(function).and_then(Distribution::mean);
        Self {
            group: process.group.clone(),
            pid: process.pid,
            executable: process.executable.clone(),
            launches: tally.launches,
            instructions: tally.instructions,
            occupancy: mean(Function::Occupancy),
            coalescence: mean(Function::Coalescence),
            divergence: mean(Function::Divergence),
        }
    }
}

impl From<Forwarded> for Forwarding {
    fn from(forwarded: Forwarded) -> Self {
        let Forwarded { lines, bytes, retries, waits_for, left_by, misconfigured, .. } = forwarded;
        let (refused, unread) = (list(&forwarded.refused), list(&forwarded.unread));
        Self { lines, bytes, refused, retries, unread, waits_for, left_by, misconfigured }
    }
}

impl EventReport {
    /// Puts the parts together.
    #[must_use]
    pub fn new(lines: u64, skipped: &Skips, suspect: u64, failure: Option<String>) -> Self {
        Self { lines, skipped: list(skipped), suspect, failure }
    }
}

impl DeviceReport {
    /// Puts the parts together; records come later.
    #[must_use]
    pub fn new(gpus: usize, mig_instances: usize, faults: &Skips) -> Self {
        Self { gpus, mig_instances, faults: list(faults), ..Self::default() }
    }
}

/// What was refused, as a list that machines can read.
fn list(refused: &Skips) -> Vec<Refused> {
    let one = |(reason, skip): (_, &crate::skips::Skip)| Refused {
        reason,
        count: skip.count,
        example: skip.example.clone(),
    };
    refused.iter().map(one).collect()
}

impl Report {
    /// Adds what the event logs said.
    #[must_use]
    pub fn with_events(self, events: Option<EventReport>) -> Self {
        Self { events, ..self }
    }

    /// Puts the parts together; `refused` becomes a list that machines can read.
    #[must_use]
    pub fn new(
        processes: Vec<Row>,
        measured: Measured<'_>,
        runtime_config: RuntimeConfigOutcome,
        delivery: Delivery,
        duration: Duration,
    ) -> Self {
        Self {
            processes,
            read: measured.read,
            refused: list(measured.refused),
            unattributed: measured.unattributed,
            listed: runtime_config.listed,
            runtime_config_changed: runtime_config.changed,
            remarks: runtime_config.remarks,
            runtime_config_failure: runtime_config.failure,
            delivery,
            events: None,
            devices: None,
            forwarding: None,
            duration_s: duration.as_secs_f64(),
        }
    }

    /// The exit code: what lost data first, then what needs a person, then what only needs time.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let is_unread = self.events.as_ref().is_some_and(|events| events.failure.is_some());
        let Delivery { rejected_points, refused_points, dropped_points, .. } = &self.delivery;
        let Delivery { waiting_requests, misconfigured, .. } = &self.delivery;
        let devices = self.devices.as_ref();
        let are_records_missing = devices.is_some_and(|devices| devices.failure.is_some());
        let forwarding = self.forwarding.as_ref();
        let of_forwarding = |question: fn(&Forwarding) -> bool| forwarding.is_some_and(question);
        if *refused_points > 0 {
            Exit::Refused
        } else if *rejected_points > 0 || of_forwarding(|one| !one.refused.is_empty()) {
            Exit::PartlyRefused
        } else if *dropped_points > 0 {
            Exit::Dropped
        } else if misconfigured.is_some()
            || self.runtime_config_failure.is_some()
            || is_unread
            || are_records_missing
            || of_forwarding(|one| one.misconfigured.is_some())
        {
            Exit::Config
        } else if *waiting_requests > 0 || of_forwarding(|one| one.waits_for.is_some()) {
            Exit::TryAgain
        } else {
            Exit::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_names_the_worst_that_happened() {
        let exit = |delivery: Delivery| {
            let refused = Skips::default();
            let measured = Measured { read: 0, unattributed: 0, refused: &refused };
            let runtime_config = RuntimeConfigOutcome::default();
            Report::new(Vec::new(), measured, runtime_config, delivery, Duration::ZERO).exit()
        };
        let waiting = Delivery { waiting_requests: 2, ..Delivery::default() };
        assert_eq!(exit(Delivery::default()), Exit::Done);
        assert_eq!(exit(waiting.clone()), Exit::TryAgain);
        let misconfigured = Delivery { misconfigured: Some("token".into()), ..waiting.clone() };
        assert_eq!(exit(misconfigured), Exit::Config);
        let dropped = Delivery { dropped_points: 1, ..waiting.clone() };
        assert_eq!(exit(dropped.clone()), Exit::Dropped, "lost data is not `nothing is lost`");
        assert_eq!(exit(Delivery { rejected_points: 1, ..dropped }), Exit::PartlyRefused);
        assert_eq!(
            exit(Delivery { refused_points: 1, rejected_points: 1, ..waiting }),
            Exit::Refused
        );
    }

    #[test]
    fn what_became_of_the_event_logs_has_its_exit_code() {
        let exit = |forwarding: Forwarding| {
            let refused = Skips::default();
            let measured = Measured { read: 0, unattributed: 0, refused: &refused };
            let (delivery, duration) = (Delivery::default(), Duration::ZERO);
            let runtime_config = RuntimeConfigOutcome::default();
            let report = Report::new(Vec::new(), measured, runtime_config, delivery, duration);
            Report { forwarding: Some(forwarding), ..report }.exit()
        };
        let away = Forwarding { waits_for: Some("nobody there".into()), ..Forwarding::default() };
        assert_eq!(exit(Forwarding::default()), Exit::Done);
        assert_eq!(exit(Forwarding { left_by: Some("x"), ..Forwarding::default() }), Exit::Done);
        assert_eq!(exit(away.clone()), Exit::TryAgain);
        let misconfigured = Some("token".into());
        assert_eq!(exit(Forwarding { misconfigured, ..away.clone() }), Exit::Config);
        let refused = vec![Refused { reason: "refused", count: 1, example: String::new() }];
        assert_eq!(exit(Forwarding { refused, ..away }), Exit::PartlyRefused);
    }
}
