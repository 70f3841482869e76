//! `warpgauge events convert`: from one format to another.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use comfy_table::Cell;
use serde_json::json;
use warpgauge_formats::gpu_flight;

use super::progress::bar;
use super::units::{count, offset};
use super::{Convert, Details, misused};
use crate::cli::columns::Columns;
use crate::cli::printable::printable;
use crate::cli::screen::{Screen, write_json};
use crate::events::convert::{Conversion, ConvertError, Place, Report};
use crate::events::format::Format;
use crate::events::tables::WriteError;
use crate::report::Exit;
use crate::traces;
use crate::traces::split::SplitBy;

pub(super) fn convert(
    arguments: &Convert,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let conversion = Conversion {
        files: arguments.files.clone(),
        from: arguments.from,
        to: arguments.to,
        out: arguments.out.clone().filter(|out| out != Path::new("-")),
        details: match arguments.details {
            Details::All => gpu_flight::Details::All,
            Details::First => gpu_flight::Details::First,
        },
        lossy: arguments.lossy,
        force: arguments.force,
    };
    let misuse = idle(arguments).or_else(|| misuse(&conversion, arguments.split, screen));
    if let Some(words) = misuse {
        return Ok(misused(words));
    }
    let of_traces = match of_traces(arguments, &conversion) {
        Ok(conversion) => conversion,
        Err(fault) => return Ok(misused(fault)),
    };
    let bar = bar(&conversion.files);
    let outcome = match conversion.to.is_trace() {
        false => conversion.run(&bar, out),
        true => of_traces.run(&bar, out),
    };
    bar.finish_and_clear();
    let report = match outcome {
        Ok(report) => report,
        Err(error) => return failed(error),
    };
    // Nothing but the log itself goes where the log goes.
    match conversion.out {
        Some(_) if screen.json => write_json(out, &as_json(&report))?,
        Some(_) => show(&report, arguments.lossy, screen, out)?,
        None => {
            show(&report, arguments.lossy, &Screen { color: false, ..*screen }, &mut io::stderr())?
        }
    }
    Ok(if report.is_placed { Exit::Done } else { Exit::Findings })
}

/// The same for traces.
fn of_traces(
    arguments: &Convert,
    conversion: &Conversion,
) -> Result<traces::convert::Conversion, regex::Error> {
    let Conversion { files, from, to, out, lossy, force, .. } = conversion.clone();
    let (merge, split, repair) = (arguments.merge, arguments.split, arguments.repair);
    let filter = arguments.filter.filter()?;
    Ok(traces::convert::Conversion {
        files,
        from,
        to,
        out,
        lossy,
        force,
        repair,
        filter,
        merge,
        split,
    })
}

/// An argument that means nothing to the conversion.
fn idle(arguments: &Convert) -> Option<String> {
    let Convert { to, out, merge, split, repair, filter, .. } = arguments;
    let of_traces = [
        (*merge, "--merge"),
        (split.is_some(), "--split"),
        (*repair, "--repair"),
        (!filter.is_empty(), "a filter"),
    ];
    if let Some((_, name)) = of_traces.iter().find(|(given, _)| *given && !to.is_trace()) {
        return Some(format!("{name} works on traces, and {to} is a format of event logs"));
    }
    let to_stdout = out.as_ref().is_none_or(|out| out == Path::new("-"));
    (split.is_some() && to_stdout).then(|| "--split makes several files: give -o".to_owned())
}

