//! Rows of one type until there are enough of them for a line.

use super::rows::Type;
use crate::json::write::{Object, integer};

/// A value of a row, `None` where the event does not tell it.
pub(super) type Cell = (&'static str, Option<i64>);

/// Rows that have the same columns.
///
/// A batch has exactly the columns that its rows tell: the first row that tells more or less begins
/// the next batch, so that nothing is filled in.
#[derive(Debug)]
pub(super) struct Rows {
    of: Type,
    /// Which of the type's columns the rows have, one bit for each.
    columns: u32,
    names: Vec<&'static str>,
    base: i64,
    cells: Vec<i64>,
    count: usize,
    number: u64,
}

impl Rows {
    pub(super) fn new(of: Type) -> Self {
        Self { of, columns: 0, names: vec![], base: 0, cells: vec![], count: 0, number: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Whether a row with these cells can join those that are there: it tells the same, and at a
    /// time whose distance from the first has 64 bits.
    pub(super) fn takes(&self, time: i64, cells: &[Cell]) -> bool {
        self.count == 0 || mask(cells) == self.columns && time.checked_sub(self.base).is_some()
    }

    /// Adds a row that begins with its time.
    pub(super) fn push(&mut self, time: i64, cells: &[Cell]) {
        if self.count == 0 {
            self.columns = mask(cells);
            self.base = time;
            self.names.clear();
            self.names
                .extend(cells.iter().filter(|(_, cell)| cell.is_some()).map(|(name, _)| *name));
        }
        self.cells.push(time.saturating_sub(self.base));
        self.cells.extend(cells.iter().filter_map(|(_, cell)| *cell));
        self.count += 1;
    }

    /// Appends the batch's line to `out` and begins the next batch.
    pub(super) fn write(&mut self, session: &str, out: &mut Vec<u8>) {
        if self.count == 0 {
            return;
        }
        self.number += 1;
        let mut line = Object::open(out);
        line.text("type", self.of.name()).text("session_id", session);
        line.integer("batch_id", self.number).integer("base_time_ns", self.base);
        let columns = line.key("columns");
        columns.extend_from_slice(b"[\"dt_ns\"");
        for name in &self.names {
            columns.extend_from_slice(b",\"");
            columns.extend_from_slice(name.as_bytes());
            columns.push(b'"');
        }
        columns.push(b']');
        let rows = line.key("rows");
        let mut before = b'[';
        for row in self.cells.chunks_exact(self.names.len() + 1) {
            rows.push(before);
            before = b',';
            let mut open = b'[';
            for cell in row {
                rows.push(open);
                integer(rows, *cell);
                open = b',';
            }
            rows.push(b']');
        }
        rows.push(b']');
        line.close_line();
        self.cells.clear();
        self.count = 0;
    }
}

fn mask(cells: &[Cell]) -> u32 {
    cells
        .iter()
        .enumerate()
        .fold(0, |mask, (place, (_, cell))| mask | u32::from(cell.is_some()) << place)
}
