//! `warpgauge run`: what the pass did.

use std::io::{self, Write};

use comfy_table::{Cell, CellAlignment, Color};

use super::columns::Columns;
use super::printable::printable;
use super::screen::{Screen, write_json};
use crate::pass;
use crate::report::{DeviceReport, EventReport, Exit, Forwarding, Refused, Report, Row};
use crate::setup::{Export, Setup};

pub(super) fn run(
    setup: &Setup,
    export: &Export,
    dry_run: bool,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let report = if dry_run { pass::preview(setup)? } else { pass::run(setup, export)? };
    if screen.json {
        write_json(out, &report)?;
    } else {
        write(out, &report, dry_run, screen)?;
    }
    Ok(report.exit())
}

fn write(out: &mut dyn Write, report: &Report, dry_run: bool, screen: &Screen) -> io::Result<()> {
    if !report.processes.is_empty() {
        table(&report.processes, screen).write(out, "")?;
        writeln!(out)?;
    }
    let would = if dry_run { "would be " } else { "" };
    let changed = if report.runtime_config_changed { "written" } else { "unchanged" };
    writeln!(
        out,
        "listed     {} processes; runtime configuration {would}{changed}",
        report.listed
    )?;
    if let Some(failure) = &report.runtime_config_failure {
        writeln!(out, "           {failure}")?;
    }
    if dry_run {
        for remark in &report.remarks {
            writeln!(out, "           {remark}")?;
        }
    }
    write!(out, "read       {} measurements of {} processes", report.read, report.processes.len())?;
    writeln!(out, "{}", if dry_run { " (they stay where they are)" } else { "" })?;
    for refused in &report.refused {
        writeln!(
            out,
            "refused    {} x {}, the first: {}",
            refused.count, refused.reason, refused.example
        )?;
    }
    if let Some(EventReport { lines, skipped, suspect, failure }) = &report.events {
        writeln!(out, "followed   {lines} lines of event logs")?;
        for Refused { reason, count, example } in skipped {
            writeln!(out, "skipped    {count} x {reason}, the first: {}", printable(example))?;
        }
        if *suspect > 0 {
            writeln!(
                out,
                "odd        {suspect} findings about lines that were taken; `warpgauge events validate` names them"
            )?;
        }
        if let Some(failure) = failure {
            writeln!(out, "to mend    {}", printable(failure))?;
        }
    }
    if let Some(devices) = &report.devices {
        write_devices(out, devices)?;
    }
    if report.unattributed > 0 {
        writeln!(
            out,
            "unowned    {} measurements of processes that were never listed; their files are in the quarantine",
            report.unattributed
        )?;
    }
    if !dry_run {
        write_delivery(out, report)?;
        if let Some(forwarding) = &report.forwarding {
            write_forwarding(out, forwarding)?;
        }
    }
    writeln!(out, "took       {:.1} ms", report.duration_s * 1_000.0)
}

fn write_devices(out: &mut dyn Write, devices: &DeviceReport) -> io::Result<()> {
    let DeviceReport { gpus, mig_instances, faults, records, failure } = devices;
    write!(out, "asked      {gpus} GPUs")?;
    if *mig_instances > 0 {
        write!(out, " and {mig_instances} MIG instances")?;
    }
    match records {
        Some(records) => writeln!(out, "; {records} telemetry records")?,
        None => writeln!(out)?,
    }
    for Refused { reason, count, example } in faults {
        writeln!(out, "no answer  {count} x {reason}, the first: {}", printable(example))?;
    }
    if let Some(failure) = failure {
        writeln!(out, "to mend    {}", printable(failure))?;
    }
    Ok(())
}

fn write_delivery(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let delivery = &report.delivery;
    writeln!(out, "delivered  {} data points", delivery.accepted_points)?;
    let lost = [
        ("refused in part by the receiver", delivery.rejected_points),
        (
            "refused for good by the receiver; they lie in the folder rejected/",
            delivery.refused_points,
        ),
        ("dropped from the full or over-age spool", delivery.dropped_points),
    ];
    for (how, points) in lost {
        if points > 0 {
            writeln!(out, "lost       {points} data points {how}")?;
        }
    }
    if delivery.waiting_requests > 0 {
        let (requests, bytes) = (delivery.waiting_requests, delivery.waiting_bytes);
        writeln!(out, "waiting    {requests} requests, {bytes} bytes; nothing is lost")?;
    }
    let reasons = [("because", &delivery.waits_for), ("to mend", &delivery.misconfigured)];
    for (what, reason) in reasons {
        if let Some(reason) = reason {
            writeln!(out, "{what}    {reason}")?;
        }
    }
    Ok(())
}

fn write_forwarding(out: &mut dyn Write, forwarding: &Forwarding) -> io::Result<()> {
    let Forwarding { lines, bytes, refused, retries, unread, waits_for, left_by, misconfigured } =
        forwarding;
    write!(out, "forwarded  {lines} lines of event logs, {bytes} bytes")?;
    writeln!(out, "{}", if *retries > 0 { format!("; {retries} retries") } else { String::new() })?;
    for (what, skipped) in [("set aside", refused), ("not read ", unread)] {
        for Refused { reason, count, example } in skipped {
            writeln!(out, "{what}  {count} x {reason}, the first: {}", printable(example))?;
        }
    }
    if let Some(limit) = left_by {
        writeln!(out, "left       the rest, by {limit}; the next pass goes on")?;
    }
    for (what, reason) in [("because", waits_for), ("to mend", misconfigured)] {
        if let Some(reason) = reason {
            writeln!(out, "{what}    {}", printable(reason))?;
        }
    }
    Ok(())
}

fn table(rows: &[Row], screen: &Screen) -> Columns {
    let titles = [
        "GROUP",
        "PID",
        "LAUNCHES",
        "INSTRUCTIONS",
        "OCCUPANCY",
        "COALESCENCE",
        "DIVERGENCE",
        "EXECUTABLE",
    ];
    let mut columns = Columns::new(&titles, screen);
    let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let count = |count: Option<u128>| {
        number(count.map_or_else(|| "-".to_owned(), |count| count.to_string()))
    };
    let percent = |share: Option<f64>| {
        number(share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0)))
    };
    for row in rows {
        columns.row(vec![
            match &row.group {
                Some(group) => screen.cell(group, Color::Cyan),
                None => screen.cell("(by hand)", Color::Yellow),
            },
            number(row.pid.to_string()),
            count(row.launches),
            count(row.instructions),
            percent(row.occupancy),
            percent(row.coalescence),
            percent(row.divergence),
            Cell::new(printable(&row.executable)),
        ]);
    }
    columns
}