/// What can be told to be wrong before anything is read.
fn misuse(conversion: &Conversion, split: Option<SplitBy>, screen: &Screen) -> Option<String> {
    let Some(out) = &conversion.out else {
        if conversion.to == Format::Parquet {
            return Some("tables need a folder: give one with -o".to_owned());
        }
        let words =
            "--json reports on the conversion and needs -o: the log itself goes to standard output";
        return screen.json.then(|| words.to_owned());
    };
    // The parts of a trace are known when it has been read.
    let files = if split.is_some() { vec![] } else { conversion.outputs() };
    for path in files {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let is_folder = conversion.to == Format::Parquet && metadata.is_dir();
        if !metadata.is_file() && !metadata.is_symlink() && !is_folder {
            return Some(format!("{} is no file and is not replaced", path.display()));
        }
        let is_empty =
            is_folder && path.read_dir().is_ok_and(|mut entries| entries.next().is_none());
        if !conversion.force && !is_empty {
            return Some(format!("{} is there already; --force replaces it", path.display()));
        }
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.filter(|folder| !folder.is_dir())?;
    Some(format!("{} is no folder; make it first", folder.display()))
}

/// What a person has to change is wrong usage; a log that cannot be read is a finding.
fn failed(error: ConvertError) -> anyhow::Result<Exit> {
    let for_a_person = |fault: &io::Error| {
        matches!(
            fault.kind(),
            io::ErrorKind::NotFound
                | io::ErrorKind::AlreadyExists
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::ReadOnlyFilesystem
        )
    };
    let exit = match error {
        // The reader of a pipe may have seen enough, which the caller knows.
        ConvertError::Stdout(fault) => return Err(fault.into()),
        ConvertError::Read(ref fault) if fault.is_of_content() => Exit::Findings,
        ConvertError::Read(_) => Exit::Usage,
        ConvertError::NoLog(_)
        | ConvertError::NoTrace(_)
        | ConvertError::Several
        | ConvertError::OneLog
        | ConvertError::NoRanks
        | ConvertError::Parts(_) => Exit::Usage,
        ConvertError::Merge(_) => Exit::Findings,
        ConvertError::Write(WriteError::Sessions | WriteError::Foreign { .. }) => Exit::Usage,
        ConvertError::Output { error: ref fault, .. }
        | ConvertError::Write(WriteError::Folder { error: ref fault, .. })
            if for_a_person(fault) =>
        {
            Exit::Usage
        }
        ConvertError::Output { .. } | ConvertError::Write(_) => Exit::TryAgain,
    };
    eprintln!("warpgauge: {}", printable(&error.to_string()));
    Ok(exit)
}

fn show(report: &Report, lossy: bool, screen: &Screen, out: &mut dyn Write) -> io::Result<()> {
    let notes = &report.notes;
    for (file, told) in &notes.monotonic {
        tracing::debug!("{}: {}; they are written as they are", printable(file), offset(*told));
    }
    let stderr = &mut io::stderr();
    for place in &notes.findings {
        let text = format!("{}:{}: {}", place.file, place.line, place.message());
        writeln!(stderr, "{}", printable(&text))?;
    }
    for remark in &report.remarks {
        writeln!(stderr, "{}", printable(remark))?;
    }
    let unsaid = notes.refused.saturating_sub(notes.findings.len() as u64);
    if unsaid > 0 {
        writeln!(stderr, "and {unsaid} more like these: `warpgauge events validate` shows all")?;
    }
    if !report.losses.is_empty() {
        let words = match lossy {
            true => "left out, because the format cannot hold it or it could not be read:",
            false => "nothing was written: this would be lost (--lossy leaves it out):",
        };
        writeln!(stderr, "{words}")?;
        const TITLES: [&str; 2] = ["TIMES", "WHAT"];
        let mut columns = Columns::new(&TITLES, &Screen { color: false, ..*screen });
        columns.align_right("TIMES", &TITLES);
        for (name, times) in &report.losses {
            columns.row(vec![Cell::new(times), Cell::new(printable(name))]);
        }
        columns.write(stderr, "  ")?;
    }
    if !report.left_out.is_empty() {
        let kinds = report.left_out.iter().map(|(kind, times)| format!("{times} x {kind}"));
        let kinds: Vec<_> = kinds.collect();
        writeln!(stderr, "the filters left out {}", kinds.join(", "))?;
    }
    if report.is_placed {
        let suspect = match notes.suspect {
            0 => String::new(),
            suspect => {
                format!(", {} suspect (see `warpgauge events validate`),", count(suspect, "thing"))
            }
        };
        let into = into(&report.written);
        writeln!(out, "{}{suspect} into {}", count(report.events, "event"), printable(&into))?;
    }
    Ok(())
}

/// Where the result stands, in a few words.
fn into(files: &[PathBuf]) -> String {
    /// Files that are named each.
    const MOST_NAMED: usize = 8;
    match files {
        [] => "standard output".to_owned(),
        [first, .., last] if files.len() > MOST_NAMED => {
            format!("{} files, {} to {}", files.len(), first.display(), last.display())
        }
        files => {
            let files: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
            files.join(", ")
        }
    }
}

fn as_json(report: &Report) -> serde_json::Value {
    let loss = |(name, times): &(String, u64)| json!({ "what": name, "times": times });
    let notes = &report.notes;
    let finding = |place: &Place| json!({ "file": place.file, "line": place.line, "message": place.message() });
    json!({
        "events": report.events,
        "written": report.written,
        "is_written": report.is_placed,
        "losses": report.losses.iter().map(loss).collect::<Vec<_>>(),
        "left_out": report.left_out.iter().map(loss).collect::<Vec<_>>(),
        "remarks": report.remarks,
        "refused": notes.refused,
        "suspect": notes.suspect,
        "first_refused": notes.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}
