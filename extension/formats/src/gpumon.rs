//! gpumon's event log: one JSON object per line.
//!
//! ```text
//! {"type":"init","pid":1234,"app":"trainer","logPath":"gpumon.log","ts_ns":10}
//! {"type":"scope_begin","pid":1234,"app":"trainer","name":"epoch_1","ts_ns":20,
//!  "memory":[{"device":0,"used_mib":1024,"free_mib":8192,"total_mib":9216}]}
//! {"type":"kernel","pid":1234,"app":"trainer","kernel":"vectorAdd","ts_start_ns":30,
//!  "ts_end_ns":40,"duration_ns":10,"grid":[128,1,1],"block":[256,1,1],"shared_mem_bytes":0,
//!  "cuda_error":"cudaSuccess"}
//! {"type":"scope_end","pid":1234,"app":"trainer","name":"epoch_1","ts_start_ns":20,
//!  "ts_end_ns":50,"duration_ns":30}
//! {"type":"shutdown","pid":1234,"app":"trainer","ts_ns":60}
//! ```
//!
//! (Broken here for reading; in a log each is one line.) [`Mode::Strict`] refuses exactly what the
//! published schema refuses (`res/schemas/gpumon.schema.json`, draft-07). [`Mode::Tolerant`] also
//! understands what later producers write: see `docs/formats/gpumon.md`.

mod checks;
mod convert;
pub(crate) mod line;
mod strict;
mod write;

use checks::Checks;
use line::GpumonLine;
pub use write::Writer;

use crate::finding::{Finding, Sink};
use crate::json::Reader as Json;
use crate::record::Record as _;

/// What is accepted.
///
/// The schema also allows whole numbers beyond 64 bits. No event can hold them: such a line gives
/// none and a finding, which is [`Suspect`](crate::finding::Severity::Suspect) in strict mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Exactly the schema.
    Strict,
    /// The schema and the shapes of real producers.
    #[default]
    Tolerant,
}

/// The types that the schema has.
const TYPES: &str = "init, scope_begin, scope_sample, scope_end, kernel or shutdown";

/// Reads a log line by line.
///
/// Remembers the open scopes, to pair an end that does not say when it began, and which processes
/// began and ended: 65,536 of each, and says so where it had to forget some.
#[derive(Debug, Default)]
pub struct Reader {
    mode: Mode,
    checks: Checks,
}

impl Reader {
    /// Reads in that mode.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self { mode, checks: Checks::default() }
    }

    /// Reads one line, without its newline. A blank line is nothing.
    pub fn line(&mut self, number: u64, bytes: &[u8], sink: &mut dyn Sink) {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let found = format!("other bytes behind byte {}", error.valid_up_to());
                return sink.finding(Finding::refused(number, "", "UTF-8", found));
            }
        };
        if text.trim_ascii().is_empty() {
            return;
        }
        match read(text) {
            Ok(line) => self.take(number, line, sink),
            Err(finding) => sink.finding(Finding { line: number, ..finding }),
        }
    }

    fn take(&mut self, number: u64, mut line: GpumonLine<'_>, sink: &mut dyn Sink) {
        if self.mode == Mode::Strict {
            let refusals = strict::refusals(number, &line);
            if !refusals.is_empty() {
                return refusals.into_iter().for_each(|finding| sink.finding(finding));
            }
            line.forget_what_the_schema_does_not_know();
        }
        let Some(mut event) = convert::event(number, self.mode, &mut line, sink) else { return };
        self.checks.event(number, &mut event, sink);
        sink.event(number, &event);
    }
}

fn read(text: &str) -> Result<GpumonLine<'_>, Finding> {
    let mut json = Json::new(text);
    let fault =
        |fault: crate::json::Fault| Finding::refused(0, "", "a JSON object", fault.to_string());
    if json.peek().map_err(fault)? != crate::json::Kind::Object {
        return Err(Finding::refused(0, "", "a JSON object", text));
    }
    let line = GpumonLine::read_record(&mut json).map_err(fault)?;
    json.end().map_err(fault)?;
    Ok(line)
}
