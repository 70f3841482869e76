//! Reads the evidence. Files are opened as the process sees them, through its own root, so that a
//! container's paths mean what they mean inside.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use warpgauge_wire::limits::MAX_RUNTIME_CONFIG_BYTES;
use warpgauge_wire::plan_for;

use super::evidence::{Evidence, Inside, Ours, Presence, SeenConfig, SeenFolder, SeenLine};
use super::startup::{Settings, Startup};
use crate::control::RuntimeConfig;
use crate::groups::{Process, Subject};
use crate::instrument_health::HealthReport;
use crate::instrument_health::file::{self, HealthFault};
use crate::listing::Listing;
use crate::measurements::folder::Folder;
use crate::procfs::{ProcError, ProcFile, ProcessDir, Unread};
use crate::setup::Setup;

/// As the library itself: more than any settings file needs.
const MAX_SETTINGS_BYTES: u64 = 64 << 10;

/// Gathers what there is to know about a pid.
///
/// # Errors
/// When `/proc` itself cannot be used. Whatever else cannot be read is part of the evidence.
pub fn gather(setup: &Setup, pid: u32, now_ns: u64) -> Result<Evidence, ProcError> {
    let explanation = setup.rules.explain(&setup.proc, pid, setup.own_pid)?;
    let paths = &setup.config.paths;
    // A state folder that this user may not read tells nothing; that is no finding.
    let listing = Listing::load(&paths.state).unwrap_or_default();
    let mut evidence = Evidence {
        pid,
        now_ns,
        asked_by: nix::unistd::geteuid().as_raw(),
        listed_before: None,
        groups: explanation.groups.into_iter().map(|group| (group.name, group.outcome)).collect(),
        ours: Ours {
            file: setup.path.clone(),
            runtime_config: paths.runtime_config.clone(),
            measurements: paths.measurements.clone(),
            enabled: setup.config.instrumentation_enabled,
            functions: setup.config.functions,
        },
        inside: None,
        subject: explanation.subject,
    };
    let running = match &evidence.subject {
        Subject::Running(process) => Some(process),
        _ => None,
    };
    let start_ticks = running.map(|process| process.id.start_ticks);
    evidence.listed_before = listing
        .processes()
        .iter()
        .filter(|listed| listed.pid == pid && Some(listed.start_ticks) != start_ticks)
        .map(|listed| listed.start_ticks)
        .max();
    evidence.inside = running.and_then(|process| {
        // Gone by now is gone: the next question finds out.
        let dir = setup.proc.process(pid).ok()?;
        Some(look_inside(&dir, process, &evidence.ours))
    });
    Ok(evidence)
}

fn look_inside(dir: &ProcessDir, process: &Process, ours: &Ours) -> Inside {
    let mut environ = Vec::new();
    let startup = dir.read(ProcFile::Environ, &mut environ).map(|()| Startup::parse(&environ));
    let known = startup.clone().unwrap_or_default();
    let (settings_file, text) = match &known.settings_file {
        None => (Presence::Missing, Vec::new()),
        Some(path) => match read_inside(dir, path, MAX_SETTINGS_BYTES) {
            Ok((text, _)) => (Presence::There, text),
            Err(reason) => (absence(reason), Vec::new()),
        },
    };
    let settings = Settings::of(&known, &text);
    let injected = known.injection.as_ref().map_or(Presence::Missing, |path| {
        match dir.open_inside(path, OFlag::O_PATH) {
            Ok(_) => Presence::There,
            Err(errno) => absence(errno.into()),
        }
    });
    let (folder, health) = look_at_folder(dir, &settings.measurements, ours, process);
    Inside {
        libraries: dir.libraries(),
        device_open: dir.has_open(b"/dev/nvidia"),
        injected,
        settings_file,
        runtime_config: look_at_config(dir, &settings.runtime_config, ours, process.namespace_pid),
        folder,
        health,
        settings,
        startup,
    }
}

