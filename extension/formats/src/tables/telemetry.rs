//! Events of TelemetryEvent v2 as rows of their table, and back.

use super::Error;
use super::cells::{Cell, Row};
use super::read::Tables;
use super::rows::{Cells, Table, push};
use super::stream::Stream;
use crate::json;
use crate::telemetry::{
    Broken, Distributed, Fault, Metadata, Numbers, Place, Sink, TelemetryEvent,
};

/// The row of an event, whose metadata is `metadata` as JSON text.
pub(super) fn cells<'e>(
    event: &'e TelemetryEvent<'_>,
    numbers: &Numbers,
    metadata: &'e str,
) -> Cells<'e> {
    let mut cells = Cells::new();
    push!(cells, numbers.time.0, &*event.event_type, &*event.collector);
    push!(cells, numbers.interval_ms, numbers.pid, &*event.host);
    let job_id = event.distributed.as_ref().and_then(|process| process.job_id.as_deref());
    cells.push(job_id.map_or(Cell::None, Cell::Text));
    let [rank, local_rank, world_size] = match numbers.process {
        Some(numbers) => numbers.map(Some),
        None => [None; 3],
    };
    push!(cells, rank, local_rank, world_size, numbers.device);
    push!(cells, numbers.allocated, numbers.reserved, numbers.active, numbers.inactive);
    push!(cells, numbers.change, numbers.used, numbers.free, numbers.total);
    push!(cells, &event.context, metadata);
    cells
}

/// Reads the table of TelemetryEvent v2 to its end and hands on the events in the order of its rows,
/// and of rows that break a rule why. Line and index of a place are those of the row.
///
/// # Errors
/// Where the file cannot be read or is no such table.
pub fn read_telemetry<T: Tables>(tables: &mut T, sink: &mut dyn Sink) -> Result<(), Error> {
    let table = Table::Telemetry;
    let file = tables.open(table).map_err(|error| Error::File { table: table.name(), error })?;
    let mut rows = Stream::open(table, file)?;
    while !rows.is_over() {
        let index = u64::try_from(rows.row()).unwrap_or_default();
        let place = Place { index, line: index + 1, offset: 0 };
        let cells = rows.cells();
        match event_of(&mut Row::new(&cells)) {
            Ok(event) => sink.event(place, &event),
            Err(fault) => sink.refused(place, fault),
        }
        drop(cells);
        rows.advance()?;
    }
    Ok(())
}

fn event_of<'a>(row: &mut Row<'a, '_>) -> Result<TelemetryEvent<'a>, Fault> {
    let mut event = TelemetryEvent {
        timestamp_ns: whole(row, "timestamp_ns")?,
        event_type: row.text().unwrap_or_default(),
        collector: row.text().unwrap_or_default(),
        sampling_interval_ms: whole(row, "sampling_interval_ms")?,
        pid: whole(row, "pid")?,
        host: row.text().unwrap_or_default(),
        distributed: distributed_of(row),
        device_id: whole(row, "device_id")?,
        allocator_allocated_bytes: whole(row, "allocator_allocated_bytes")?,
        allocator_reserved_bytes: whole(row, "allocator_reserved_bytes")?,
        allocator_active_bytes: row.whole().map(Into::into),
        allocator_inactive_bytes: row.whole().map(Into::into),
        allocator_change_bytes: whole(row, "allocator_change_bytes")?,
        device_used_bytes: whole(row, "device_used_bytes")?,
        device_free_bytes: row.whole().map(Into::into),
        device_total_bytes: row.whole().map(Into::into),
        context: row.text(),
        metadata: Metadata::default(),
    };
    event.metadata = metadata_of(row)?;
    event.check()?;
    Ok(event)
}

fn whole(row: &mut Row<'_, '_>, column: &'static str) -> Result<i128, Broken> {
    row.whole().map(Into::into).ok_or(Broken::NotAnInteger(column))
}

/// Only where the size of the run is told was there a distributed one.
fn distributed_of<'a>(row: &mut Row<'a, '_>) -> Option<Distributed<'a>> {
    let job_id = row.text();
    let [rank, local_rank, world_size] = [row.whole(), row.whole(), row.whole()];
    Some(Distributed {
        job_id,
        rank: rank.unwrap_or_default().into(),
        local_rank: local_rank.or(rank).unwrap_or_default().into(),
        world_size: world_size?.into(),
    })
}

fn metadata_of<'a>(row: &mut Row<'a, '_>) -> json::Result<Metadata<'a>> {
    match row.text() {
        Some(std::borrow::Cow::Borrowed(text)) => Metadata::from_json(text),
        Some(text) => Metadata::from_json(&text).map(Metadata::into_owned),
        None => Ok(Metadata::default()),
    }
}
