//! The sums for people.

use std::io::{self, Write};

use comfy_table::{Cell, Color};
use warpgauge_formats::time::Timestamp;

use crate::cli::columns::Columns;
use crate::cli::events::units::{bytes, instant, share, time};
use crate::cli::printable::printable;
use crate::cli::screen::Screen;
use crate::traces::statistics::{Statistics, Trace};

/// What is not told.
pub(super) const NOTHING: &str = "-";

pub(in crate::cli::events) struct Shown<'s> {
    pub(in crate::cli::events) statistics: &'s Statistics,
    pub(in crate::cli::events) top: usize,
    pub(in crate::cli::events) screen: &'s Screen,
    /// Whether it is an event log that is drawn as a trace: its processes' numbers are made up.
    pub(in crate::cli::events) is_log: bool,
}

impl Shown<'_> {
    pub(super) fn all(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.statistics.categories.is_empty() {
            return writeln!(out, "no events");
        }
        self.traces(out)?;
        self.categories(out)?;
        self.devices(out)?;
        self.streams(out)?;
        self.kernels(out)?;
        self.copies(out)?;
        self.launches(out)?;
        self.memory(out)?;
        self.counters(out)
    }

    /// Writes a table with an empty line before it, unless it has no rows.
    pub(super) fn write(
        &self,
        out: &mut dyn Write,
        titles: &[&str],
        texts: &[&str],
        rows: Vec<Vec<Cell>>,
    ) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        self.table(out, titles, texts, rows)
    }

    /// Writes a table of which all columns but `texts` hold numbers. A first column of ranks is left
    /// out where nothing tells any.
    fn table(
        &self,
        out: &mut dyn Write,
        titles: &[&str],
        texts: &[&str],
        rows: Vec<Vec<Cell>>,
    ) -> io::Result<()> {
        let unranked = titles.first() == Some(&"RANK") && !self.has_ranks();
        let titles = titles.get(usize::from(unranked)..).unwrap_or_default();
        let mut columns = Columns::new(titles, self.screen);
        let numbers = titles.iter().filter(|title| !texts.contains(title));
        numbers.for_each(|title| columns.align_right(title, titles));
        for row in rows {
            columns.row(row.into_iter().skip(usize::from(unranked)).collect());
        }
        columns.write(out, "")
    }

    fn has_ranks(&self) -> bool {
        let mut traces = self.statistics.traces.iter();
        traces.any(|trace| trace.said.rank.is_some() || !trace.said.merged.is_empty())
    }

    /// Says how many rows are not shown.
    pub(super) fn more(&self, out: &mut dyn Write, more: usize, thing: &str) -> io::Result<()> {
        match more {
            0 => Ok(()),
            1 => writeln!(out, "and 1 more {thing}"),
            more => writeln!(out, "and {more} more {thing}s"),
        }
    }

    fn traces(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows = self.statistics.traces.iter().map(|trace| {
            let at = |place: fn((Timestamp, Timestamp)) -> Timestamp| {
                let moment = trace.span.map(|span| absolute(trace, place(span)));
                moment.map_or(NOTHING.to_owned(), instant)
            };
            let length = trace.span.map(|(first, last)| time(i128::from(last.since(first).0)));
            vec![
                Cell::new(ranks(trace)),
                Cell::new(length.as_deref().unwrap_or(NOTHING)),
                Cell::new(at(|(first, _)| first)),
                Cell::new(at(|(_, last)| last)),
                Cell::new(printable(&trace.name)),
            ]
        });
        let titles = ["RANK", "LENGTH", "FROM", "TO", "TRACE"];
        self.table(out, &titles, &["FROM", "TO", "TRACE"], rows.collect())
    }

    fn categories(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows = self.statistics.categories.iter();
        let rows = rows.map(|(name, count)| vec![Cell::new(count), Cell::new(printable(name))]);
        self.write(out, &["COUNT", "CATEGORY"], &["CATEGORY"], rows.collect())
    }

    fn kernels(&self, out: &mut dyn Write) -> io::Result<()> {
        let all = &self.statistics.kernels;
        let titles = ["TIME", "SHARE", "COUNT", "MEAN", "SHORTEST", "LONGEST", "KERNEL"];
        let (kernels, others) = all.by_time(self.top);
        let others = (others.count > 0).then_some(("(other)", others));
        let rows = kernels.into_iter().chain(others).map(|(name, totals)| {
            let (shortest, longest) = totals.ends.unwrap_or_default();
            vec![
                Cell::new(time(totals.time)),
                self.screen.cell(share(totals.time, all.all.time), Color::Cyan),
                Cell::new(totals.count),
                Cell::new(time(totals.mean())),
                Cell::new(time(shortest.into())),
                Cell::new(time(longest.into())),
                Cell::new(printable(name)),
            ]
        });
        self.write(out, &titles, &["KERNEL"], rows.collect())
    }

    fn copies(&self, out: &mut dyn Write) -> io::Result<()> {
        let titles = ["BYTES", "COUNT", "TIME", "RATE", "TOGETHER", "COPY"];
        let rate =
            |rate: Option<f64>| rate.map_or(NOTHING.to_owned(), |rate| format!("{rate:.3} GB/s"));
        let rows = self.statistics.copies.by_bytes().into_iter().map(|(kind, totals)| {
            vec![
                Cell::new(if totals.sized > 0 { bytes(totals.bytes) } else { NOTHING.to_owned() }),
                Cell::new(totals.count),
                Cell::new(time(totals.time)),
                self.screen.cell(rate(totals.rate()), Color::Cyan),
                Cell::new(rate(totals.rate_together())),
                Cell::new(printable(kind)),
            ]
        });
        self.write(out, &titles, &["COPY"], rows.collect())
    }

    fn memory(&self, out: &mut dyn Write) -> io::Result<()> {
        let titles =
            ["RANK", "DEVICE", "PEAK ALLOCATED", "AT", "PEAK RESERVED", "ALLOCATIONS", "FREES"];
        let peak = |peak: Option<(i64, Timestamp)>| {
            peak.map_or(NOTHING.to_owned(), |(most, _)| bytes(most.into()))
        };
        let traces = self.statistics.traces.iter();
        let rows = traces.flat_map(|trace| {
            trace.memory.iter().map(move |(kind, ordinal, totals)| {
                let at = totals.peak_allocated.map(|(_, at)| instant(absolute(trace, at)));
                vec![
                    Cell::new(rank(trace.said.rank)),
                    Cell::new(memory_device(kind, ordinal)),
                    Cell::new(peak(totals.peak_allocated)),
                    Cell::new(at.as_deref().unwrap_or(NOTHING)),
                    Cell::new(peak(totals.peak_reserved)),
                    Cell::new(totals.allocations),
                    Cell::new(totals.frees),
                ]
            })
        });
        self.write(out, &titles, &["AT"], rows.collect())
    }

    fn counters(&self, out: &mut dyn Write) -> io::Result<()> {
        let titles = ["RANK", "PROCESS", "VALUES", "LOWEST", "HIGHEST", "UNIT", "COUNTER"];
        let traces = || self.statistics.traces.iter();
        let all: usize = traces().map(|trace| trace.counters.iter().count()).sum();
        let rows = traces().flat_map(|trace| trace.counters.iter().map(move |row| (trace, row)));
        let rows = rows.take(self.top).map(|(trace, (track, name, series, range))| {
            let name = [name, series].into_iter().filter(|name| !name.is_empty());
            vec![
                Cell::new(rank(trace.said.rank)),
                Cell::new(printable(&track.process.to_string())),
                Cell::new(range.count),
                Cell::new(range.lowest),
                Cell::new(range.highest.0),
                Cell::new(printable(range.unit.as_deref().unwrap_or(NOTHING))),
                Cell::new(printable(&name.collect::<Vec<_>>().join(": "))),
            ]
        });
        self.write(out, &titles, &["UNIT", "COUNTER"], rows.collect())?;
        self.more(out, all.saturating_sub(self.top), "counter")
    }
}

pub(super) fn rank(rank: Option<i64>) -> String {
    rank.map_or(NOTHING.to_owned(), |rank| rank.to_string())
}

/// The rank of a trace, or how many ranks were merged into it.
fn ranks(trace: &Trace) -> String {
    match trace.said.merged.len() {
        0 => rank(trace.said.rank),
        ranks => format!("{ranks} merged"),
    }
}

/// A time of the trace on the wall clock, where the trace tells its base time.
fn absolute(trace: &Trace, at: Timestamp) -> Timestamp {
    Timestamp(at.0.saturating_add(trace.base.unwrap_or(0)))
}

/// `c10::DeviceType`: 0 is the host, 1 CUDA.
fn memory_device(kind: Option<i64>, ordinal: Option<i64>) -> String {
    match (kind, ordinal) {
        (Some(0), _) => "host".to_owned(),
        (Some(1) | None, Some(ordinal)) => ordinal.to_string(),
        (Some(kind), Some(ordinal)) => format!("{kind}:{ordinal}"),
        (Some(kind), None) => format!("{kind}:{NOTHING}"),
        (None, None) => NOTHING.to_owned(),
    }
}
