//! `warpgauge events validate`: what is wrong with logs.

mod traces;
mod verdicts;

use std::io::{self, Write};
use std::ops::ControlFlow;

use comfy_table::{Cell, Color};
use indicatif::ProgressBar;
use warpgauge_formats::event::Event;
use warpgauge_formats::finding::{Finding, Severity, Sink};
use warpgauge_formats::gpumon::Mode;

use self::verdicts::Verdicts;
use super::progress::bar;
use super::units::{count, offset};
use super::{Checked, Validate, misused};
use crate::cli::columns::Columns;
use crate::cli::printable::printable;
use crate::cli::screen::Screen;
use crate::events::clock::Clock;
use crate::events::input::Input;
use crate::events::order::in_reading_order;
use crate::events::reader::{FileEnd, Follow, LineRead, LogReader, Places, message};
use crate::events::unknown::Unknown;
use crate::report::Exit;

pub(super) fn validate(
    arguments: &Validate,
    screen: &Screen,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    if arguments.format == Checked::Kineto {
        return traces::validate(arguments, screen, out);
    }
    if arguments.repair {
        return Ok(misused("--repair mends traces: it needs --format kineto"));
    }
    let mut files = arguments.files.clone();
    in_reading_order(&mut files);
    let bar = bar(&files);
    let mut reader = match (arguments.format, arguments.strict) {
        (Checked::Gpumon, true) => LogReader::gpumon(Mode::Strict),
        (Checked::Gpumon, false) => LogReader::gpumon(Mode::Tolerant),
        (_, _) => LogReader::gpu_flight(),
    };
    let verdicts = screen.json.then(|| Verdicts::new(arguments.format));
    let unknown_is_a_finding = arguments.strict && arguments.format == Checked::GpuFlight;
    let mut check = Check::new(out, &bar, verdicts, unknown_is_a_finding);
    let mut unopened = None;
    for path in &files {
        match Input::open(path, &bar) {
            Ok(input) => {
                if reader.file(path, input, &mut check).is_break() {
                    break;
                }
            }
            // The others are still worth a look.
            Err(error) => unopened = Some(bar.suspend(|| misused(error))),
        }
    }
    reader.end(&mut check);
    bar.finish_and_clear();
    let has_findings = check.end(screen)?;
    Ok(unopened.unwrap_or(if has_findings { Exit::Findings } else { Exit::Done }))
}

/// Hears what the reader says and shows it.
struct Check<'c> {
    out: &'c mut dyn Write,
    bar: &'c ProgressBar,
    /// With `--json`.
    verdicts: Option<Verdicts>,
    unknown_is_a_finding: bool,
    places: Places,
    unknown: Unknown,
    clock: Clock,
    files: Vec<FileSummary>,
    fault: Option<io::Error>,
}

/// What was found in one file.
#[derive(Debug, Default)]
struct FileSummary {
    name: String,
    lines: u64,
    events: u64,
    refused: u64,
    suspect: u64,
    remarks: Vec<String>,
}

impl<'c> Check<'c> {
    fn new(
        out: &'c mut dyn Write,
        bar: &'c ProgressBar,
        verdicts: Option<Verdicts>,
        unknown_is_a_finding: bool,
    ) -> Self {
        Self {
            out,
            bar,
            verdicts,
            unknown_is_a_finding,
            places: Places::default(),
            unknown: Unknown::default(),
            clock: Clock::default(),
            files: vec![],
            fault: None,
        }
    }

    /// The file in which the line stands.
    fn file(&mut self, line: u64) -> Option<&mut FileSummary> {
        self.files.get_mut(self.places.file(line))
    }

    fn show(&mut self, finding: &Finding) {
        let (file, line) = self.places.of(finding.line);
        let text = format!("{file}:{line}: {}", message(finding));
        let out = &mut *self.out;
        let written = self.bar.suspend(|| writeln!(out, "{}", printable(&text)));
        self.note(written);
    }

    /// Keeps the first fault of the output.
    fn note(&mut self, written: io::Result<()>) {
        self.fault = self.fault.take().or(written.err());
    }

