//! What the library says of itself.

use std::fmt::Write;
use std::time::Duration;

use crate::groups::Process;
use crate::instrument_health::file::name_of;
use crate::instrument_health::{HealthReport, State};
use crate::unmeasured::evidence::{Evidence, Inside, SeenConfig, SeenLine};
use crate::unmeasured::finding::{Finding, Link};

/// How many of its intervals a report may be old before the library is taken for stuck.
const PATIENCE_IN_FLUSHES: u32 = 3;

/// And how much longer, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the reasons of the library ask for, by words that it uses.
const REMEDIES: [(&str, &str); 6] = [
    (
        "only slot",
        "close the other tool (nsys, ncu, a framework's profiler), or start the program without it; the library takes the slot as soon as it is free",
    ),
    (
        "CUPTI API version",
        "install a CUPTI of CUDA 11.8 or later, and name it by WARPGAUGE_CUPTI_PATH",
    ),
    (
        "libcupti was not found",
        "install CUPTI (it comes with the CUDA toolkit), and name it by WARPGAUGE_CUPTI_PATH",
    ),
    (
        "symbol",
        "update the driver or CUPTI: this one is too old, or name a newer CUPTI by WARPGAUGE_CUPTI_PATH",
    ),
    (
        "restricted to administrators",
        "allow it: NVreg_RestrictProfilingToAdminUsers=0, an option of the nvidia kernel module; or run the program as root",
    ),
    ("a fault of this library", "report it, with the library's log (WARPGAUGE_LOGFILE)"),
];

/// Whether the library says, and said just now, that it measures.
pub(super) fn is_measuring(evidence: &Evidence, inside: &Inside) -> bool {
    let report = inside.health.as_ref().ok().and_then(Option::as_ref);
    report.is_some_and(|report| {
        report.state == State::Measuring && !is_stale(evidence, inside, report)
    })
}

fn is_stale(evidence: &Evidence, inside: &Inside, report: &HealthReport) -> bool {
    let patience = inside.settings.flush_interval * PATIENCE_IN_FLUSHES + PATIENCE;
    u128::from(report.age_ns(evidence.now_ns)) > patience.as_nanos()
}

pub(super) fn findings(
    evidence: &Evidence,
    process: &Process,
    inside: &Inside,
    is_explained: bool,
) -> Option<Finding> {
    let place = inside.settings.measurements.join(name_of(process.namespace_pid));
    let place = place.display().to_string();
    let log = match &inside.settings.logfile {
        Some(path) => format!("see its log, {}", path.display()),
        None => "set WARPGAUGE_LOGFILE in the program's environment; its log says more".to_owned(),
    };
    let report = match &inside.health {
        Err(fault) => {
            return Some(Finding::note(
                Link::Measuring,
                place,
                format!("what the library says of itself is not believed: {fault}"),
                "remove the file; the library writes it again at its next flush",
            ));
        }
        Ok(None) => {
            let is_listed = matches!(
                inside.runtime_config,
                SeenConfig::Read { line: SeenLine::Listed { .. }, .. }
            );
            return (is_listed && !is_explained).then(|| {
                Finding::obstacle(
                    Link::Measuring,
                    place,
                    "it is loaded and listed, and has not said anything yet",
                    format!(
                        "wait for its next flush, {} s; {log}",
                        inside.settings.flush_interval.as_secs()
                    ),
                )
            });
        }
        Ok(Some(report)) => report,
    };
    let reason = report.reason.as_deref().unwrap_or("it gives no reason");
    Some(match report.state {
        // Written a last time, so its age says nothing.
        State::Disabled => Finding::obstacle(
            Link::Measuring,
            place,
            format!("disabled for the life of the process: {reason}"),
            remedy(reason).map_or(log, |remedy| format!("{remedy}; then restart the program")),
        ),
        _ if is_stale(evidence, inside, report) => Finding::obstacle(
            Link::Measuring,
            place,
            format!(
                "the library last wrote {} s ago: it is stuck, or its folder is full",
                report.age_ns(evidence.now_ns) / 1_000_000_000
            ),
            log,
        ),
        State::Measuring => Finding::good(Link::Measuring, place, numbers(evidence, report)),
        State::Armed if report.reason.is_some() => Finding::obstacle(
            Link::Measuring,
            place,
            format!("listed, and measuring nothing for now: {reason}"),
            remedy(reason).map_or(log, str::to_owned),
        ),
        State::Armed | State::Off | State::Unknown => Finding::obstacle(
            Link::Measuring,
            place,
            format!("the library is {} and measures nothing", report.state.name()),
            "it measures once it is listed",
        ),
    })
}

fn remedy(reason: &str) -> Option<&'static str> {
    REMEDIES.iter().find(|(words, _)| reason.contains(words)).map(|(_, remedy)| *remedy)
}

fn numbers(evidence: &Evidence, report: &HealthReport) -> String {
    let HealthReport { launches_seen, windows, .. } = report;
    let mut text = format!("measuring {}: {launches_seen} launches", report.functions.join(", "));
    // Writing to a String does not fail.
    if let Some(share) = report.launches_measured_share {
        let _ = write!(text, ", {:.1} % of a shape that was measured", share * 100.0);
    }
    let _ = write!(text, ", {windows} windows");
    if let Some(bytes) = report.resident_bytes {
        let _ = write!(text, ", {} MiB resident", bytes >> 20);
    }
    let seconds = report.age_ns(evidence.now_ns) / 1_000_000_000;
    let _ = write!(text, ", said {seconds} s ago");
    text
}
