//! The sums for people.

use std::cmp::Reverse;
use std::io::{self, Write};

use comfy_table::{Cell, Color};
use warpgauge_formats::time::Timestamp;
use warpgauge_formats::trace::Id;

use super::Summed;
use super::remarks::remarks;
use crate::cli::columns::Columns;
use crate::cli::events::units::{bytes, instant, share, time};
use crate::cli::printable::printable;
use crate::cli::screen::Screen;
use crate::traces::statistics::{Device, Statistics, Trace};

/// What is not told.
const NOTHING: &str = "-";

pub(super) struct Shown<'s> {
    pub(super) summed: &'s Summed,
    pub(super) top: usize,
    pub(super) screen: &'s Screen,
}

impl Shown<'_> {
    pub(super) fn all(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.statistics().categories.is_empty() {
            writeln!(out, "no events")?;
            return self.remarks(out);
        }
        self.traces(out)?;
        self.categories(out)?;
        self.devices(out)?;
        self.streams(out)?;
        self.kernels(out)?;
        self.copies(out)?;
        self.launches(out)?;
        self.memory(out)?;
        self.counters(out)?;
        self.remarks(out)
    }

    fn statistics(&self) -> &Statistics {
        &self.summed.statistics
    }

    /// A table of which all columns but `texts` hold numbers.
    fn table<const N: usize>(&self, titles: [&str; N], texts: &[&str]) -> Columns {
        let mut columns = Columns::new(&titles, self.screen);
        let numbers = titles.iter().filter(|title| !texts.contains(title));
        numbers.for_each(|title| columns.align_right(title, &titles));
        columns
    }

    /// Writes a table with an empty line before it, unless it has no rows.
    fn write(
        &self,
        out: &mut dyn Write,
        mut columns: Columns,
        rows: Vec<Vec<Cell>>,
    ) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        rows.into_iter().for_each(|row| columns.row(row));
        columns.write(out, "")
    }

    /// Says how many rows are not shown.
    fn more(&self, out: &mut dyn Write, more: usize, thing: &str) -> io::Result<()> {
        match more {
            0 => Ok(()),
            1 => writeln!(out, "and 1 more {thing}"),
            more => writeln!(out, "and {more} more {thing}s"),
        }
    }

    fn traces(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut columns =
            self.table(["LENGTH", "RANK", "FROM", "TO", "TRACE"], &["FROM", "TO", "TRACE"]);
        for trace in &self.statistics().traces {
            let at = |place: fn((Timestamp, Timestamp)) -> Timestamp| {
                let moment = trace.span.map(|span| absolute(trace, place(span)));
                moment.map_or(NOTHING.to_owned(), instant)
            };
            let length = trace.span.map(|(first, last)| time(i128::from(last.since(first).0)));
            let row = vec![
                Cell::new(length.as_deref().unwrap_or(NOTHING)),
                Cell::new(ranks(trace)),
                Cell::new(at(|(first, _)| first)),
                Cell::new(at(|(_, last)| last)),
                Cell::new(printable(&trace.name)),
            ];
            columns.row(row);
        }
        columns.write(out, "")
    }

    fn categories(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = self.table(["COUNT", "CATEGORY"], &["CATEGORY"]);
        let rows = self.statistics().categories.iter();
        let rows = rows.map(|(name, count)| vec![Cell::new(count), Cell::new(printable(name))]);
        self.write(out, columns, rows.collect())
    }

    fn each_device(&self) -> impl Iterator<Item = &Device> {
        self.statistics().traces.iter().flat_map(|trace| &trace.devices)
    }

    fn devices(&self, out: &mut dyn Write) -> io::Result<()> {
        let titles = [
            "RANK", "DEVICE", "SPAN", "BUSY", "COMPUTE", "COMM", "HIDDEN", "MEMORY", "WAITING",
            "IDLE", "NAME",
        ];
        let columns = self.table(titles, &["NAME"]);
        // Ranks wait for each other in collective operations: who waits least is who is waited for.
        let told = || self.each_device().filter_map(Device::communication);
        let (least, most) =
            (told().map(|told| told.time).min(), told().map(|told| told.time).max());
        let rows = self.each_device().map(|device| {
            let whole = device.length();
            let part = |nanoseconds| share(nanoseconds, whole);
            let communication = device.communication();
            let comm = communication.map_or(NOTHING.to_owned(), |told| {
                format!("{}{}", part(told.time), if told.from_annotations { "*" } else { "" })
            });
            let hidden =
                communication.map_or(NOTHING.to_owned(), |told| share(told.hidden, told.time));
            let is_waited_for =
                least != most && communication.is_some_and(|told| Some(told.time) == least);
            vec![
                Cell::new(rank(device.rank)),
                Cell::new(ordinal(device)),
                Cell::new(time(whole)),
                self.screen.cell(part(device.busy()), Color::Cyan),
                Cell::new(part(device.compute())),
                if is_waited_for { self.screen.cell(comm, Color::Yellow) } else { Cell::new(comm) },
                Cell::new(hidden),
                Cell::new(part(device.memory())),
                Cell::new(part(device.waiting())),
                Cell::new(part(device.idle())),
                Cell::new(printable(device_name(device))),
            ]
        });
        self.write(out, columns, rows.collect())?;
        if told().any(|told| told.from_annotations) {
            writeln!(out, "* told by annotations: no kernel of a collective library ran")?;
        }
        Ok(())
    }

    fn streams(&self, out: &mut dyn Write) -> io::Result<()> {
        let titles = [
            "RANK",
            "DEVICE",
            "STREAM",
            "PIECES",
            "BUSY",
            "SHARE",
            "HOST WAIT",
            "KERNEL WAIT",
            "OTHER WAIT",
        ];
        let columns = self.table(titles, &[]);
        let worked =
            |device: &Device| device.streams.iter().filter(|stream| stream.pieces > 0).count();
        let all = self.each_device().flat_map(|device| {
            let worked = device.streams.iter().filter(|stream| stream.pieces > 0);
            let mut busiest: Vec<_> = worked.collect();
            busiest.sort_by_key(|stream| (Reverse(stream.busy), &stream.row));
            busiest.into_iter().take(self.top).map(move |stream| (device, stream))
        });
        let rows = all.map(|(device, stream)| {
            vec![
                Cell::new(rank(device.rank)),
                Cell::new(ordinal(device)),
                Cell::new(printable(&stream.row.to_string())),
                Cell::new(stream.pieces),
                Cell::new(time(stream.busy)),
                self.screen.cell(share(stream.busy, device.length()), Color::Cyan),
                Cell::new(time(stream.idle.host_wait)),
                Cell::new(time(stream.idle.kernel_wait)),
                Cell::new(time(stream.idle.other)),
            ]
        });
        self.write(out, columns, rows.collect())?;
        let more = |device| worked(device).saturating_sub(self.top);
        self.more(out, self.each_device().map(more).sum(), "stream")
    }

    fn kernels(&self, out: &mut dyn Write) -> io::Result<()> {
        let all = &self.statistics().kernels;
        let titles = ["TIME", "SHARE", "COUNT", "MEAN", "SHORTEST", "LONGEST", "KERNEL"];
        let columns = self.table(titles, &["KERNEL"]);
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
        self.write(out, columns, rows.collect())
    }

    fn copies(&self, out: &mut dyn Write) -> io::Result<()> {
        let titles = ["BYTES", "COUNT", "TIME", "RATE", "TOGETHER", "COPY"];
        let columns = self.table(titles, &["COPY"]);
        let rate =
            |rate: Option<f64>| rate.map_or(NOTHING.to_owned(), |rate| format!("{rate:.3} GB/s"));
        let rows = self.statistics().copies.by_bytes().into_iter().map(|(kind, totals)| {
            vec![
                Cell::new(if totals.sized > 0 { bytes(totals.bytes) } else { NOTHING.to_owned() }),
                Cell::new(totals.count),
                Cell::new(time(totals.time)),
                self.screen.cell(rate(totals.rate()), Color::Cyan),
                Cell::new(rate(totals.rate_together())),
                Cell::new(printable(kind)),
            ]
        });
        self.write(out, columns, rows.collect())
    }

    fn launches(&self, out: &mut dyn Write) -> io::Result<()> {
        let titles = [
            "RANK",
            "DEVICE",
            "LAUNCHES",
            "CALL P50",
            "CALL P90",
            "CALL P99",
            "CALL MAX",
            "RETURN P50",
            "RETURN P99",
            "WITHOUT CALL",
        ];
        let columns = self.table(titles, &[]);
        let worked = self
            .each_device()
            .filter(|device| device.delays.from_call.count() + device.delays.without_call > 0);
        let rows = worked.map(|device| {
            let (call, back) = (&device.delays.from_call, &device.delays.from_return);
            let show = |nanoseconds: Option<i64>| {
                Cell::new(nanoseconds.map_or(NOTHING.to_owned(), |span| time(span.into())))
            };
            vec![
                Cell::new(rank(device.rank)),
                Cell::new(ordinal(device)),
                Cell::new(call.count()),
                show(call.percentile(50)),
                show(call.percentile(90)),
                show(call.percentile(99)),
                show(call.ends().map(|(_, longest)| longest)),
                show(back.percentile(50)),
                show(back.percentile(99)),
                Cell::new(device.delays.without_call),
            ]
        });
        self.write(out, columns, rows.collect())
    }

    fn memory(&self, out: &mut dyn Write) -> io::Result<()> {
        let titles =
            ["RANK", "DEVICE", "PEAK ALLOCATED", "AT", "PEAK RESERVED", "ALLOCATIONS", "FREES"];
        let columns = self.table(titles, &["AT"]);
        let peak = |peak: Option<(i64, Timestamp)>| {
            peak.map_or(NOTHING.to_owned(), |(most, _)| bytes(most.into()))
        };
        let traces = self.statistics().traces.iter();
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
        self.write(out, columns, rows.collect())
    }

    fn counters(&self, out: &mut dyn Write) -> io::Result<()> {
        let titles = ["RANK", "PROCESS", "VALUES", "LOWEST", "HIGHEST", "UNIT", "COUNTER"];
        let columns = self.table(titles, &["UNIT", "COUNTER"]);
        let traces = || self.statistics().traces.iter();
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
        self.write(out, columns, rows.collect())?;
        self.more(out, all.saturating_sub(self.top), "counter")
    }

    fn remarks(&self, out: &mut dyn Write) -> io::Result<()> {
        let remarks = remarks(self.summed);
        if !remarks.is_empty() {
            writeln!(out)?;
        }
        remarks.iter().try_for_each(|remark| writeln!(out, "{}", printable(remark)))
    }
}

fn rank(rank: Option<i64>) -> String {
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

/// The ordinal, or the process where no event tells it.
fn ordinal(device: &Device) -> String {
    let process = || printable(&device.process.to_string()).into_owned();
    device.ordinal.map_or_else(process, |ordinal| ordinal.to_string())
}

/// The product, or what the trace calls the process, which may be a rank.
fn device_name(device: &Device) -> &str {
    let label = device.label.as_deref().filter(|_| device.process != Id::None);
    device.name.as_deref().or(label).unwrap_or(NOTHING)
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