/// Opening says [`Unread::Vanished`] of a missing file: here the file is missing, not the process.
fn absence(reason: Unread) -> Presence {
    match reason {
        Unread::Vanished | Unread::Failed(Errno::ENOTDIR) => Presence::Missing,
        reason => Presence::Unknown(reason),
    }
}

fn read_inside(dir: &ProcessDir, path: &Path, limit: u64) -> Result<(Vec<u8>, File), Unread> {
    let failed =
        |fault: io::Error| Unread::Failed(fault.raw_os_error().map_or(Errno::EIO, Errno::from_raw));
    // What a path leads to is looked at before it is opened: opening a device may act on it.
    let found = File::from(dir.open_inside(path, OFlag::O_PATH)?);
    if !found.metadata().map_err(failed)?.is_file() {
        return Err(Unread::Malformed);
    }
    let file = File::from(dir.open_inside(path, OFlag::O_RDONLY)?);
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Unread::Malformed);
    }
    let mut text = Vec::new();
    (&file).take(limit + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > limit {
        return Err(Unread::TooLarge);
    }
    Ok((text, file))
}

fn look_at_config(dir: &ProcessDir, path: &Path, ours: &Ours, own_pid: u32) -> SeenConfig {
    let (text, file) = match read_inside(dir, path, MAX_RUNTIME_CONFIG_BYTES) {
        Ok(read) => read,
        Err(reason) => {
            return match absence(reason) {
                Presence::Unknown(reason) => SeenConfig::Unreadable(reason),
                _ => SeenConfig::Missing,
            };
        }
    };
    let metadata = file.metadata().ok();
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let here = ours.runtime_config.metadata().ok().map(identity);
    let modified_ns = metadata.as_ref().map_or(0, |metadata| {
        let seconds = u64::try_from(metadata.mtime()).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000)
    });
    let is_ours = here.is_some() && here == metadata.map(identity);
    SeenConfig::Read { is_ours, line: line_of(&text, own_pid), modified_ns }
}

fn line_of(text: &[u8], own_pid: u32) -> SeenLine {
    let config = RuntimeConfig::parse(text);
    let by_hand = config.manual.iter().any(|line| line.entry.pid == own_pid);
    match plan_for(text, own_pid) {
        Some(entry) => SeenLine::Listed { functions: entry.functions, by_hand },
        // Taken apart, but no entry to the library: switched off.
        None if by_hand => SeenLine::Resting,
        None => SeenLine::None,
    }
}

type Health = Result<Option<HealthReport>, HealthFault>;

fn look_at_folder(
    dir: &ProcessDir,
    path: &Path,
    ours: &Ours,
    process: &Process,
) -> (SeenFolder, Health) {
    let opened = dir.open_inside(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY);
    let folder = match opened {
        Ok(fd) => File::from(fd),
        Err(Errno::ENOENT) => return (SeenFolder::Missing, Ok(None)),
        Err(Errno::ENOTDIR) => return (SeenFolder::NotAFolder, Ok(None)),
        Err(errno) => return (SeenFolder::Unreadable(errno.into()), Ok(None)),
    };
    let metadata = match folder.metadata() {
        Ok(metadata) => metadata,
        Err(_) => return (SeenFolder::Unreadable(Unread::Failed(Errno::EIO)), Ok(None)),
    };
    let here = ours.measurements.metadata().ok();
    let is_ours =
        here.is_some_and(|here| (here.dev(), here.ino()) == (metadata.dev(), metadata.ino()));
    let seen = SeenFolder::There { is_ours, owner: metadata.uid(), mode: metadata.mode() & 0o7777 };
    let uids = process.uids.all();
    let subject = file::Subject {
        own_pid: process.namespace_pid,
        created_ns: process.created_unix_nanoseconds,
        uids: &uids,
    };
    (seen, file::read(&Folder::at(folder.into(), path.to_owned()), subject))
}
