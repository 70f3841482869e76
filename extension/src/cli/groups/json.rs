//! The documents of `warpgauge groups --json`.
//!
//! Nanoseconds are strings, as in OTLP's JSON: many readers turn numbers into floats.

use std::io::{self, Write};

use serde::Serialize;

use super::health::{Healths, is_stale};
use crate::groups::{
    ConditionExplanation, Explanation, Group, GroupExplanation, GroupOutcome, Process, Resolution,
    Skipped, Subject, Unreadable,
};
use crate::instrument_health::HealthReport;
use crate::instrument_health::file::HealthFault;

pub(super) fn write(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)
}

#[derive(Serialize)]
pub(super) struct ResolutionDocument<'a> {
    groups: Vec<GroupDocument<'a>>,
    processes_looked_at: usize,
    other_users_hidden: bool,
    left_out: Vec<SkippedDocument>,
    incomplete: Vec<SkippedDocument>,
}

#[derive(Serialize)]
struct GroupDocument<'a> {
    name: &'a str,
    processes: Vec<ProcessDocument<'a>>,
}

#[derive(Serialize)]
struct ProcessDocument<'a> {
    pid: u32,
    namespace_pid: u32,
    start_ticks: u64,
    created_unix_nanoseconds: String,
    uid: u32,
    comm: &'a str,
    executable_name: Option<&'a str>,
    command: Option<&'a str>,
    container_id: Option<&'a str>,
    systemd_unit: Option<&'a str>,
    kubernetes_pod_uid: Option<&'a str>,
    otel_service_name: Option<&'a str>,
    cuda_driver_mapped: Option<bool>,
    module_mapped: Option<bool>,
    health: Option<HealthDocument<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum HealthDocument<'a> {
    Refused {
        refused: String,
    },
    Said {
        state: &'static str,
        stale: bool,
        reason: Option<&'a str>,
        since_unix_nanoseconds: String,
        updated_unix_nanoseconds: String,
        functions: &'a [String],
        launches_seen: u64,
        launches_measured_share: Option<f64>,
        launches_dropped: u64,
        windows: u64,
        windows_discarded: u64,
        window_time_nanoseconds: String,
        resident_bytes: Option<u64>,
        devices: Vec<DeviceDocument>,
    },
}

#[derive(Serialize)]
struct DeviceDocument {
    ordinal: u32,
    launches: u64,
}

#[derive(Serialize)]
struct SkippedDocument {
    processes: usize,
    example_pid: u32,
    #[serde(flatten)]
    cause: UnreadableDocument,
}

#[derive(Serialize)]
struct UnreadableDocument {
    file: &'static str,
    reason: String,
    advice: &'static str,
}

#[derive(Serialize)]
pub(super) struct ExplanationDocument<'a> {
    pid: u32,
    /// `running`, or why it is not monitored.
    subject: &'static str,
    process: Option<ProcessDocument<'a>>,
    unreadable: Option<UnreadableDocument>,
    groups: Vec<GroupExplanationDocument<'a>>,
}

#[derive(Serialize)]
struct GroupExplanationDocument<'a> {
    name: &'a str,
    outcome: &'static str,
    taken_by: Option<&'a str>,
    conditions: Vec<ConditionDocument<'a>>,
    any: Vec<Vec<ConditionDocument<'a>>>,
}

#[derive(Serialize)]
struct ConditionDocument<'a> {
    key: String,
    wanted: &'a str,
    /// Absent where it could not be read.
    holds: Option<bool>,
    found: Option<&'a str>,
    unreadable: Option<UnreadableDocument>,
}

pub(super) fn resolution<'a>(
    resolution: &'a Resolution,
    healths: &'a Healths,
    now_ns: u64,
) -> ResolutionDocument<'a> {
    let groups = resolution.groups.iter().map(|group| self::group(group, healths, now_ns));
    ResolutionDocument {
        groups: groups.collect(),
        processes_looked_at: resolution.listed,
        other_users_hidden: resolution.others_hidden,
        left_out: resolution.skipped.iter().map(skipped).collect(),
        incomplete: resolution.incomplete.iter().map(skipped).collect(),
    }
}

