//! One verdict for each line, as a line of JSON.
//!
//! ```text
//! {"file":"a.log","line":1,"ok":true,"error":null,"event":{"type":"start",...}}
//! {"file":"a.log","line":2,"ok":false,"error":"pid: expected an integer >= 0, found -1","event":null,
//!  "findings":[{"severity":"refused","field":"pid","expected":"an integer >= 0","found":"-1"}]}
//! ```
//!
//! (Broken here for reading.) A line is `ok` where nothing of it was refused; what is only suspect
//! stands in `findings`. A line of GPU Flight may tell many events, so that it has `events`, a list.
//! A batch that waits for its dictionary gets its verdict when that has come.

use std::collections::BTreeMap;
use std::io::{self, Write};

use warpgauge_formats::event::Event;
use warpgauge_formats::finding::{Finding, Severity};
use warpgauge_formats::json::write::Object;

use super::Checked;
use crate::events::reader::{LineRead, Places, message};

/// Verdicts that have not been written yet: those of one line and of what it explains, at most one
/// line and 8 MiB of batches that waited.
pub(super) struct Verdicts {
    format: Checked,
    lines: BTreeMap<u64, Verdict>,
    /// What is known of lines that wait.
    waiting: BTreeMap<u64, Verdict>,
    out: Vec<u8>,
}

/// What is known of a line.
#[derive(Default)]
struct Verdict {
    /// Events as JSON, with commas between.
    events: Vec<u8>,
    findings: Vec<Finding>,
}

impl Verdicts {
    pub(super) fn new(format: Checked) -> Self {
        Self { format, lines: BTreeMap::new(), waiting: BTreeMap::new(), out: vec![] }
    }

    pub(super) fn event(&mut self, line: u64, event: &Event<'_>) {
        let events = &mut self.of(line).events;
        if !events.is_empty() {
            events.push(b',');
        }
        event.write_json(events);
    }

    pub(super) fn finding(&mut self, finding: Finding) {
        self.of(finding.line).findings.push(finding);
    }

    fn of(&mut self, line: u64) -> &mut Verdict {
        if let Some(verdict) = self.waiting.remove(&line) {
            self.lines.insert(line, verdict);
        }
        self.lines.entry(line).or_default()
    }

    /// Writes what is known by now, but of a line that waits.
    pub(super) fn line_read(
        &mut self,
        line: LineRead,
        places: &Places,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if line.waits {
            if let Some(verdict) = self.lines.remove(&line.number) {
                self.waiting.insert(line.number, verdict);
            }
        } else if !line.is_blank {
            self.of(line.number);
        }
        self.write_all(places, out)
    }

    /// Writes all that is left.
    pub(super) fn write_all(&mut self, places: &Places, out: &mut dyn Write) -> io::Result<()> {
        while let Some((line, verdict)) = self.lines.pop_first() {
            self.out.clear();
            verdict.write(self.format, places.of(line), &mut self.out);
            out.write_all(&self.out)?;
        }
        Ok(())
    }
}

impl Verdict {
    fn write(&self, format: Checked, (file, line): (&str, u64), out: &mut Vec<u8>) {
        let refused = self.findings.iter().find(|finding| finding.severity == Severity::Refused);
        let mut object = Object::open(out);
        object.text("file", file).integer("line", line).boolean("ok", refused.is_none());
        match refused {
            Some(finding) => drop(object.text("error", &message(finding))),
            None => object.key("error").extend_from_slice(b"null"),
        }
        match format {
            Checked::Gpumon if self.events.is_empty() => {
                object.key("event").extend_from_slice(b"null")
            }
            Checked::Gpumon => object.key("event").extend_from_slice(&self.events),
            Checked::GpuFlight | Checked::Kineto => {
                let out = object.key("events");
                out.push(b'[');
                out.extend_from_slice(&self.events);
                out.push(b']');
            }
        }
        if !self.findings.is_empty() {
            let out = object.key("findings");
            for (position, finding) in self.findings.iter().enumerate() {
                out.push(if position == 0 { b'[' } else { b',' });
                let mut entry = Object::open(out);
                entry.text("severity", severity(finding.severity)).text("field", &finding.field);
                entry.text("expected", &finding.expected).text("found", &finding.found);
                entry.close();
            }
            out.push(b']');
        }
        object.close_line();
    }
}

pub(super) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Refused => "refused",
        Severity::Suspect => "suspect",
    }
}
