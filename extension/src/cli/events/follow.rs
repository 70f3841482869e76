//! `warpgauge events follow`: what logs say, as they say it.
//!
//! ```text
//! arguments ── patterns ── follow ── logs ── filter ── line ── out
//! ```
//!
//! Discovery and reading are those of the pass (`crate::follow`), with cursors that lie in memory
//! only: nothing is written to the disk, and the cursors of the pass stay where they are.

mod filter;
mod line;
mod logs;
mod patterns;
mod stop;

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use self::filter::Filter;
pub(super) use self::filter::TYPES;
use self::line::Lines;
use self::logs::{Logs, Show};
use self::stop::Stop;
use super::{Follow, misused};
use crate::cli::printable::printable;
use crate::cli::screen::Screen;
use crate::events::unknown::Unknown;
use crate::follow::{Flow, Follower};
use crate::report::Exit;
use crate::skips::Skips;

/// How long to wait between two looks at the files, at least; a look that takes long is followed by
/// a longer wait.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// What one look may take: an interrupt is heard within it.
const LOOK: Duration = Duration::from_secs(2);

/// Lines between two glances at the signals.
const BETWEEN_GLANCES: u64 = 1_024;

pub(super) fn follow(
    arguments: &Follow,
    config: &Path,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let patterns = match patterns::given(arguments, config)? {
        Ok(patterns) => patterns,
        Err(words) => return Ok(misused(words)),
    };
    let stop = Stop::after(arguments.seconds)?;
    let (rules, formats) = patterns.into_iter().unzip();
    let mut follower = Follower::in_memory(rules);
    follower.limits.time = LOOK;
    let mut logs = Logs::new(formats);
    let mut shown = Shown {
        filter: Filter::new(&arguments.types, arguments.name.as_ref()),
        lines: Lines::new(screen),
        json: screen.json.then(Vec::new),
        out: BufWriter::new(out),
        unknown: Unknown::default(),
        fault: None,
    };
    let (mut lines, mut is_first) = (0_u64, true);
    loop {
        let began = Instant::now();
        let summary = follower.read(&mut |file, line| {
            lines += 1;
            let is_enough = shown.fault.is_some()
                || (lines.is_multiple_of(BETWEEN_GLANCES) && stop.is_due(Duration::ZERO));
            if is_enough {
                return Flow::Stop;
            }
            logs.line(file, line, &mut shown);
            Flow::Next
        });
        shown.fault.take().map_or(Ok(()), Err)?;
        shown.out.flush()?;
        tell(&summary.refused);
        if std::mem::take(&mut is_first) && summary.files == 0 {
            eprintln!("warpgauge: nothing to read there yet; waiting");
        }
        let pause = match summary.has_more && summary.lines > 0 {
            true => Duration::ZERO,
            false => BETWEEN_LOOKS.max(began.elapsed() * 4),
        };
        if stop.is_due(pause) {
            return Ok(Exit::Done);
        }
    }
}

/// Files that are not read, each when it is first met.
fn tell(refused: &Skips) {
    for (reason, skip) in refused.iter() {
        let others = match skip.count - 1 {
            0 => String::new(),
            others => format!(", and {others} more"),
        };
        let words = reason.replace('_', " ");
        eprintln!("warpgauge: {}: not read, {words}{others}", printable(&skip.example));
    }
}

/// Writes the events that are asked for; what is no event goes to standard error.
struct Shown<'o> {
    filter: Filter<'o>,
    lines: Lines,
    /// With `--json`: the line that is being written.
    json: Option<Vec<u8>>,
    out: BufWriter<&'o mut dyn Write>,
    unknown: Unknown,
    fault: Option<io::Error>,
}

impl Show for Shown<'_> {
    fn event(&mut self, event: &warpgauge_formats::event::Event<'_>) {
        if self.fault.is_some() || !self.filter.passes(event) {
            return;
        }
        let written = match &mut self.json {
            Some(json) => {
                json.clear();
                event.write_json(json);
                json.push(b'\n');
                self.out.write_all(json)
            }
            None => self.lines.write(event, &mut self.out),
        };
        self.fault = written.err();
    }

    fn finding(&mut self, place: &str, words: &str) {
        eprintln!("warpgauge: {}", printable(&format!("{place}: {words}")));
    }

    fn unknown(&mut self, place: &str, name: &str) {
        if self.unknown.note(1, name) {
            let words = format!("{place}: {name} is unknown and is not shown; said once");
            eprintln!("warpgauge: {}", printable(&words));
        }
    }
}
