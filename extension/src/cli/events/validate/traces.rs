//! What is wrong with traces.
//!
//! With `--json` there is a line for each finding, and behind those of a file one for the file:
//!
//! ```text
//! {"file":"a.json","line":7,"column":3,"offset":210,"severity":"refused","field":"ts",
//!  "expected":"microseconds","found":"nothing"}
//! {"file":"a.json","ok":false,"records":12,"refused":1,"suspect":0,"mended":0,"unknown":[],
//!  "error":null}
//! ```
//!
//! (Broken here for reading.) Line, column and offset are those of the record's first byte. `error`
//! is an object with line, column, offset and message where the trace cannot be read to its end.

use std::cell::Cell;
use std::io::{self, Write};

use comfy_table::{Cell as TableCell, Color};
use indicatif::ProgressBar;
use warpgauge_formats::finding::{Finding, Severity};
use warpgauge_formats::json::stream::Position;
use warpgauge_formats::json::write::Object;
use warpgauge_formats::trace::{Record, Sink};

use super::verdicts::severity;
use crate::cli::columns::Columns;
use crate::cli::events::progress::bar;
use crate::cli::events::units::count;
use crate::cli::events::{Validate, misused};
use crate::cli::printable::printable;
use crate::cli::screen::Screen;
use crate::events::format::Format;
use crate::events::input::Input;
use crate::events::log::LogError;
use crate::events::reader::message;
use crate::events::unknown::Unknown;
use crate::report::Exit;
use crate::traces::read::{self, End};

pub(super) fn validate(
    arguments: &Validate,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    if arguments.strict {
        return Ok(misused("--strict is for gpumon and gpu-flight"));
    }
    let bar = bar(&arguments.files);
    let mut files = vec![];
    let mut unopened = None;
    let stop = Cell::new(false);
    for path in &arguments.files {
        let input = match Input::open(path, &bar) {
            Ok(input) => input,
            // The others are still worth a look.
            Err(error) => {
                unopened = Some(bar.suspend(|| misused(error)));
                continue;
            }
        };
        if Format::of(input.head()) == Some(Format::Perfetto) {
            let path = path.clone();
            unopened = Some(bar.suspend(|| misused(LogError::WrittenOnly { path })));
            continue;
        }
        let mut check = Check::new(&input.name, screen.json, out, &bar, &stop);
        let end = read::read(input, arguments.repair, &stop, &mut check);
        files.push(check.end(end)?);
    }
    bar.finish_and_clear();
    if !screen.json {
        table(&files, screen, out)?;
    }
    let has_findings = files.iter().any(File::has_findings);
    Ok(unopened.unwrap_or(if has_findings { Exit::Findings } else { Exit::Done }))
}

/// What was found in one file.
struct File {
    name: String,
    records: u64,
    refused: u64,
    suspect: u64,
    mended: u64,
    is_broken: bool,
}

impl File {
    fn has_findings(&self) -> bool {
        self.is_broken || self.refused + self.suspect + self.mended > 0
    }
}

/// Hears what the reader says and shows it.
struct Check<'c> {
    file: File,
    unknown: Unknown,
    position: Position,
    json: bool,
    out: &'c mut dyn Write,
    bar: &'c ProgressBar,
    line: Vec<u8>,
    fault: Option<io::Error>,
    /// Set when the output has a fault.
    stop: &'c Cell<bool>,
}

impl<'c> Check<'c> {
    fn new(
        name: &str,
        json: bool,
        out: &'c mut dyn Write,
        bar: &'c ProgressBar,
        stop: &'c Cell<bool>,
    ) -> Self {
        let name = name.to_owned();
        let file = File { name, records: 0, refused: 0, suspect: 0, mended: 0, is_broken: false };
        Self {
            file,
            unknown: Unknown::default(),
            position: Position { line: 0, column: 0, offset: 0 },
            json,
            out,
            bar,
            line: vec![],
            fault: None,
            stop,
        }
    }

    /// Shows a line of text.
    fn say(&mut self, text: &str) {
        let out = &mut *self.out;
        let written = self.bar.suspend(|| writeln!(out, "{}", printable(text)));
        self.note(written);
    }

