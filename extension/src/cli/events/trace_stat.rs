//! `warpgauge events stat` for traces: what runs on the devices, and for how long.

pub(super) mod json;
pub(super) mod remarks;
pub(super) mod tables;
mod work;

use std::cell::Cell;
use std::io::Write;

use indicatif::ProgressBar;

use super::Stat;
use crate::cli::printable::printable;
use crate::cli::screen::{Screen, write_json};
use crate::events::format::Format;
use crate::events::input::Input;
use crate::events::log::{LogError, Opened};
use crate::report::Exit;
use crate::traces::read;
use crate::traces::statistics::Statistics;

/// What was read of the traces.
struct Summed {
    statistics: Statistics,
    /// Why a trace could not be read to its end, with its file.
    faults: Vec<String>,
    /// Quotes that were mended, by file.
    mended: Vec<(String, u64)>,
}

pub(super) fn stat(
    opened: Opened,
    arguments: &Stat,
    bar: &ProgressBar,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let summed = sum(opened, arguments.repair, bar);
    bar.finish_and_clear();
    let summed = match summed {
        Ok(summed) => summed,
        Err(fault) => return Ok(super::misused(fault)),
    };
    if screen.json {
        write_json(out, &json::document(&summed, arguments.top))?;
    } else {
        let statistics = &summed.statistics;
        tables::Shown { statistics, top: arguments.top, screen, is_log: false }.all(out)?;
        let remarks = remarks::remarks(&summed);
        if !remarks.is_empty() {
            writeln!(out)?;
        }
        remarks.iter().try_for_each(|remark| writeln!(out, "{}", printable(remark)))?;
    }
    let is_whole = summed.faults.is_empty() && summed.statistics.refused == 0;
    Ok(if is_whole { Exit::Done } else { Exit::Findings })
}

fn sum(opened: Opened, repair: bool, bar: &ProgressBar) -> Result<Summed, LogError> {
    let Opened { files, mut first, format } = opened;
    let before = format.unwrap_or(Format::Kineto);
    let mut summed = Summed { statistics: Statistics::default(), faults: vec![], mended: vec![] };
    for path in files {
        let input = match first.take() {
            Some(input) => input,
            None => Input::open(&path, bar)?,
        };
        // What tells nothing, because it is cut off early, is read as a trace and found to be broken.
        match Format::of(input.head()) {
            Some(Format::Perfetto) => return Err(LogError::WrittenOnly { path }),
            Some(found) if !found.is_trace() => {
                return Err(LogError::Mixed { path, found, before });
            }
            _ => {}
        }
        let name = input.name.clone();
        summed.statistics.trace_begins(&name);
        let end = read::read(input, repair, &Cell::new(false), &mut summed.statistics);
        summed.statistics.trace_ends();
        summed.faults.extend(end.fault.map(|fault| format!("{name}:{fault}")));
        if end.mended > 0 {
            summed.mended.push((name, end.mended));
        }
    }
    Ok(summed)
}
