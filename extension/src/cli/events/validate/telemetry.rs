//! What is wrong with telemetry.
//!
//! With `--json` there is a line for each record, in the order of the input:
//!
//! ```text
//! {"ok":true,"event":{"schema_version":2,...},"error":null}
//! {"ok":false,"event":null,"error":"pid must be >= -1"}
//! ```
//!
//! A file that cannot be read to its end has one more, which says so.

use std::cell::Cell;
use std::io::{self, Write};

use comfy_table::{Cell as TableCell, Color};
use indicatif::ProgressBar;
use warpgauge_formats::json::write::Object;
use warpgauge_formats::telemetry::{
    Fault, Form, LoadError, Place, Sink, TelemetryEvent, load, load_records,
};

use crate::cli::columns::Columns;
use crate::cli::events::progress::bar;
use crate::cli::events::{Validate, misused};
use crate::cli::printable::printable;
use crate::cli::screen::Screen;
use crate::events::input::{Input, Stoppable};
use crate::report::Exit;

pub(super) fn validate(
    arguments: &Validate,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let mut reading = arguments.telemetry.reading();
    reading.options.permissive_legacy = !arguments.strict;
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
        let mut check = Check::new(&input.name, screen.json, out, &bar, &stop);
        let input = Stoppable::new(input, &stop);
        let key = reading.events_key.as_deref();
        let loaded = match arguments.records {
            true => load_records(input, &reading.options, &mut check),
            false => load(input, key, &reading.options, &mut check),
        };
        files.push(check.end(loaded.map(|loaded| loaded.form))?);
    }
    bar.finish_and_clear();
    if !screen.json {
        table(&files, screen, out)?;
    }
    let has_findings = files.iter().any(|file| file.form.is_none() || file.refused > 0);
    Ok(unopened.unwrap_or(if has_findings { Exit::Findings } else { Exit::Done }))
}

/// What was found in one file.
struct File {
    name: String,
    events: u64,
    refused: u64,
    /// How the records stand in it; none where it cannot be read to its end.
    form: Option<Form>,
}

/// Hears what the reader says and shows it.
struct Check<'c> {
    file: File,
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
        let file = File { name: name.to_owned(), events: 0, refused: 0, form: None };
        Self { file, json, out, bar, line: vec![], fault: None, stop }
    }

    /// Shows how the file ended.
    fn end(mut self, form: Result<Form, LoadError>) -> io::Result<File> {
        match form {
            Ok(form) => self.file.form = Some(form),
            Err(_) if self.stop.get() => {}
            Err(error) if self.json => {
                self.verdict(Err(&error.to_string()));
                let text = format!("{}: {error}", self.file.name);
                self.bar.suspend(|| eprintln!("warpgauge: {}", printable(&text)));
            }
            Err(error) => self.say(&format!("{}: {error}", self.file.name)),
        }
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(self.file),
        }
    }

    fn verdict(&mut self, event: Result<&TelemetryEvent<'_>, &str>) {
        self.line.clear();
        let mut object = Object::open(&mut self.line);
        object.boolean("ok", event.is_ok());
        match event {
            Ok(event) => {
                event.write(object.key("event"));
                object.key("error").extend_from_slice(b"null");
            }
            Err(error) => {
                object.key("event").extend_from_slice(b"null");
                object.text("error", error);
            }
        }
        object.close_line();
        let written = self.out.write_all(&self.line);
        self.note(written);
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
}

impl Sink for Check<'_> {
    fn event(&mut self, _: Place, event: &TelemetryEvent<'_>) {
        self.file.events += 1;
        if self.json {
            self.verdict(Ok(event));
        }
    }

    fn refused(&mut self, place: Place, fault: Fault) {
        self.file.refused += 1;
        if self.json {
            return self.verdict(Err(&fault.to_string()));
        }
        let Place { index, line, .. } = place;
        self.say(&format!("{}:{line}: record {index}: {fault}", self.file.name));
    }
}

fn table(files: &[File], screen: &Screen, out: &mut dyn Write) -> io::Result<()> {
    const TITLES: [&str; 4] = ["EVENTS", "REFUSED", "FORM", "FILE"];
    let mut columns = Columns::new(&TITLES, screen);
    TITLES.iter().take(2).for_each(|title| columns.align_right(title, &TITLES));
    for file in files {
        columns.row(vec![
            TableCell::new(file.events),
            match file.refused {
                0 => TableCell::new(0),
                refused => screen.cell(refused, Color::Red),
            },
            match file.form {
                Some(Form::List) => TableCell::new("list"),
                Some(Form::Object) => TableCell::new("object"),
                Some(Form::Record) => TableCell::new("record"),
                Some(Form::Lines) => TableCell::new("lines"),
                None => screen.cell("broken", Color::Red),
            },
            TableCell::new(printable(&file.name)),
        ]);
    }
    columns.write(out, "")
}
