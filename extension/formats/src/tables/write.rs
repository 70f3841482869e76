//! Events become rows, rows become column chunks.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, Repetition, Type as Physical, ZstdLevel,
};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::Error;
use super::cells::Cell;
use super::columns::{Column, Kind};
use super::rows::{self, Cells, Table, push};
use super::telemetry;
use crate::event::{Device, Event, Kernel, StaticDevice, What};
use crate::interner::{Handle, Interner};
use crate::loss::Losses;
use crate::telemetry::{Numbers, TelemetryEvent};

/// Rows of a row group: the writer's memory is that many rows of each table.
const ROWS: usize = 65_536;

/// Bytes of distinct texts that end a row group before it has all its rows.
const TEXT: usize = 4 << 20;

/// Most shapes that are remembered; then all are forgotten, and written again where they come again.
/// A kernel's shape is so at most that many rows before the last.
pub(super) const SHAPES: usize = 16_384;

/// zstd's level: that of the sizes in `docs/formats/gpu-flight.md`.
const LEVEL: i32 = 9;

/// Makes the files of a data set.
pub trait Files {
    /// What a table is written to.
    type File: Write + Send;

    /// Makes the file of a table.
    ///
    /// # Errors
    /// What the system answers.
    fn create(&mut self, table: Table) -> std::io::Result<Self::File>;
}

/// Writes events as tables.
pub struct Writer<F: Files> {
    files: F,
    tables: BTreeMap<Table, Rows<F::File>>,
    /// Rows of the shapes that have been written, by what they tell.
    shapes: HashMap<Vec<u8>, i64>,
}

impl<F: Files> Writer<F> {
    /// A writer that has made no file yet.
    pub fn new(files: F) -> Self {
        Self { files, tables: BTreeMap::new(), shapes: HashMap::new() }
    }

    /// Takes one event.
    ///
    /// # Errors
    /// Where a file cannot be made or written.
    pub fn write(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let mut cells = Cells::new();
        rows::source(&mut cells, &event.source);
        match &event.what {
            What::Kernel(kernel) => {
                let shape = self.shape(kernel)?;
                rows::kernel(&mut cells, shape, kernel);
                self.row(Table::Kernels, &cells).map(drop)
            }
            What::KernelDetails(details) => {
                rows::kernel_details(&mut cells, details);
                self.row(Table::KernelDetails, &cells).map(drop)
            }
            What::Copy(copy) => {
                rows::copy(&mut cells, copy);
                self.row(Table::Copies, &cells).map(drop)
            }
            What::Profile(sample) => {
                rows::profile(&mut cells, sample);
                self.row(Table::ProfileSamples, &cells).map(drop)
            }
            What::Scope(scope) => {
                rows::scope(&mut cells, scope);
                let event = self.row(Table::Scopes, &cells)?;
                self.devices(Table::ScopeDevices, event, &scope.devices)
            }
            What::System(system) => {
                push!(cells, system.time.0, &system.name);
                rows::host(&mut cells, system.host);
                let event = self.row(Table::SystemSamples, &cells)?;
                self.devices(Table::DeviceSamples, event, &system.devices)
            }
            What::Start(start) => {
                push!(cells, start.time.0, "start", None::<i64>, &start.log_path);
                push!(cells, start.scope_rate_ms, start.system_rate_ms);
                rows::host(&mut cells, start.host);
                let event = self.row(Table::Sessions, &cells)?;
                self.devices(Table::SessionDevices, event, &start.devices)?;
                self.static_devices(event, &start.static_devices)
            }
            What::End(time) => {
                push!(cells, time.0, "end", None::<i64>, None::<i64>, None::<i64>, None::<i64>);
                rows::host(&mut cells, None);
                self.row(Table::Sessions, &cells).map(drop)
            }
            What::Sampling(sampling) => {
                let phase = if sampling.began { "sampling_start" } else { "sampling_stop" };
                push!(cells, sampling.time.0, phase, &sampling.name);
                push!(cells, None::<i64>, None::<i64>, None::<i64>);
                rows::host(&mut cells, sampling.host);
                let event = self.row(Table::Sessions, &cells)?;
                self.devices(Table::SessionDevices, event, &sampling.devices)
            }
        }
    }