pub(super) fn explanation(explanation: &Explanation) -> ExplanationDocument<'_> {
    let (subject, process, unread) = match &explanation.subject {
        Subject::NotThere => ("not_there", None, None),
        Subject::Ourselves => ("ourselves", None, None),
        Subject::KernelThread => ("kernel_thread", None, None),
        Subject::Ended => ("ended", None, None),
        Subject::Unreadable(cause) => ("unreadable", None, Some(cause)),
        Subject::Running(process) => ("running", Some(process), None),
    };
    ExplanationDocument {
        pid: explanation.pid,
        subject,
        process: process.map(|found| self::process(found)),
        unreadable: unread.map(unreadable),
        groups: explanation.groups.iter().map(group_explanation).collect(),
    }
}

fn group<'a>(group: &'a Group, healths: &'a Healths, now_ns: u64) -> GroupDocument<'a> {
    let processes = group.processes.iter().map(|process| ProcessDocument {
        health: healths.of(process).map(|health| self::health(health, now_ns)),
        ..self::process(process)
    });
    GroupDocument { name: &group.name, processes: processes.collect() }
}

fn health(health: &Result<HealthReport, HealthFault>, now_ns: u64) -> HealthDocument<'_> {
    let report = match health {
        Err(fault) => return HealthDocument::Refused { refused: fault.to_string() },
        Ok(report) => report,
    };
    HealthDocument::Said {
        state: report.state.name(),
        stale: is_stale(report, now_ns),
        reason: report.reason.as_deref(),
        since_unix_nanoseconds: report.since_ns.to_string(),
        updated_unix_nanoseconds: report.updated_ns.to_string(),
        functions: &report.functions,
        launches_seen: report.launches_seen,
        launches_measured_share: report.launches_measured_share,
        launches_dropped: report.launches_dropped,
        windows: report.windows,
        windows_discarded: report.windows_discarded,
        window_time_nanoseconds: report.window_time_ns.to_string(),
        resident_bytes: report.resident_bytes,
        devices: report
            .devices
            .iter()
            .map(|device| DeviceDocument { ordinal: device.ordinal, launches: device.launches })
            .collect(),
    }
}

fn process(process: &Process) -> ProcessDocument<'_> {
    let mapped = process.details.as_ref().and_then(|details| details.mapped.ok());
    ProcessDocument {
        pid: process.id.pid,
        namespace_pid: process.namespace_pid,
        start_ticks: process.id.start_ticks,
        created_unix_nanoseconds: process.created_unix_nanoseconds.to_string(),
        uid: process.uids.effective,
        comm: &process.comm,
        executable_name: process.executable_name.as_deref(),
        command: process.details.as_ref().map(|details| details.command.as_str()),
        container_id: process.container_id.as_deref(),
        systemd_unit: process.systemd_unit.as_deref(),
        kubernetes_pod_uid: process.pod_uid.as_deref(),
        otel_service_name: process.otel_service_name.as_deref(),
        cuda_driver_mapped: mapped.map(|mapped| mapped.cuda_driver),
        module_mapped: mapped.map(|mapped| mapped.module),
        health: None,
    }
}

fn skipped(skipped: &Skipped) -> SkippedDocument {
    SkippedDocument {
        processes: skipped.processes,
        example_pid: skipped.example,
        cause: unreadable(&skipped.cause),
    }
}

fn unreadable(cause: &Unreadable) -> UnreadableDocument {
    UnreadableDocument {
        file: cause.file.name(),
        reason: cause.reason.to_string(),
        advice: cause.reason.advice(),
    }
}

fn group_explanation(group: &GroupExplanation) -> GroupExplanationDocument<'_> {
    let (outcome, taken_by) = match &group.outcome {
        GroupOutcome::Takes => ("takes", None),
        GroupOutcome::TakenBy(first) => ("taken_by", Some(first.as_str())),
        GroupOutcome::NeverMonitored => ("never_monitored", None),
        GroupOutcome::Undecided(_) => ("undecided", None),
        GroupOutcome::DoesNotMatch => ("does_not_match", None),
    };
    let any = group.alternatives.iter().map(|way| way.iter().map(condition).collect()).collect();
    let conditions = group.own.iter().map(condition).collect();
    GroupExplanationDocument { name: &group.name, outcome, taken_by, conditions, any }
}

fn condition(condition: &ConditionExplanation) -> ConditionDocument<'_> {
    let found = condition.found.as_ref();
    ConditionDocument {
        key: condition.key.to_string(),
        wanted: &condition.wanted,
        holds: found.ok().map(|found| found.holds),
        found: found.ok().map(|found| found.text.as_str()),
        unreadable: found.err().map(unreadable),
    }
}
