//! The envelope of a batch and its rows, before anybody knows what they mean.

use crate::event::Text;
use crate::json::{self, Kind, Reader};
use crate::record::{Field as _, Slot};

/// A batch line.
#[derive(Debug, Default)]
pub(super) struct Batch<'a> {
    pub(super) session: Text<'a>,
    pub(super) number: Option<i64>,
    pub(super) base: i64,
    pub(super) columns: Vec<Text<'a>>,
    /// All rows, one behind the other, each as wide as `columns`.
    pub(super) cells: Vec<i64>,
    pub(super) unknown: Vec<Text<'a>>,
}

/// What is wrong with a batch: the field, what should stand there, what stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) field: String,
    pub(super) expected: &'static str,
    pub(super) found: String,
}

impl Wrong {
    fn new(field: &str, expected: &'static str, found: impl Into<String>) -> Self {
        Self { field: field.to_owned(), expected, found: found.into() }
    }
}

impl From<json::Fault> for Wrong {
    fn from(fault: json::Fault) -> Self {
        Self::new("", "a JSON object", fault.to_string())
    }
}

/// Rows as they come, before the columns are known.
struct Rows {
    count: usize,
    /// The width of the first row, and the first row with another one: its place and its width.
    width: usize,
    ragged: Option<(usize, usize)>,
}

impl<'a> Batch<'a> {
    /// Reads a batch. `cells` is a buffer that is used again.
    pub(super) fn read(text: &'a str, mut cells: Vec<i64>) -> Result<Self, Wrong> {
        cells.clear();
        let mut batch = Self { cells, ..Self::default() };
        let (mut session, mut base, mut columns, mut rows) = (None, None, None, None);
        let mut json = Reader::new(text);
        json.enter_object()?;
        while let Some(key) = json.next_key()? {
            match key.as_ref() {
                "type" | "version" => drop(json.skip()?),
                "session_id" => session = Some(value(&mut json, "session_id", "a string")?),
                "batch_id" => {
                    batch.number = Some(value(&mut json, "batch_id", "an integer of 64 bits")?)
                }
                "base_time_ns" => {
                    base = Some(value(&mut json, "base_time_ns", "an integer of 64 bits")?)
                }
                "columns" => columns = Some(names(&mut json)?),
                "rows" => {
                    batch.cells.clear();
                    rows = Some(read_rows(&mut json, &mut batch.cells)?);
                }
                // Repeated in each batch by later producers; the session's first line has them.
                "hostname" | "ip_addr" => drop(json.skip()?),
                _ => {
                    json.skip()?;
                    batch.unknown.push(key);
                }
            }
        }
        json.end()?;
        let missing = |field| Wrong::new(field, "a value", "nothing");
        batch.session = session.ok_or_else(|| missing("session_id"))?;
        batch.base = base.ok_or_else(|| missing("base_time_ns"))?;
        batch.columns = columns.ok_or_else(|| missing("columns"))?;
        let rows = rows.ok_or_else(|| missing("rows"))?;
        batch.fits(&rows)?;
        Ok(batch)
    }

    fn fits(&self, rows: &Rows) -> Result<(), Wrong> {
        let wrong_row = match rows.ragged {
            _ if rows.count > 0 && rows.width != self.columns.len() => Some((0, rows.width)),
            ragged => ragged,
        };
        match wrong_row {
            None => Ok(()),
            Some((row, width)) => Err(Wrong::new(
                &format!("rows[{row}]"),
                "as many values as columns",
                format!("{width} values for {} columns", self.columns.len()),
            )),
        }
    }
}

fn value<'a, T: crate::record::Field<'a>>(
    json: &mut Reader<'a>,
    field: &str,
    expected: &'static str,
) -> Result<T, Wrong> {
    match T::slot(json)? {
        Slot::Is(value) => Ok(value),
        Slot::Wrong(found) => Err(Wrong::new(field, expected, found)),
        Slot::Absent => Err(Wrong::new(field, expected, "nothing")),
    }
}

fn names<'a>(json: &mut Reader<'a>) -> Result<Vec<Text<'a>>, Wrong> {
    if json.peek()? != Kind::Array {
        return Err(Wrong::new("columns", "an array of strings", json.skip()?));
    }
    let mut names = vec![];
    json.enter_array()?;
    while json.next_item()? {
        match Text::slot(json)? {
            Slot::Is(name) => names.push(name),
            _ => return Err(Wrong::new("columns", "an array of strings", "another value")),
        }
    }
    Ok(names)
}

fn read_rows(json: &mut Reader<'_>, cells: &mut Vec<i64>) -> Result<Rows, Wrong> {
    if json.peek()? != Kind::Array {
        return Err(Wrong::new("rows", "an array of arrays", json.skip()?));
    }
    let mut rows = Rows { count: 0, width: 0, ragged: None };
    json.enter_array()?;
    while json.next_item()? {
        if json.peek()? != Kind::Array {
            return Err(Wrong::new(&format!("rows[{}]", rows.count), "an array", json.skip()?));
        }
        let before = cells.len();
        json.enter_array()?;
        while json.next_item()? {
            match json.plain_integer() {
                Some(cell) => cells.push(cell),
                None => cells.push(value(
                    json,
                    &format!("rows[{}][{}]", rows.count, cells.len() - before),
                    "an integer of 64 bits",
                )?),
            }
        }
        let width = cells.len() - before;
        if rows.count == 0 {
            rows.width = width;
        } else if width != rows.width && rows.ragged.is_none() {
            rows.ragged = Some((rows.count, width));
        }
        rows.count += 1;
    }
    Ok(rows)
}
