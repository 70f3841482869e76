//! What ran on the devices, for people.

use std::cmp::Reverse;
use std::io::{self, Write};

use comfy_table::{Cell, Color};
use warpgauge_formats::trace::Id;

use super::tables::{NOTHING, Shown, rank};
use crate::cli::events::units::{share, time};
use crate::cli::printable::printable;
use crate::traces::statistics::{Delays, Device};

impl Shown<'_> {
    fn each_device(&self) -> impl Iterator<Item = &Device> {
        // A log may be that of many sessions with a device each; ranks are all of interest.
        let most = if self.is_log { self.top } else { usize::MAX };
        self.all_devices().take(most)
    }

    fn all_devices(&self) -> impl Iterator<Item = &Device> {
        self.statistics.traces.iter().flat_map(|trace| &trace.devices)
    }

    /// The ordinal, or the process where no event tells it.
    fn ordinal(&self, device: &Device) -> String {
        match device.ordinal {
            Some(ordinal) => ordinal.to_string(),
            None if self.is_log => NOTHING.to_owned(),
            None => printable(&device.process.to_string()).into_owned(),
        }
    }

    pub(in crate::cli::events) fn devices(&self, out: &mut dyn Write) -> io::Result<()> {
        let titles = [
            "RANK", "DEVICE", "SPAN", "BUSY", "COMPUTE", "COMM", "HIDDEN", "MEMORY", "WAITING",
            "IDLE", "NAME",
        ];
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
                Cell::new(self.ordinal(device)),
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
        self.write(out, &titles, &["NAME"], rows.collect())?;
        let more = self.all_devices().count() - self.each_device().count();
        self.more(out, more, "device")?;
        if told().any(|told| told.from_annotations) {
            writeln!(out, "* told by annotations: no kernel of a collective library ran")?;
        }
        Ok(())
    }

    pub(in crate::cli::events) fn streams(&self, out: &mut dyn Write) -> io::Result<()> {
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
                Cell::new(self.ordinal(device)),
                Cell::new(printable(&stream.row.to_string())),
                Cell::new(stream.pieces),
                Cell::new(time(stream.busy)),
                self.screen.cell(share(stream.busy, device.length()), Color::Cyan),
                Cell::new(time(stream.idle.host_wait)),
                Cell::new(time(stream.idle.kernel_wait)),
                Cell::new(time(stream.idle.other)),
            ]
        });
        self.write(out, &titles, &[], rows.collect())?;
        let more = |device| worked(device).saturating_sub(self.top);
        self.more(out, self.each_device().map(more).sum(), "stream")
    }

    pub(in crate::cli::events) fn launches(&self, out: &mut dyn Write) -> io::Result<()> {
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
        let worked = self.each_device().filter(|device| {
            let Delays { from_call, without_call, .. } = &device.delays;
            from_call.count() > 0 || (*without_call > 0 && !self.is_log)
        });
        let rows = worked.map(|device| {
            let (call, back) = (&device.delays.from_call, &device.delays.from_return);
            let show = |nanoseconds: Option<i64>| {
                Cell::new(nanoseconds.map_or(NOTHING.to_owned(), |span| time(span.into())))
            };
            vec![
                Cell::new(rank(device.rank)),
                Cell::new(self.ordinal(device)),
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
        self.write(out, &titles, &[], rows.collect())
    }
}

/// The product, or what the trace calls the process, which may be a rank.
fn device_name(device: &Device) -> &str {
    let label = device.label.as_deref().filter(|_| device.process != Id::None);
    device.name.as_deref().or(label).unwrap_or(NOTHING)
}
