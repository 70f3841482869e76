//! Aligned columns, one line for each row.

use std::io::{self, Write};

use comfy_table::{
    Attribute, Cell, ColumnConstraint, ContentArrangement, LineStyle, Row, Table, TableStyle,
};

use crate::cli::Screen;

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
        table.set_header(titles.iter().map(heading).collect::<Vec<_>>());
        table.set_truncation_indicator("…");
        match options.width {
            Some(width) => {
                let rule = LineStyle::none().fill('─').junction('─');
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
            if index != last {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        Self { table, one_line_rows: options.width.is_some() }
    }

    /// A table whose last column goes on in the next line where the terminal is too narrow.
    pub(super) fn wrapping(titles: &[&str], screen: &Screen) -> Self {
        Self { one_line_rows: false, ..Self::new(titles, screen) }
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