    /// Takes one event of TelemetryEvent v2, into a table of its own; none that has a number beyond
    /// 64 bits, which is counted in `losses`.
    ///
    /// # Errors
    /// Where a file cannot be made or written.
    pub fn write_telemetry(
        &mut self,
        event: &TelemetryEvent<'_>,
        losses: &mut Losses,
    ) -> Result<(), Error> {
        let Some(numbers) = Numbers::of(event, losses) else { return Ok(()) };
        let mut metadata = vec![];
        event.metadata.write(&mut metadata);
        let metadata = String::from_utf8_lossy(&metadata);
        let cells = telemetry::cells(event, &numbers, &metadata);
        self.row(Table::Telemetry, &cells).map(drop)
    }

    /// Writes what waits and the files' ends. A data set without it cannot be read.
    ///
    /// # Errors
    /// Where a file cannot be written.
    pub fn finish(self) -> Result<Vec<(Table, F::File)>, Error> {
        let mut files = vec![];
        for (table, rows) in self.tables {
            files.push((table, rows.finish()?));
        }
        Ok(files)
    }

    /// The row of the kernel's shape, which is written where it is new.
    fn shape(&mut self, kernel: &Kernel<'_>) -> Result<i64, Error> {
        let mut cells = Cells::new();
        rows::shape_of_kernel(&mut cells, kernel);
        let key = key(&cells);
        if let Some(row) = self.shapes.get(&key) {
            return Ok(*row);
        }
        let row = self.row(Table::KernelShapes, &cells)?;
        if self.shapes.len() >= SHAPES {
            self.shapes.clear();
        }
        self.shapes.insert(key, row);
        Ok(row)
    }

