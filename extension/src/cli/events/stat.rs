//! `warpgauge events stat`: what a log holds.

mod drawn;
mod json;

use std::io::{self, Write};

use comfy_table::{Cell, Color};
use warpgauge_formats::event::CopyKind;
use warpgauge_formats::timeline::Timeline;

use super::progress::bar;
use super::units::{bytes, count, instant, offset, share, time};
use super::{Stat, misused, trace_stat};
use crate::cli::columns::Columns;
use crate::cli::printable::printable;
use crate::cli::screen::{Screen, write_json};
use crate::events::log::Opened;
use crate::events::reader::message;
use crate::events::statistics::{Node, Statistics};
use crate::report::Exit;
use crate::traces;

use self::drawn::Drawn;

pub(super) fn stat(arguments: &Stat, screen: &Screen, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let bar = bar(&arguments.files);
    let opened = match Opened::open(&arguments.files, arguments.format, &bar) {
        Ok(opened) if opened.is_trace() => {
            return trace_stat::stat(opened, arguments, &bar, screen, out);
        }
        Ok(opened) => opened,
        Err(fault) => return Ok(misused(fault)),
    };
    let mut statistics = Statistics::default();
    let mut work = traces::statistics::Statistics::of_devices();
    work.trace_begins("");
    let mut drawn = Drawn { log: &mut statistics, timeline: Timeline::new(&mut work) };
    let read = opened.read(&bar, &mut drawn);
    // What a trace cannot hold of the log is in the sums of the log.
    drop(drawn.timeline.end());
    work.trace_ends();
    bar.finish_and_clear();
    match read {
        Ok(format) if screen.json => {
            write_json(out, &json::document(&statistics, &work, format, arguments.top))?
        }
        Ok(_) => {
            Shown { statistics: &statistics, work: &work, top: arguments.top, screen }.all(out)?
        }
        Err(fault) if fault.is_of_content() => {
            misused(fault);
            return Ok(Exit::Findings);
        }
        Err(fault) => return Ok(misused(fault)),
    }
    Ok(if statistics.refused > 0 { Exit::Findings } else { Exit::Done })
}

struct Shown<'s> {
    statistics: &'s Statistics,
    work: &'s traces::statistics::Statistics,
    top: usize,
    screen: &'s Screen,
}

