//! Reads the files of a session one after the other.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use warpgauge_formats::finding::{Finding, Sink};
use warpgauge_formats::lines::{LONGEST_LINE, Lines};
use warpgauge_formats::time::Timestamp;
use warpgauge_formats::{gpu_flight, gpumon};

use super::input::Input;
use super::order::Channel;

/// Follows a log while it is read.
///
/// Lines are numbered through all files, so that a line that waited for its dictionary in a later
/// file still has its place: [`Places`] knows which file and line a number means.
pub trait Follow: Sink {
    /// A line has been read; what it tells has come, unless it waits for its dictionary.
    fn line_read(&mut self, _line: LineRead) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// A file begins.
    fn file_begins(&mut self, _name: &str, _lines_before: u64) {}

    /// A file has been read to its end.
    fn file_ends(&mut self, _end: FileEnd) {}
}

/// One line of a log.
#[derive(Debug, Clone, Copy)]
pub struct LineRead {
    /// Counted from 1 through all files.
    pub number: u64,
    /// Whether nothing stood in it.
    pub is_blank: bool,
    /// Whether what it tells comes later.
    pub waits: bool,
}

/// The end of a file.
#[derive(Debug, Clone, Copy)]
pub struct FileEnd {
    /// Lines of the file.
    pub lines: u64,
    /// Bytes, unpacked.
    pub bytes: u64,
    /// Whether a newline ended the last line, if there is one. Without, it may be half a line.
    pub last_line_ended: bool,
    /// When the file was last written to.
    pub modified: Option<Timestamp>,
}

/// What is wrong, without where: the line's number is that of all files together.
#[must_use]
pub fn message(finding: &Finding) -> String {
    let Finding { field, expected, found, .. } = finding;
    let field = if field.is_empty() { String::new() } else { format!("{field}: ") };
    format!("{field}expected {expected}, found {found}")
}

/// Which file and line a number means.
#[derive(Debug, Clone, Default)]
pub struct Places {
    files: Vec<(u64, String)>,
}

impl Places {
    /// A file begins behind that many lines.
    pub fn file_begins(&mut self, name: &str, lines_before: u64) {
        self.files.push((lines_before, name.to_owned()));
    }

    /// The file that began last.
    #[must_use]
    pub fn last(&self) -> &str {
        self.files.last().map_or("", |(_, name)| name)
    }

    /// The file's place among the files, from 0.
    #[must_use]
    pub fn file(&self, number: u64) -> usize {
        self.files.partition_point(|(before, _)| *before < number).saturating_sub(1)
    }

    /// The file and the line in it.
    #[must_use]
    pub fn of(&self, number: u64) -> (&str, u64) {
        let behind = self.files.partition_point(|(before, _)| *before < number);
        let file = behind.checked_sub(1).and_then(|place| self.files.get(place));
        file.map_or(("", number), |(before, name)| (name.as_str(), number - before))
    }
}

/// Reads one session, or several.
pub struct LogReader {
    reader: Reader,
    lines: u64,
}

enum Reader {
    /// Each channel of gpumon begins and ends on its own, so that each has its own checks.
    Gpumon(gpumon::Mode, BTreeMap<Channel, gpumon::Reader>),
    GpuFlight(Box<gpu_flight::Reader>),
}

impl LogReader {
    /// Reads gpumon logs.
    #[must_use]
    pub fn gpumon(mode: gpumon::Mode) -> Self {
        Self { reader: Reader::Gpumon(mode, BTreeMap::new()), lines: 0 }
    }

    /// Reads GPU Flight logs of both forms.
    #[must_use]
    pub fn gpu_flight() -> Self {
        Self { reader: Reader::GpuFlight(Box::default()), lines: 0 }
    }

    /// Reads one file to its end, or until `sink` has enough. A stream that breaks off is a finding
    /// behind its last line.
    pub fn file(&mut self, path: &Path, input: Input, sink: &mut dyn Follow) -> ControlFlow<()> {
        let before = self.lines;
        sink.file_begins(&input.name, before);
        let (modified, packing) = (input.modified, input.packing);
        let channel = Channel::of(path);
        let mut lines = Lines::continued(input, 0, before);
        let (mut bytes, mut last_line_ended) = (0, true);
        loop {
            let line = match lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    self.lines += 1;
                    let expected = format!("the rest of the {} stream", packing.name());
                    sink.finding(Finding::refused(self.lines, "", expected, error.to_string()));
                    sink.line_read(LineRead { number: self.lines, is_blank: false, waits: false })?;
                    break;
                }
            };
            self.lines = line.number;
            (bytes, last_line_ended) = (line.offset + line.bytes.len() as u64, line.ended);
            let is_blank = line.bytes.trim_ascii().is_empty();
            if line.too_long {
                let expected = format!("at most {LONGEST_LINE} bytes");
                sink.finding(Finding::refused(line.number, "", expected, "a longer line"));
            } else {
                self.reader.line(channel, line.number, line.bytes, sink);
            }
            let waits = self.reader.waits(line.number);
            sink.line_read(LineRead { number: line.number, is_blank, waits })?;
        }
        let lines = self.lines - before;
        sink.file_ends(FileEnd { lines, bytes, last_line_ended, modified });
        ControlFlow::Continue(())
    }

    /// Names what never got its dictionary. Call it behind the last file.
    pub fn end(&mut self, sink: &mut dyn Follow) {
        if let Reader::GpuFlight(reader) = &mut self.reader {
            reader.end(sink);
        }
    }
}

impl Reader {
    fn line(&mut self, channel: Channel, number: u64, bytes: &[u8], sink: &mut dyn Sink) {
        match self {
            Self::Gpumon(mode, channels) => {
                let reader = channels.entry(channel).or_insert_with(|| gpumon::Reader::new(*mode));
                reader.line(number, bytes, sink);
            }
            Self::GpuFlight(reader) => reader.line(number, bytes, sink),
        }
    }

    fn waits(&self, line: u64) -> bool {
        match self {
            Self::Gpumon(..) => false,
            Self::GpuFlight(reader) => reader.waits(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_leads_back_to_its_file() {
        let mut places = Places::default();
        places.file_begins("a", 0);
        places.file_begins("empty", 3);
        places.file_begins("b", 3);
        assert_eq!(places.of(1), ("a", 1));
        assert_eq!(places.of(3), ("a", 3));
        assert_eq!(places.of(4), ("b", 1));
        assert_eq!(Places::default().of(4), ("", 4));
    }
}
