//! Where text goes: a terminal with a width and perhaps colours, a pipe, or a machine that wants
//! JSON.

use std::io::{self, IsTerminal, Write};

use comfy_table::{Cell, Color};
use serde::Serialize;

use crate::pass::unix_now_ns;
use crate::setup::Environment;

/// How to show something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Whether colours may be used.
    pub color: bool,
    /// The terminal's width in columns; `None` when the output is no terminal.
    pub width: Option<u16>,
    /// One JSON document instead of text.
    pub json: bool,
    /// What ages are counted to, in nanoseconds since the epoch.
    pub now_unix_nanoseconds: u64,
}

impl Screen {
    /// The process's standard output. `NO_COLOR` with any value switches colours off.
    #[must_use]
    pub fn of_stdout(json: bool, environment: Environment<'_>) -> Self {
        let terminal = io::stdout().is_terminal();
        let no_color = environment("NO_COLOR").is_some_and(|value| !value.is_empty())
            || environment("TERM").is_some_and(|term| term == "dumb");
        // comfy-table asks the terminal itself; a terminal that does not answer has the usual 80.
        let width = terminal.then(|| comfy_table::Table::new().width().unwrap_or(80));
        Self::new(terminal && !no_color, width, json)
    }

    /// With ages counted to this moment.
    #[must_use]
    pub fn new(color: bool, width: Option<u16>, json: bool) -> Self {
        Self { color, width, json, now_unix_nanoseconds: unix_now_ns() }
    }

    /// A cell in a colour, where there are colours.
    #[must_use]
    pub fn cell(&self, text: impl ToString, color: Color) -> Cell {
        let cell = Cell::new(text);
        if self.color { cell.fg(color) } else { cell }
    }
}

/// One JSON document.
///
/// # Errors
/// What writing says.
pub(super) fn write_json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