    fn devices(&mut self, table: Table, event: i64, devices: &[Device<'_>]) -> Result<(), Error> {
        for device in devices {
            let mut cells = Cells::new();
            rows::device(&mut cells, event, device);
            self.row(table, &cells)?;
        }
        Ok(())
    }

    fn static_devices(&mut self, event: i64, devices: &[StaticDevice<'_>]) -> Result<(), Error> {
        for device in devices {
            let mut cells = Cells::new();
            rows::static_device(&mut cells, event, device);
            self.row(Table::StaticDevices, &cells)?;
        }
        Ok(())
    }

    /// Adds a row, and gives its place in the table from 0.
    fn row(&mut self, table: Table, cells: &[Cell<'_>]) -> Result<i64, Error> {
        if !self.tables.contains_key(&table) {
            let file = self
                .files
                .create(table)
                .map_err(|error| Error::File { table: table.name(), error })?;
            self.tables.insert(table, Rows::new(table, file)?);
        }
        match self.tables.get_mut(&table) {
            Some(rows) => rows.push(cells),
            None => Ok(0),
        }
    }
}

/// What a row tells, as bytes that are equal where the cells are.
fn key(cells: &[Cell<'_>]) -> Vec<u8> {
    let mut key = vec![];
    for cell in cells {
        match cell {
            Cell::None => key.push(0),
            Cell::Whole(value) => {
                key.push(1);
                key.extend_from_slice(&value.to_le_bytes());
            }
            Cell::Share(value) => {
                key.push(2);
                key.extend_from_slice(&value.to_bits().to_le_bytes());
            }
            Cell::Text(text) => {
                key.push(3);
                key.extend_from_slice(&text.len().to_le_bytes());
                key.extend_from_slice(text.as_bytes());
            }
        }
    }
    key
}

/// The rows of one table that are not written yet.
struct Rows<W: Write + Send> {
    table: Table,
    columns: Vec<Buffer>,
    texts: Interner<Text>,
    count: usize,
    total: i64,
    writer: SerializedFileWriter<W>,
}

/// Names a text of a row group.
struct Text;

/// The values of one column that are there, and which rows have one.
struct Buffer {
    values: Values,
    present: Vec<i16>,
}

enum Values {
    Wholes(Vec<i64>),
    Shares(Vec<f64>),
    Texts(Vec<Handle<Text>>),
}

impl<W: Write + Send> Rows<W> {
    fn new(table: Table, file: W) -> Result<Self, Error> {
        let columns = table.columns();
        let refuse = |error| Error::Parquet { table: table.name(), error };
        let schema = schema(table, &columns).map_err(refuse)?;
        let properties = properties(&columns).map_err(refuse)?;
        let writer = SerializedFileWriter::new(file, schema, properties).map_err(refuse)?;
        let buffer = |(_, kind): &Column| Buffer {
            values: match kind {
                Kind::Number | Kind::Code => Values::Wholes(vec![]),
                Kind::Share => Values::Shares(vec![]),
                Kind::Text => Values::Texts(vec![]),
            },
            present: vec![],
        };
        let columns = columns.iter().map(buffer).collect();
        Ok(Self {
            table,
            columns,
            texts: Interner::with_limit(usize::MAX),
            count: 0,
            total: 0,
            writer,
        })
    }

    fn push(&mut self, cells: &[Cell<'_>]) -> Result<i64, Error> {
        for (buffer, cell) in self.columns.iter_mut().zip(cells) {
            let is_there = match (&mut buffer.values, cell) {
                (Values::Wholes(values), Cell::Whole(value)) => {
                    values.push(*value);
                    true
                }
                (Values::Shares(values), Cell::Share(value)) => {
                    values.push(*value);
                    true
                }
                (Values::Texts(values), Cell::Text(text)) => match self.texts.intern(text) {
                    Ok((handle, _)) => {
                        values.push(handle);
                        true
                    }
                    Err(_) => false,
                },
                _ => false,
            };
            buffer.present.push(i16::from(is_there));
        }
        self.count += 1;
        self.total += 1;
        if self.count >= ROWS || self.texts.bytes() >= TEXT {
            self.flush()?;
        }
        Ok(self.total - 1)
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.count == 0 {
            return Ok(());
        }
        let table = self.table.name();
        let refuse = |error| Error::Parquet { table, error };
        let texts: Vec<ByteArray> =
            self.texts.iter().map(|(_, text)| ByteArray::from(text)).collect();
        let mut group = self.writer.next_row_group().map_err(refuse)?;
        for buffer in &mut self.columns {
            write_column(&mut group, buffer, &texts).map_err(refuse)?;
            buffer.clear();
        }
        group.close().map_err(refuse)?;
        self.texts = Interner::with_limit(usize::MAX);
        self.count = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<W, Error> {
        self.flush()?;
        let refuse = |error| Error::Parquet { table: self.table.name(), error };
        self.writer.into_inner().map_err(refuse)
    }
}

impl Buffer {
    fn clear(&mut self) {
        self.present.clear();
        match &mut self.values {
            Values::Wholes(values) => values.clear(),
            Values::Shares(values) => values.clear(),
            Values::Texts(values) => values.clear(),
        }
    }
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    buffer: &Buffer,
    texts: &[ByteArray],
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    let present = Some(buffer.present.as_slice());
    match &buffer.values {
        Values::Wholes(values) => column.typed::<Int64Type>().write_batch(values, present, None)?,
        Values::Shares(values) => {
            column.typed::<DoubleType>().write_batch(values, present, None)?
        }
        Values::Texts(handles) => {
            let text = |handle: &Handle<Text>| texts.get(handle.index() as usize).cloned();
            let values: Vec<ByteArray> = handles.iter().filter_map(text).collect();
            column.typed::<ByteArrayType>().write_batch(&values, present, None)?
        }
    };
    column.close()
}

fn schema(table: Table, columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let field = |(name, kind): &Column| {
        let (physical, converted) = match kind {
            Kind::Number | Kind::Code => (Physical::INT64, ConvertedType::NONE),
            Kind::Share => (Physical::DOUBLE, ConvertedType::NONE),
            Kind::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        };
        let field = Type::primitive_type_builder(name, physical);
        field
            .with_repetition(Repetition::OPTIONAL)
            .with_converted_type(converted)
            .build()
            .map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    Ok(Arc::new(Type::group_type_builder(table.name()).with_fields(fields).build()?))
}

fn properties(columns: &[Column]) -> Result<WriterPropertiesPtr, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_created_by(concat!("warpgauge ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_max_row_group_row_count(None)
        .set_offset_index_disabled(true)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for (name, kind) in columns {
        let path = ColumnPath::from(*name);
        properties = match kind {
            Kind::Number => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Kind::Code | Kind::Share | Kind::Text => {
                properties.set_column_dictionary_enabled(path, true)
            }
        };
    }
    Ok(Arc::new(properties.build()))
}

impl<F: Files> std::fmt::Debug for Writer<F> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rows: BTreeMap<_, _> =
            self.tables.iter().map(|(table, rows)| (table, rows.total)).collect();
        formatter.debug_struct("Writer").field("rows", &rows).finish()
    }
}
