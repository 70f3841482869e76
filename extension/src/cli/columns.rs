//! Aligned columns, one line for each row.

use std::io::{self, Write};

use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Row, Table,
    TableStyle, Width,
};

use crate::cli::Screen;

/// How narrow the last column may become.
const NARROWEST_LAST: u16 = 12;

/// A table of which the last column gives way where the terminal is too narrow.
pub(super) struct Columns {
    table: Table,
    one_line_rows: bool,
}

impl Columns {
    pub(super) fn new(titles: &[&str], options: &Screen) -> Self {
        let mut table = Table::new();
        let heading = |title: &&str| match options.color {
            true => Cell::new(title).add_attribute(Attribute::Bold),
            false => Cell::new(title),
        };
        let mut header = Row::from(titles.iter().map(heading).collect::<Vec<_>>());
        header.max_height(1);
        table.set_header(header);
        table.set_truncation_indicator("…");
        match options.width {
            Some(width) => {
                let rule = LineStyle::none().fill('─');
                table.load_style(TableStyle::new().header_separator(rule));
                table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
            }
            None => {
                table.load_style(TableStyle::new());
                table.set_content_arrangement(ContentArrangement::Disabled);
            }
        }
        match options.color {
            true => table.enforce_styling(),
            false => table.force_no_tty(),
        };
        let last = titles.len().saturating_sub(1);
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, if index == last { 0 } else { 2 }));
            // Texts are cut off at the width, not before a long word: nothing is split at NUL, which
            // `printable` text never has.
            column.set_delimiter('\0');
            // On a terminal narrower than this the lines run over: better than a column of letters.
            column.set_constraint(match index == last {
                true => ColumnConstraint::LowerBoundary(Width::Fixed(NARROWEST_LAST)),
                false => ColumnConstraint::ContentWidth,
            });
        }
        Self { table, one_line_rows: options.width.is_some() }
    }

    /// A table whose last column goes on in the next line where the terminal is too narrow.
    pub(super) fn wrapping(titles: &[&str], screen: &Screen) -> Self {
        Self { one_line_rows: false, ..Self::new(titles, screen) }
    }

    /// Aligns a column to the right, its title included: numbers.
    pub(super) fn align_right(&mut self, title: &str, titles: &[&str]) {
        let index = titles.iter().position(|other| *other == title);
        if let Some(column) = index.and_then(|index| self.table.column_mut(index)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        let mut row = Row::from(cells);
        if self.one_line_rows {
            row.max_height(1);
        }
        self.table.add_row(row);
    }

    pub(super) fn write(&self, out: &mut dyn Write, indent: &str) -> io::Result<()> {
        for line in self.table.lines() {
            writeln!(out, "{indent}{}", line.trim_end())?;
        }
        Ok(())
    }
}
