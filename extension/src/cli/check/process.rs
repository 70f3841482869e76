//! `warpgauge check --pid N`: why a process is not measured.

use std::io::{self, Write};

use comfy_table::Color;
use serde_json::json;

use crate::cli::columns::Columns;
use crate::cli::printable::printable;
use crate::cli::screen::{Screen, write_json};
use crate::report::Exit;
use crate::setup::Setup;
use crate::unmeasured::findings::{findings, is_measured};
use crate::unmeasured::{Finding, Weight, gather};

pub(in crate::cli) fn check(
    setup: &Setup,
    pid: u32,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let evidence = gather::gather(setup, pid, screen.now_unix_nanoseconds)?;
    let findings = findings(&evidence);
    let measured = is_measured(&findings);
    if screen.json {
        write_json(out, &json!({ "pid": pid, "measured": measured, "findings": findings }))?;
    } else {
        write(out, pid, measured, &findings, screen)?;
    }
    Ok(if measured { Exit::Done } else { Exit::Findings })
}

fn write(
    out: &mut dyn Write,
    pid: u32,
    measured: bool,
    findings: &[Finding],
    screen: &Screen,
) -> io::Result<()> {
    let verdict = if measured { "is measured" } else { "is not measured, or not usefully" };
    writeln!(out, "process {pid} {verdict}")?;
    writeln!(out)?;
    let mut columns = Columns::wrapping(&["", "WHERE", "WHAT"], screen);
    for finding in findings {
        let weight = match finding.weight {
            Weight::Good => screen.cell("ok", Color::Green),
            Weight::Note => screen.cell("note", Color::Cyan),
            Weight::Obstacle => screen.cell("mend", Color::Red),
        };
        let what = match finding.remedy.as_str() {
            "" => finding.what.clone(),
            remedy => format!("{}. To do: {remedy}", finding.what),
        };
        let (place, what) = (printable(&finding.place), printable(&what));
        columns.row(vec![weight, place.into(), what.into()]);
    }
    columns.write(out, "")
}
