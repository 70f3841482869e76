//! `warpgauge groups`: the groups and processes that a pass would monitor now, and with
//! `--explain PID` why a process belongs to them or not.
//!
//! On a terminal a table that fits its width, into a pipe aligned columns in full length, with
//! `--json` one JSON document. Names and commands are chosen by whoever runs the processes, so
//! nothing of them reaches a terminal unescaped.

mod age;
mod columns;
mod explanation;
mod json;
mod printable;
mod resolution;

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::groups::{Explanation, Resolution};

/// How to show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderOptions {
    /// Whether colours may be used.
    pub color: bool,
    /// The terminal's width in columns; `None` when the output is no terminal.
    pub width: Option<u16>,
    /// One JSON document instead of text.
    pub json: bool,
    /// What ages are counted to, in nanoseconds since the epoch.
    pub now_unix_nanoseconds: u64,
}

impl RenderOptions {
    /// With ages counted to this moment.
    pub fn new(color: bool, width: Option<u16>, json: bool) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_unix_nanoseconds = u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX);
        Self { color, width, json, now_unix_nanoseconds }
    }
}

/// Shows the groups and their processes. Commands and mapped libraries are shown where
/// [`Resolution::read_details`] has read them.
///
/// # Errors
/// What writing to `out` says.
pub fn render_groups(
    out: &mut dyn Write,
    resolution: &Resolution,
    options: &RenderOptions,
) -> io::Result<()> {
    if options.json {
        return json::write(out, &json::resolution(resolution));
    }
    resolution::write(out, resolution, options)
}

/// Shows what every group says of one process, condition by condition.
///
/// # Errors
/// What writing to `out` says.
pub fn render_explanation(
    out: &mut dyn Write,
    explanation: &Explanation,
    options: &RenderOptions,
) -> io::Result<()> {
    if options.json {
        return json::write(out, &json::explanation(explanation));
    }
    explanation::write(out, explanation, options)
}