    /// Keeps the first fault of the output.
    fn note(&mut self, written: io::Result<()>) {
        self.fault = self.fault.take().or(written.err());
        self.stop.set(self.fault.is_some());
    }

    /// Shows how the file ended.
    fn end(mut self, end: End) -> io::Result<File> {
        let End { mended, fault, .. } = end;
        (self.file.mended, self.file.is_broken) = (mended, fault.is_some());
        if self.json {
            self.verdict(fault.as_ref());
        } else {
            let name = self.file.name.clone();
            let remarks: Vec<_> = self
                .unknown
                .iter()
                .map(|(what, seen)| {
                    let times = count(seen.count, "time");
                    format!("{name}:{}: {what} is unknown, {times}", seen.first_line)
                })
                .collect();
            remarks.iter().for_each(|remark| self.say(remark));
            if mended > 0 {
                let quotes = count(mended, "quote");
                self.say(&format!("{name}: --repair mended {quotes} within texts"));
            }
            if let Some(fault) = &fault {
                self.say(&format!("{name}:{fault}"));
            }
            if self.file.records == 0 && fault.is_none() {
                self.say(&format!("{name}: the trace is empty"));
            }
        }
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(self.file),
        }
    }

    fn verdict(&mut self, fault: Option<&read::Fault>) {
        self.line.clear();
        let File { name, records, refused, suspect, mended, .. } = &self.file;
        let mut object = Object::open(&mut self.line);
        object.text("file", name).boolean("ok", fault.is_none() && *refused == 0);
        object.integer("records", *records).integer("refused", *refused);
        object.integer("suspect", *suspect).integer("mended", *mended);
        let unknown: Vec<_> = self.unknown.iter().collect();
        object.objects("unknown", &unknown, |entry, (name, seen)| {
            entry.text("name", name).integer("times", seen.count);
            entry.integer("first_line", seen.first_line);
        });
        let out = object.key("error");
        match fault {
            None => out.extend_from_slice(b"null"),
            Some(read::Fault { position, what }) => {
                let mut error = Object::open(out);
                place(&mut error, *position).text("message", what);
                error.close();
            }
        }
        object.close_line();
        let written = self.out.write_all(&self.line);
        self.note(written);
    }
}

fn place<'o, 'b>(object: &'o mut Object<'b>, position: Position) -> &'o mut Object<'b> {
    let Position { line, column, offset } = position;
    object.integer("line", line).integer("column", column).integer("offset", offset)
}

impl Sink for Check<'_> {
    fn record(&mut self, _: u64, _: &Record<'_>) {
        self.file.records += 1;
    }

    fn at(&mut self, position: Position) {
        self.position = position;
    }

    fn finding(&mut self, finding: Finding) {
        match finding.severity {
            Severity::Refused => self.file.refused += 1,
            Severity::Suspect => self.file.suspect += 1,
        }
        if !self.json {
            let Position { line, column, .. } = self.position;
            let text = format!("{}:{line}:{column}: {}", self.file.name, message(&finding));
            return self.say(&text);
        }
        self.line.clear();
        let mut object = Object::open(&mut self.line);
        object.text("file", &self.file.name);
        place(&mut object, self.position).text("severity", severity(finding.severity));
        object.text("field", &finding.field).text("expected", &finding.expected);
        object.text("found", &finding.found);
        object.close_line();
        let written = self.out.write_all(&self.line);
        self.note(written);
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.unknown.note(line, name);
    }
}

fn table(files: &[File], screen: &Screen, out: &mut dyn Write) -> io::Result<()> {
    const TITLES: [&str; 5] = ["RECORDS", "REFUSED", "SUSPECT", "MENDED", "FILE"];
    let mut columns = Columns::new(&TITLES, screen);
    TITLES.iter().take(4).for_each(|title| columns.align_right(title, &TITLES));
    let number = |number: u64, color| match number {
        0 => TableCell::new(0),
        _ => screen.cell(number, color),
    };
    for file in files {
        columns.row(vec![
            TableCell::new(file.records),
            number(file.refused, Color::Red),
            number(file.suspect, Color::Yellow),
            number(file.mended, Color::Yellow),
            TableCell::new(printable(&file.name)),
        ]);
    }
    columns.write(out, "")
}
