//! Does the library look where the extension writes, is the process listed, and can it publish?

use std::path::Path;

use crate::groups::{GroupOutcome, Process};
use crate::unmeasured::evidence::{
    Evidence, Inside, Ours, Presence, SeenConfig, SeenFolder, SeenLine,
};
use crate::unmeasured::finding::{Finding, Link};
use crate::unmeasured::startup::Source;

/// Where the library looks, and whether that is where the extension writes.
pub(super) fn settings(evidence: &Evidence, process: &Process, inside: &Inside) -> Vec<Finding> {
    let Evidence { ours, .. } = evidence;
    let mut found = Vec::new();
    if let Ok(startup) = &inside.startup
        && let Some(path) = &startup.settings_file
        && inside.settings_file != Presence::There
    {
        let why = match inside.settings_file {
            Presence::Unknown(reason) => reason.to_string(),
            _ => "there is no such file as the process sees it".to_owned(),
        };
        found.push(Finding::obstacle(
            Link::Settings,
            "WARPGAUGE_CONF_FILE",
            format!("it names {}: {why}; the library goes on with its defaults", path.display()),
            "put the file there, or take the variable away",
        ));
    }
    let settings = &inside.settings;
    let place = said_by(inside, settings.runtime_config_by, "runtime_config_path");
    let path = &settings.runtime_config;
    found.push(match &inside.runtime_config {
        SeenConfig::Read { is_ours: true, .. } => Finding::good(
            Link::Settings,
            place,
            format!("the library looks at {}, which the extension writes", path.display()),
        ),
        // Another file that lists it is as good: a container's.
        SeenConfig::Read { line: SeenLine::Listed { .. }, .. } => Finding::good(
            Link::Settings,
            place,
            format!("the library looks at {}, which lists the process", path.display()),
        ),
        SeenConfig::Unreadable(reason) => Finding::obstacle(
            Link::Settings,
            place,
            format!("what the library sees at {} cannot be told: {reason}", path.display()),
            reason.advice(),
        ),
        seen => elsewhere(seen, place, path, ours, is_contained(process)),
    });
    found
}

fn is_contained(process: &Process) -> bool {
    process.container_id.is_some() || process.namespace_pid != process.id.pid
}

fn elsewhere(
    seen: &SeenConfig,
    place: String,
    path: &Path,
    ours: &Ours,
    is_contained: bool,
) -> Finding {
    let is_same_path = path == ours.runtime_config;
    let (path, here) = (path.display(), ours.runtime_config.display());
    let what = match seen {
        SeenConfig::Missing => {
            format!(
                "the library looks at {path}, and there is no such file as the process sees it; the extension writes {here}"
            )
        }
        _ if is_same_path => {
            format!(
                "the process sees another file at {path} than the extension writes: each new content is a new file, so a file that was mounted alone stays as it was"
            )
        }
        _ => format!("the library looks at {path}; the extension writes {here}"),
    };
    let remedy = if is_contained {
        format!(
            "mount the folder of {here}, not the file alone, into the container, and set WARPGAUGE_RUNTIME_CONFIG_PATH to where it is inside"
        )
    } else {
        format!(
            "make both the same: `paths.runtime_config` in {} and WARPGAUGE_RUNTIME_CONFIG_PATH (or runtime_config_path in the file that WARPGAUGE_CONF_FILE names); where {here} does not exist, no pass has run yet: `warpgauge run`",
            ours.file.display()
        )
    };
    Finding::obstacle(Link::Settings, place, what, remedy)
}

fn said_by(inside: &Inside, source: Source, key: &str) -> String {
    let file = inside.startup.as_ref().ok().and_then(|startup| startup.settings_file.as_ref());
    match (source, file) {
        (Source::Environment, _) => format!("WARPGAUGE_{}", key.to_ascii_uppercase()),
        (Source::File, Some(file)) => format!("{}: {key}", file.display()),
        (Source::File | Source::Default, _) => format!("{key} (the library's default)"),
    }
}

/// Whether the process is listed, and if not, why.
pub(super) fn listing(evidence: &Evidence, process: &Process, inside: &Inside) -> Vec<Finding> {
    let SeenConfig::Read { line, modified_ns, is_ours } = &inside.runtime_config else {
        return groups(evidence);
    };
    let place = inside.settings.runtime_config.display().to_string();
    match line {
        SeenLine::Listed { functions, .. } if functions.is_empty() => vec![Finding::obstacle(
            Link::Listing,
            place,
            "its line asks for no function that is known",
            format!(
                "`warpgauge control unset {}`, or name functions: occupancy, instructions, coalescence, divergence",
                evidence.pid
            ),
        )],
        SeenLine::Listed { functions, by_hand } => {
            let who =
                if *by_hand { "a person's line, which wins over its group's" } else { "its group" };
            let mut found = vec![Finding::good(
                Link::Listing,
                &place,
                format!("listed for {functions} by {who}"),
            )];
            found.extend(too_early(evidence, inside, *modified_ns, &place));
            found
        }
        SeenLine::Resting => vec![Finding::obstacle(
            Link::Listing,
            place,
            "a person's line rests, since instrumentation is switched off",
            format!(
                "set instrumentation_enabled = true in {}; the next pass wakes it",
                evidence.ours.file.display()
            ),
        )],
        SeenLine::None => {
            let mut found = groups(evidence);
            if found.is_empty() {
                let remedy = if *is_ours {
                    "wait for the next pass, or run one: `warpgauge run`; its log says what keeps the file from being written"
                } else {
                    "mend what is said above of the file that the library looks at"
                };
                found.push(Finding::obstacle(
                    Link::Listing,
                    place,
                    format!(
                        "no line for process {}, although a group takes it",
                        process.namespace_pid
                    ),
                    remedy,
                ));
            }
            found
        }
    }
}

