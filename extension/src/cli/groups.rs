//! `warpgauge groups`: the groups and processes that a pass would monitor now, and with
//! `--explain PID` why a process belongs to them or not.
//!
//! On a terminal a table that fits its width, into a pipe aligned columns in full length, with
//! `--json` one JSON document. Names and commands are chosen by whoever runs the processes, so
//! nothing of them reaches a terminal unescaped.

mod age;
mod explanation;
mod health;
mod json;
mod resolution;

use std::io::{self, Write};

pub use self::health::Healths;
use crate::cli::Screen;
use crate::groups::{Explanation, Resolution};

/// Shows the groups and their processes. Commands and mapped libraries are shown where
/// [`Resolution::read_details`] has read them, and what the library says of itself where there are
/// `healths`.
///
/// # Errors
/// What writing to `out` says.
pub fn render_groups(
    out: &mut dyn Write,
    resolution: &Resolution,
    healths: &Healths,
    options: &Screen,
) -> io::Result<()> {
    if options.json {
        let now_ns = options.now_unix_nanoseconds;
        return json::write(out, &json::resolution(resolution, healths, now_ns));
    }
    resolution::write(out, resolution, healths, options)
}

/// Shows what every group says of one process, condition by condition.
///
/// # Errors
/// What writing to `out` says.
pub fn render_explanation(
    out: &mut dyn Write,
    explanation: &Explanation,
    options: &Screen,
) -> io::Result<()> {
    if options.json {
        return json::write(out, &json::explanation(explanation));
    }
    explanation::write(out, explanation, options)
}
