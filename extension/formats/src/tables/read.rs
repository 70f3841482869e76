//! Rows become events again, in the order of their times.
//!
//! The tables are read side by side; the row that happened first is next. Kernels and copies count
//! by their ends, as they do in a log.

use std::collections::VecDeque;

use parquet::file::reader::ChunkReader;

use super::Error;
use super::cells::{Cell, Row};
use super::rows::{self, Table};
use super::stream::Stream;
use super::write::SHAPES;
use crate::event::{
    Device, Event, Kernel, Sampling, Source, Start, StaticDevice, System, Text, What,
};
use crate::finding::Sink;
use crate::time::Timestamp;

/// Finds the files of a data set.
pub trait Tables {
    /// What a table is read from.
    type File: ChunkReader + 'static;

    /// Opens the file of a table, `None` where there is none.
    ///
    /// # Errors
    /// What the system answers.
    fn open(&mut self, table: Table) -> std::io::Result<Option<Self::File>>;
}

/// Reads a data set to its end. The sink's line numbers are those of rows within their table, from 1.
///
/// # Errors
/// Where a file cannot be read or is no such table.
pub fn read<T: Tables>(tables: &mut T, sink: &mut dyn Sink) -> Result<(), Error> {
    let mut open = |table: Table| -> Result<Stream, Error> {
        let file =
            tables.open(table).map_err(|error| Error::File { table: table.name(), error })?;
        Stream::open(table, file)
    };
    let mut owners = [
        Table::Sessions,
        Table::Scopes,
        Table::Kernels,
        Table::KernelDetails,
        Table::Copies,
        Table::ProfileSamples,
        Table::SystemSamples,
    ]
    .map(&mut open)
    .into_iter()
    .collect::<Result<Vec<_>, _>>()?;
    let mut beside = Beside {
        session_devices: open(Table::SessionDevices)?,
        static_devices: open(Table::StaticDevices)?,
        scope_devices: open(Table::ScopeDevices)?,
        device_samples: open(Table::DeviceSamples)?,
        shapes: Shapes { stream: open(Table::KernelShapes)?, kept: VecDeque::new(), first: 0 },
    };
    // The position of the row that happened first; tables that have ended are past all others.
    while let Some(first) = earliest(&mut owners) {
        let number = first.row();
        let cells = first.cells();
        beside.event(first.table(), number, &cells, sink)?;
        drop(cells);
        first.advance()?;
    }
    Ok(())
}

fn earliest(streams: &mut [Stream]) -> Option<&mut Stream> {
    streams.iter_mut().filter(|stream| !stream.is_over()).min_by_key(|stream| stream.time())
}

/// The tables whose rows belong to the rows of others.
struct Beside {
    session_devices: Stream,
    static_devices: Stream,
    scope_devices: Stream,
    device_samples: Stream,
    shapes: Shapes,
}

impl Beside {
    fn event(
        &mut self,
        table: Table,
        number: i64,
        cells: &[Cell<'_>],
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let mut row = Row::new(cells);
        let source = rows::source_of(&mut row);
        let line = u64::try_from(number).unwrap_or_default() + 1;
        let what = match table {
            Table::Sessions => return self.session(number, source, row, line, sink),
            Table::Scopes => {
                let mut scope = rows::scope_of(&mut row);
                let devices = devices_of(&mut self.scope_devices, number)?;
                scope.devices = devices;
                What::Scope(scope)
            }
            Table::Kernels => {
                let (kernel, shape) = rows::kernel_of(&mut row);
                let kernel = match shape {
                    Some(shape) => self.shapes.give(shape, kernel)?,
                    None => kernel,
                };
                sink.event(line, &Event { source, what: What::Kernel(kernel) });
                return Ok(());
            }
            Table::KernelDetails => What::KernelDetails(rows::kernel_details_of(&mut row)),
            Table::Copies => What::Copy(rows::copy_of(&mut row)),
            Table::ProfileSamples => What::Profile(rows::profile_of(&mut row)),
            _ => {
                let time = Timestamp(row.whole().unwrap_or_default());
                let name = row.text();
                let host = rows::host_of(&mut row);
                let devices = devices_of(&mut self.device_samples, number)?;
                What::System(System { time, name, host, devices })
            }
        };
        sink.event(line, &Event { source, what });
        Ok(())
    }

    fn session(
        &mut self,
        number: i64,
        source: Source<'_>,
        mut row: Row<'_, '_>,
        line: u64,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let time = Timestamp(row.whole().unwrap_or_default());
        let phase: Option<Text<'_>> = row.text();
        let name = row.text();
        let log_path = row.text();
        let (scope_rate_ms, system_rate_ms) = (row.whole(), row.whole());
        let host = rows::host_of(&mut row);
        let devices = devices_of(&mut self.session_devices, number)?;
        let static_devices = static_devices_of(&mut self.static_devices, number)?;
        let what = match phase.as_deref() {
            Some("end") => What::End(time),
            Some(phase @ ("sampling_start" | "sampling_stop")) => What::Sampling(Sampling {
                time,
                began: phase == "sampling_start",
                name,
                host,
                devices,
            }),
            _ => What::Start(Start {
                time,
                log_path,
                scope_rate_ms,
                system_rate_ms,
                host,
                devices,
                static_devices,
            }),
        };
        sink.event(line, &Event { source, what });
        Ok(())
    }
}

/// Takes the devices of that event from a table that has its rows in the events' order.
fn devices_of(stream: &mut Stream, event: i64) -> Result<Vec<Device<'static>>, Error> {
    let mut devices = vec![];
    while !stream.is_over() {
        let cells = stream.cells();
        let (of, device) = rows::device_of(&mut Row::new(&cells));
        if of > event {
            break;
        }
        if of == event {
            devices.push(device.into_owned());
        }
        drop(cells);
        stream.advance()?;
    }
    Ok(devices)
}

/// The same of what does not change about devices.
fn static_devices_of(stream: &mut Stream, event: i64) -> Result<Vec<StaticDevice<'static>>, Error> {
    let mut devices = vec![];
    while !stream.is_over() {
        let cells = stream.cells();
        let (of, device) = rows::static_device_of(&mut Row::new(&cells));
        if of > event {
            break;
        }
        if of == event {
            devices.push(device.into_owned());
        }
        drop(cells);
        stream.advance()?;
    }
    Ok(devices)
}

/// The shapes that kernels may still refer to.
struct Shapes {
    stream: Stream,
    kept: VecDeque<Kernel<'static>>,
    /// The row of the first that is kept.
    first: i64,
}

impl Shapes {
    /// Gives the kernel the shape of that row; one that is not there leaves it without.
    fn give<'a>(&mut self, row: i64, mut kernel: Kernel<'a>) -> Result<Kernel<'a>, Error> {
        while !self.stream.is_over() && self.stream.row() <= row {
            let mut shape = Kernel::default();
            let cells = self.stream.cells();
            rows::add_shape(&mut Row::new(&cells), &mut shape);
            self.kept.push_back(shape.into_owned());
            drop(cells);
            self.stream.advance()?;
            if self.kept.len() > 2 * SHAPES {
                self.kept.pop_front();
                self.first += 1;
            }
        }
        let place = usize::try_from(row - self.first).ok();
        if let Some(shape) = place.and_then(|place| self.kept.get(place)) {
            rows::wear(&mut kernel, shape);
        }
        Ok(kernel)
    }
}