/// What the groups say; nothing where one takes the process and instrumentation is on.
fn groups(evidence: &Evidence) -> Vec<Finding> {
    let Evidence { ours, pid, .. } = evidence;
    let place = ours.file.display().to_string();
    let obstacle = |what: String, remedy: String| {
        vec![Finding::obstacle(Link::Listing, place.clone(), what, remedy)]
    };
    let by_hand = format!("`warpgauge control set {pid} occupancy` lists it by hand");
    if !ours.enabled {
        return obstacle(
            "instrumentation_enabled = false: nobody is measured".to_owned(),
            "set it to true".to_owned(),
        );
    }
    if evidence.groups.is_empty() {
        return obstacle(
            "monitored_pg_names names no group: a pass lists nobody".to_owned(),
            format!("name one; {by_hand}"),
        );
    }
    if evidence.groups.iter().any(|(_, outcome)| matches!(outcome, GroupOutcome::Takes)) {
        return Vec::new();
    }
    let undecided = evidence.groups.iter().find_map(|(name, outcome)| match outcome {
        GroupOutcome::Undecided(cause) => Some((name, cause)),
        _ => None,
    });
    match undecided {
        Some((name, cause)) => obstacle(
            format!("whether group {name} takes it cannot be decided: {cause}"),
            cause.reason.advice().to_owned(),
        ),
        None => obstacle(
            "no monitored group matches it".to_owned(),
            format!(
                "`warpgauge groups --explain {pid}` says what each group wants and what it has; {by_hand}"
            ),
        ),
    }
}

/// A line that the library cannot have seen yet.
fn too_early(
    evidence: &Evidence,
    inside: &Inside,
    modified_ns: u64,
    place: &str,
) -> Option<Finding> {
    let interval = inside.settings.polling_interval;
    let age = evidence.now_ns.saturating_sub(modified_ns);
    let is_early = u128::from(age) < interval.as_nanos() && matches!(inside.health, Ok(None));
    is_early.then(|| {
        Finding::obstacle(
            Link::Listing,
            place,
            format!("the file is younger than the library's polling interval of {} s: it has not looked yet", interval.as_secs()),
            "ask again a moment later",
        )
    })
}

/// Whether what it publishes has somewhere to go.
pub(super) fn folder(evidence: &Evidence, process: &Process, inside: &Inside) -> Vec<Finding> {
    let settings = &inside.settings;
    let place = said_by(inside, settings.measurements_by, "measurements_output_dir");
    let path = settings.measurements.display();
    let here = evidence.ours.measurements.display();
    let obstacle = |what: String, remedy: String| {
        vec![Finding::obstacle(Link::Folder, place.clone(), what, remedy)]
    };
    match inside.folder {
        SeenFolder::Missing => obstacle(
            format!("it writes to {path}, and there is no such folder as the process sees it"),
            format!(
                "a pass makes {here}; a container needs it mounted, and WARPGAUGE_MEASUREMENTS_OUTPUT_DIR set to where it is inside"
            ),
        ),
        SeenFolder::NotAFolder => obstacle(
            format!("{path} is no folder"),
            "move it away; a pass makes the folder".to_owned(),
        ),
        SeenFolder::Unreadable(reason) => vec![Finding::note(
            Link::Folder,
            place,
            format!("what the process sees at {path} cannot be told: {reason}"),
            reason.advice(),
        )],
        SeenFolder::There { owner, mode, .. } if !may_write(process, owner, mode) => obstacle(
            format!(
                "{path} has mode {mode:o} and belongs to user {owner}: user {} may not write there",
                process.uids.file_system
            ),
            format!(
                "chmod 1777 {path}, so that every measured user may, and none may touch the others' files"
            ),
        ),
        SeenFolder::There { is_ours: false, .. } if !is_contained(process) => obstacle(
            format!("it writes to {path}; the extension reads {here}"),
            format!(
                "make both the same: `paths.measurements` in {} and WARPGAUGE_MEASUREMENTS_OUTPUT_DIR",
                evidence.ours.file.display()
            ),
        ),
        SeenFolder::There { is_ours: false, .. } => vec![Finding::note(
            Link::Folder,
            place,
            format!("{path} is another folder than {here}"),
            "it must be a folder that the extension serves for this container",
        )],
        SeenFolder::There { .. } => {
            vec![Finding::good(Link::Folder, place, format!("it may write to {path}"))]
        }
    }
}

/// Whether the mode lets the process make files there. Its groups are not known, so the group's
/// bits count in its favour; ACLs and read-only mounts are not looked at.
fn may_write(process: &Process, owner: u32, mode: u32) -> bool {
    const WRITE_AND_PASS: u32 = 0o3;
    let user = process.uids.file_system;
    let has = |shift: u32| (mode >> shift) & WRITE_AND_PASS == WRITE_AND_PASS;
    match user {
        0 => true,
        user if user == owner => has(6),
        _ => has(3) || has(0),
    }
}