impl Shown<'_> {
    fn all(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.statistics.events.is_empty() {
            writeln!(out, "no events")?;
            return self.remarks(out);
        }
        self.overview(out)?;
        self.events(out)?;
        let work = trace_stat::tables::Shown {
            statistics: self.work,
            top: self.top,
            screen: self.screen,
            is_log: true,
        };
        work.devices(out)?;
        work.streams(out)?;
        self.kernels(out)?;
        work.launches(out)?;
        self.scopes(out)?;
        self.copies(out)?;
        self.devices(out)?;
        self.remarks(out)
    }

    fn table<const N: usize>(&self, titles: [&str; N], numbers: &[&str]) -> Columns {
        let mut columns = Columns::new(&titles, self.screen);
        numbers.iter().for_each(|title| columns.align_right(title, &titles));
        columns
    }

    fn overview(&self, out: &mut dyn Write) -> io::Result<()> {
        let Statistics { clock, sources, .. } = self.statistics;
        if let Some((first, last)) = clock.span {
            let length = time(i128::from(last.since(first).0));
            writeln!(out, "{} to {}, {length}", instant(first), instant(last))?;
        }
        writeln!(out)?;
        let mut columns =
            self.table(["EVENTS", "PID", "LENGTH", "APP", "SESSION"], &["EVENTS", "PID"]);
        for totals in sources.by_events().into_iter().take(self.top) {
            let source = &totals.source;
            let length =
                totals.clock.span.map(|(first, last)| time(i128::from(last.since(first).0)));
            columns.row(vec![
                Cell::new(totals.events),
                Cell::new(source.pid.map_or("-".to_owned(), |pid| pid.to_string())),
                Cell::new(length.as_deref().unwrap_or("-")),
                Cell::new(printable(source.app.as_deref().unwrap_or("-"))),
                Cell::new(printable(source.session.as_deref().unwrap_or("-"))),
            ]);
        }
        columns.write(out, "")?;
        self.more(out, sources.by_events().len(), "process")
    }

    /// Says how many rows are not shown.
    fn more(&self, out: &mut dyn Write, all: usize, thing: &str) -> io::Result<()> {
        match all.saturating_sub(self.top) {
            0 => Ok(()),
            1 => writeln!(out, "and 1 more {thing}"),
            more => writeln!(
                out,
                "and {more} more {thing}{}",
                if thing.ends_with('s') { "es" } else { "s" }
            ),
        }
    }

    fn events(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out)?;
        let mut columns = self.table(["COUNT", "EVENT"], &["COUNT"]);
        for (name, count) in &self.statistics.events {
            columns.row(vec![Cell::new(count), Cell::new(name)]);
        }
        columns.write(out, "")
    }

    fn kernels(&self, out: &mut dyn Write) -> io::Result<()> {
        let kernels = &self.statistics.kernels;
        if kernels.all.count == 0 {
            return Ok(());
        }
        writeln!(out)?;
        let titles = ["TIME", "SHARE", "LAUNCHES", "MEAN", "LONGEST", "KERNEL"];
        let mut columns = self.table(titles, &["TIME", "SHARE", "LAUNCHES", "MEAN", "LONGEST"]);
        let others = ("(kernels beyond those that are kept apart)", kernels.beyond);
        let others = (kernels.beyond.count > 0).then_some(others);
        for (name, totals) in kernels.by_time(self.top).0.into_iter().chain(others) {
            columns.row(vec![
                Cell::new(time(totals.time)),
                self.screen.cell(share(totals.time, kernels.all.time), Color::Cyan),
                Cell::new(totals.count),
                Cell::new(time(totals.mean())),
                Cell::new(time(i128::from(totals.longest()))),
                Cell::new(printable(name)),
            ]);
        }
        columns.write(out, "")?;
        self.more(out, kernels.names(), "kernel")
    }

    fn scopes(&self, out: &mut dyn Write) -> io::Result<()> {
        let scopes = &self.statistics.scopes;
        let outermost = scopes.outermost();
        if outermost.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let mut columns = self.table(["TIME", "COUNT", "SCOPE"], &["TIME", "COUNT"]);
        self.tree(&mut columns, &outermost, 0);
        columns.write(out, "")
    }

    /// Adds a row for each scope, those within it below it.
    fn tree(&self, columns: &mut Columns, nodes: &[&Node], depth: usize) {
        /// Deeper scopes are not shown.
        const DEEPEST: usize = 32;
        let indent = "  ".repeat(depth);
        for node in nodes.iter().take(self.top) {
            let open = match node.count - node.ended.min(node.count) {
                0 => String::new(),
                open => format!(" ({open} without an end)"),
            };
            columns.row(vec![
                Cell::new(time(node.time)),
                Cell::new(node.count),
                Cell::new(format!("{indent}{}{open}", printable(&node.name))),
            ]);
            if depth < DEEPEST {
                self.tree(columns, &self.statistics.scopes.within(node), depth + 1);
            }
        }
        let more = nodes.len().saturating_sub(self.top);
        if more > 0 {
            let rest = nodes.iter().skip(self.top);
            let (mut total, mut begun) = (0, 0);
            rest.for_each(|node| (total, begun) = (total + node.time, begun + node.count));
            let words = format!("{indent}({})", count(more as u64, "more scope"));
            columns.row(vec![Cell::new(time(total)), Cell::new(begun), Cell::new(words)]);
        }
    }

    fn copies(&self, out: &mut dyn Write) -> io::Result<()> {
        let kinds = self.statistics.copies.by_bytes();
        if kinds.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let mut columns = self.table(
            ["BYTES", "COPIES", "TIME", "RATE", "COPY"],
            &["BYTES", "COPIES", "TIME", "RATE"],
        );
        for (kind, totals) in kinds {
            let rate = totals.bytes_per_second().map(|rate| format!("{}/s", bytes(rate)));
            columns.row(vec![
                Cell::new(bytes(totals.bytes)),
                Cell::new(totals.count),
                Cell::new(time(totals.time)),
                Cell::new(rate.as_deref().unwrap_or("-")),
                Cell::new(kind_name(kind)),
            ]);
        }
        columns.write(out, "")
    }

    fn devices(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.statistics.devices.iter().next().is_none() {
            return Ok(());
        }
        writeln!(out)?;
        let titles = ["DEVICE", "PEAK MEMORY", "OF", "AT", "SAMPLES", "NAME"];
        let mut columns = self.table(titles, &["DEVICE", "PEAK MEMORY", "OF", "SAMPLES"]);
        let mebibytes =
            |count: Option<i64>| count.map_or("-".to_owned(), |count| format!("{count} MiB"));
        for (index, peak) in self.statistics.devices.iter() {
            columns.row(vec![
                Cell::new(index),
                Cell::new(mebibytes(peak.used_mib.map(|(used, _)| used))),
                Cell::new(mebibytes(peak.total_mib)),
                Cell::new(peak.used_mib.map_or("-".to_owned(), |(_, at)| instant(at))),
                Cell::new(peak.samples),
                Cell::new(printable(peak.name.as_deref().unwrap_or("-"))),
            ]);
        }
        columns.write(out, "")
    }

    /// What the sums do not hold.
    fn remarks(&self, out: &mut dyn Write) -> io::Result<()> {
        let remarks = remarks(self.statistics, self.work);
        if !remarks.is_empty() {
            writeln!(out)?;
        }
        remarks.iter().try_for_each(|remark| writeln!(out, "{}", printable(remark)))
    }
}

/// What the sums do not hold, and which clock their times are of.
fn remarks(statistics: &Statistics, work: &traces::statistics::Statistics) -> Vec<String> {
    let mut remarks = vec![];
    work.traces.iter().for_each(|trace| trace_stat::remarks::of_trace(trace, &mut remarks));
    if statistics.clock.is_monotonic() {
        let modified = statistics.files.iter().filter_map(|(_, end)| end.modified).max();
        remarks.push(offset(statistics.clock.offset(modified)));
    }
    if let Some((file, finding)) = &statistics.first_refused {
        let refused = count(statistics.refused, "thing");
        remarks.push(format!(
            "{refused} could not be read, the first: {file}:{}: {}; `warpgauge events validate` shows all",
            finding.line,
            message(finding)
        ));
    }
    if statistics.suspect > 0 {
        let suspect = count(statistics.suspect, "thing");
        remarks.push(format!("{suspect} cannot be right: `warpgauge events validate` shows them"));
    }
    for (name, seen) in statistics.unknown.iter() {
        remarks.push(format!("{name} is unknown and was not read, {}", count(seen.count, "time")));
    }
    for (number, what) in [
        (statistics.scopes.without_begin, "end of a scope without its begin"),
        (statistics.scopes.left_out, "scope beyond 65,536, not in the tree"),
        (statistics.devices.left_out, "sample of devices beyond 1,024, not counted"),
        (statistics.sources.left_out, "event of processes beyond 1,024, not told apart"),
    ] {
        if number > 0 {
            remarks.push(format!("{number} x {what}"));
        }
    }
    remarks
}

fn kind_name(kind: CopyKind) -> String {
    kind.name().map_or_else(|| format!("kind {}", kind.0), str::to_owned)
}
