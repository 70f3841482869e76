//! One table, row after row.

use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};

use super::Error;
use super::cells::Cell;
use super::columns::{Column, Kind};
use super::rows::{Cells, Table};

/// Rows that are read at once.
const ROWS: usize = 4_096;

/// The rows of a table, of which one is the current.
///
/// Memory: one page of each column, and 4,096 rows. A table without a file has no rows. Columns are
/// found by their names, so that a table may have them in another order, fewer or more.
pub(super) struct Stream {
    table: Table,
    reader: Option<Box<dyn FileReader>>,
    group: usize,
    columns: Vec<ColumnChunk>,
    /// Rows that the columns hold, and which of them is the current.
    count: usize,
    at: usize,
    row: i64,
    is_over: bool,
}

/// One column's part of the current rows.
struct ColumnChunk {
    name: &'static str,
    kind: Kind,
    reader: Option<ColumnReader>,
    values: Values,
    present: Vec<i16>,
    /// Whether rows may lack a value.
    is_optional: bool,
    /// The current row's value, if it has one.
    value: usize,
}

enum Values {
    Wholes(Vec<i64>),
    Shares(Vec<f64>),
    Texts(Vec<ByteArray>),
}

impl Stream {
    pub(super) fn open<F: ChunkReader + 'static>(
        table: Table,
        file: Option<F>,
    ) -> Result<Self, Error> {
        let refuse = |error| Error::Parquet { table: table.name(), error };
        let reader: Option<Box<dyn FileReader>> = match file {
            Some(file) => Some(Box::new(SerializedFileReader::new(file).map_err(refuse)?)),
            None => None,
        };
        let columns = table.columns().into_iter().map(ColumnChunk::new).collect();
        let mut stream =
            Self { table, reader, group: 0, columns, count: 0, at: 0, row: 0, is_over: false };
        stream.fill()?;
        Ok(stream)
    }

    pub(super) fn table(&self) -> Table {
        self.table
    }

    /// The current row's place in the table, from 0.
    pub(super) fn row(&self) -> i64 {
        self.row
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// When the current row's event was over.
    pub(super) fn time(&self) -> Option<i64> {
        let whole = |name: &str| {
            let column = self.columns.iter().find(|column| column.name == name)?;
            match column.cell(self.at) {
                Cell::Whole(value) => Some(value),
                _ => None,
            }
        };
        match self.table {
            Table::Kernels | Table::Copies => {
                Some(whole("start_ns")?.saturating_add(whole("duration_ns").unwrap_or(0)))
            }
            // Without a time of their own they come last.
            Table::KernelDetails => Some(i64::MAX),
            _ => whole("time_ns"),
        }
    }

    /// The current row.
    pub(super) fn cells(&self) -> Cells<'_> {
        self.columns.iter().map(|column| column.cell(self.at)).collect()
    }

    /// Goes to the next row.
    pub(super) fn advance(&mut self) -> Result<(), Error> {
        for column in &mut self.columns {
            column.value += usize::from(column.is_there(self.at));
        }
        self.at += 1;
        self.row += 1;
        if self.at < self.count { Ok(()) } else { self.fill() }
    }

    /// Reads the next rows, of the next row group where this one has no more.
    fn fill(&mut self) -> Result<(), Error> {
        let refuse = |error| Error::Parquet { table: self.table.name(), error };
        loop {
            self.at = 0;
            self.count = 0;
            for column in &mut self.columns {
                self.count = self.count.max(column.fill().map_err(refuse)?);
            }
            if self.count > 0 {
                return Ok(());
            }
            let Some(reader) = &self.reader else { break };
            if self.group >= reader.num_row_groups() {
                break;
            }
            let group = reader.get_row_group(self.group).map_err(refuse)?;
            self.group += 1;
            for column in &mut self.columns {
                let schema = group.metadata().schema_descr();
                let place = (0..schema.num_columns())
                    .find(|place| schema.column(*place).name() == column.name);
                let Some(place) = place else { continue };
                let (physical, expected) = column.physical();
                if schema.column(place).physical_type() != physical
                    || schema.column(place).max_rep_level() > 0
                {
                    let (table, column) = (self.table.name(), column.name.to_owned());
                    return Err(Error::Column { table, column, expected });
                }
                column.reader = Some(group.get_column_reader(place).map_err(refuse)?);
                column.is_optional = schema.column(place).max_def_level() > 0;
            }
        }
        self.is_over = true;
        Ok(())
    }
}

impl ColumnChunk {
    fn new((name, kind): Column) -> Self {
        let values = match kind {
            Kind::Number | Kind::Code => Values::Wholes(vec![]),
            Kind::Share => Values::Shares(vec![]),
            Kind::Text => Values::Texts(vec![]),
        };
        Self { name, kind, reader: None, values, present: vec![], value: 0, is_optional: true }
    }

    fn physical(&self) -> (Physical, &'static str) {
        match self.kind {
            Kind::Number | Kind::Code => (Physical::INT64, "INT64"),
            Kind::Share => (Physical::DOUBLE, "DOUBLE"),
            Kind::Text => (Physical::BYTE_ARRAY, "text"),
        }
    }

    fn is_there(&self, row: usize) -> bool {
        self.present.get(row).is_some_and(|level| *level > 0)
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        if !self.is_there(row) {
            return Cell::None;
        }
        match &self.values {
            Values::Wholes(values) => {
                values.get(self.value).map_or(Cell::None, |value| Cell::Whole(*value))
            }
            Values::Shares(values) => {
                values.get(self.value).map_or(Cell::None, |value| Cell::Share(*value))
            }
            Values::Texts(values) => {
                let text = values.get(self.value).and_then(|value| value.as_utf8().ok());
                text.map_or(Cell::None, Cell::Text)
            }
        }
    }

    /// Reads the next rows and says how many.
    fn fill(&mut self) -> Result<usize, ParquetError> {
        self.present.clear();
        self.value = 0;
        let present = &mut self.present;
        let optional = self.is_optional;
        match (&mut self.values, &mut self.reader) {
            (Values::Wholes(values), Some(ColumnReader::Int64ColumnReader(reader))) => {
                records(reader, optional, values, present)
            }
            (Values::Shares(values), Some(ColumnReader::DoubleColumnReader(reader))) => {
                records(reader, optional, values, present)
            }
            (Values::Texts(values), Some(ColumnReader::ByteArrayColumnReader(reader))) => {
                records(reader, optional, values, present)
            }
            _ => Ok(0),
        }
    }
}

fn records<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    optional: bool,
    values: &mut Vec<T::T>,
    present: &mut Vec<i16>,
) -> Result<usize, ParquetError> {
    values.clear();
    let levels = optional.then_some(&mut *present);
    let (rows, ..) = reader.read_records(ROWS, levels, None, values)?;
    if !optional {
        present.resize(rows, 1);
    }
    Ok(rows)
}