    /// Shows what is left, and says whether anything was found.
    fn end(mut self, screen: &Screen) -> io::Result<bool> {
        if let Some(verdicts) = &mut self.verdicts {
            let written = verdicts.write_all(&self.places, self.out);
            self.note(written);
        }
        self.fault.take().map_or(Ok(()), Err)?;
        let remarks = self.remarks();
        if self.verdicts.is_some() {
            remarks.iter().for_each(|remark| eprintln!("warpgauge: {}", printable(remark)));
        } else {
            for remark in remarks {
                writeln!(self.out, "{}", printable(&remark))?;
            }
            self.table(screen)?;
        }
        Ok(self.files.iter().any(|file| file.refused + file.suspect > 0))
    }

    /// What is no finding but has to be known.
    fn remarks(&self) -> Vec<String> {
        let of_files = self
            .files
            .iter()
            .flat_map(|file| file.remarks.iter().map(|remark| format!("{}: {remark}", file.name)));
        let unknown = self.unknown.iter().map(|(name, seen)| {
            let (file, line) = self.places.of(seen.first_line);
            format!(
                "{file}:{line}: {name} is unknown and was not read, {}",
                count(seen.count, "time")
            )
        });
        of_files.chain(unknown).collect()
    }

    fn table(&mut self, screen: &Screen) -> io::Result<()> {
        const TITLES: [&str; 5] = ["LINES", "EVENTS", "REFUSED", "SUSPECT", "FILE"];
        let mut columns = Columns::new(&TITLES, screen);
        TITLES.iter().take(4).for_each(|title| columns.align_right(title, &TITLES));
        let number = |number: u64, color| match number {
            0 => Cell::new(0),
            _ => screen.cell(number, color),
        };
        let mut all = FileSummary { name: "all".to_owned(), ..FileSummary::default() };
        let row = |file: &FileSummary| {
            vec![
                Cell::new(file.lines),
                Cell::new(file.events),
                number(file.refused, Color::Red),
                number(file.suspect, Color::Yellow),
                Cell::new(printable(&file.name)),
            ]
        };
        for file in &self.files {
            all.lines += file.lines;
            all.events += file.events;
            all.refused += file.refused;
            all.suspect += file.suspect;
            columns.row(row(file));
        }
        if self.files.len() > 1 {
            columns.row(row(&all));
        }
        columns.write(self.out, "")
    }
}

impl Sink for Check<'_> {
    fn event(&mut self, line: u64, event: &Event<'_>) {
        self.clock.note(event);
        if let Some(file) = self.file(line) {
            file.events += 1;
        }
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.event(line, event);
        }
    }

    fn finding(&mut self, finding: Finding) {
        if let Some(file) = self.file(finding.line) {
            match finding.severity {
                Severity::Refused => file.refused += 1,
                Severity::Suspect => file.suspect += 1,
            }
        }
        match &mut self.verdicts {
            Some(verdicts) => verdicts.finding(finding),
            None => self.show(&finding),
        }
    }

    fn unknown(&mut self, line: u64, name: &str) {
        if self.unknown_is_a_finding {
            self.finding(Finding::suspect(line, "", "a known type or field", name));
        } else {
            self.unknown.note(line, name);
        }
    }
}

impl Follow for Check<'_> {
    fn line_read(&mut self, line: LineRead) -> ControlFlow<()> {
        if let Some(verdicts) = &mut self.verdicts {
            let written = verdicts.line_read(line, &self.places, self.out);
            self.note(written);
        }
        if self.fault.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn file_begins(&mut self, name: &str, lines_before: u64) {
        self.places.file_begins(name, lines_before);
        self.files.push(FileSummary { name: name.to_owned(), ..FileSummary::default() });
    }

    fn file_ends(&mut self, end: FileEnd) {
        let clock = std::mem::take(&mut self.clock);
        let Some(file) = self.files.last_mut() else { return };
        file.lines = end.lines;
        if end.lines == 0 {
            file.remarks.push("the file is empty".to_owned());
        }
        if !end.last_line_ended {
            file.remarks.push("the last line has no newline: it may be half a line".to_owned());
        }
        if clock.is_monotonic() {
            file.remarks.push(offset(clock.offset(end.modified)));
        }
    }
}
