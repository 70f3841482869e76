//! From evidence to findings: judges, and reads nothing.

mod loading;
mod measuring;
mod telling;

use super::evidence::{Evidence, Inside};
use super::finding::{Finding, Link, Weight};
use crate::groups::{Process, Subject};
use crate::procfs::Unread;

/// What is found, in the order of the chain.
#[must_use]
pub fn findings(evidence: &Evidence) -> Vec<Finding> {
    let mut found = presence(evidence);
    if let (Subject::Running(process), Some(inside)) = (&evidence.subject, &evidence.inside) {
        found.extend(permission(evidence, process, inside));
        // Who measures is loaded, told and listed, whatever else can be seen from here.
        let measures = measuring::is_measuring(evidence, inside);
        if !measures {
            found.extend(loading::findings(evidence.pid, inside));
        }
        found.extend(telling::settings(evidence, process, inside));
        if !measures {
            found.extend(telling::listing(evidence, process, inside));
        }
        found.extend(telling::folder(evidence, process, inside));
        found.extend(measuring::findings(evidence, process, inside, is_blocked(&found)));
    }
    found.sort_by_key(|finding| finding.link);
    found
}

/// Whether the process is measured, and its measurements arrive.
#[must_use]
pub fn is_measured(findings: &[Finding]) -> bool {
    let measures =
        |finding: &Finding| finding.link == Link::Measuring && finding.weight == Weight::Good;
    !is_blocked(findings) && findings.iter().any(measures)
}

fn is_blocked(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.weight == Weight::Obstacle)
}

fn presence(evidence: &Evidence) -> Vec<Finding> {
    let place = format!("process {}", evidence.pid);
    let gone =
        |what: &str, remedy: &str| vec![Finding::obstacle(Link::Process, &place, what, remedy)];
    match &evidence.subject {
        Subject::NotThere if evidence.listed_before.is_some() => gone(
            "it was listed and has ended since; what it published last is still attributed to it",
            "ask for the pid that runs now: `warpgauge groups`",
        ),
        Subject::NotThere => gone(
            "there is no such process, or it is hidden from this user",
            "`ps -e` and `warpgauge groups` show those that run; a container's own pids mean nothing here",
        ),
        Subject::Ended => gone(
            "it has ended and waits for its parent to notice",
            "ask for the pid that runs now: `warpgauge groups`",
        ),
        Subject::KernelThread => {
            gone("it is a thread of the kernel, which is never measured", "name a program's pid")
        }
        Subject::Ourselves => {
            gone("it is warpgauge itself, which is never measured", "name another pid")
        }
        Subject::Unreadable(cause) => vec![Finding::obstacle(
            Link::Permission,
            format!("/proc/{}/{}", evidence.pid, cause.file),
            cause.reason.to_string(),
            cause.reason.advice(),
        )],
        Subject::Running(process) => running(evidence, process, place),
    }
}

fn running(evidence: &Evidence, process: &Process, place: String) -> Vec<Finding> {
    let mut found = vec![Finding::good(Link::Process, &place, format!("{} runs", process.comm))];
    if evidence.listed_before.is_some() {
        found.push(Finding::note(
            Link::Process,
            &place,
            "an earlier process with the same pid was listed and has ended; this is another one",
            "",
        ));
    }
    if process.namespace_pid != evidence.pid {
        found.push(Finding::note(
            Link::Process,
            &place,
            format!(
                "it runs in a pid namespace of its own and calls itself {}: that is the pid of its lines and files",
                process.namespace_pid
            ),
            "",
        ));
    }
    found
}

fn permission(evidence: &Evidence, process: &Process, inside: &Inside) -> Option<Finding> {
    let answers = [
        ("maps", inside.libraries.as_ref().err()),
        ("environ", inside.startup.as_ref().err()),
        ("fd", inside.device_open.as_ref().err()),
    ];
    let denied: Vec<_> = answers
        .iter()
        .filter(|(_, answer)| *answer == Some(&Unread::Denied))
        .map(|(file, _)| format!("/proc/{}/{file}", evidence.pid))
        .collect();
    (!denied.is_empty()).then(|| {
        Finding::obstacle(
            Link::Permission,
            denied.join(", "),
            format!(
                "user {} may not read them: the process belongs to user {}",
                evidence.asked_by, process.uids.effective
            ),
            format!("run `warpgauge check --pid {}` as root", evidence.pid),
        )
    })
}
