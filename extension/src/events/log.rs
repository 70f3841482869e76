//! A whole log, whatever its files are: told by content, in the right order, to its end.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use warpgauge_formats::gpumon::Mode;
use warpgauge_formats::tables;

use super::format::Format;
use super::input::{Input, OpenError};
use super::order::in_reading_order;
use super::reader::{FileEnd, Follow, LogReader};
use super::tables::{Folder, sessions};

/// Why a log was not read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// No line tells the format.
    #[error(
        "{path}: cannot tell the format by its first lines; name it: gpumon, gpu-flight, parquet, kineto"
    )]
    Unclear {
        /// The file.
        path: PathBuf,
    },
    /// A trace stands where a log should.
    #[error(
        "{path} is a trace ({found}): it can become kineto, chrome or perfetto, and no event log"
    )]
    Trace {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: Format,
    },
    /// A trace stands there in a form that is not read.
    #[error(
        "{path} is a trace in Perfetto's form, which is written and not read: give what it was made from"
    )]
    WrittenOnly {
        /// The file.
        path: PathBuf,
    },
    /// The files have different formats.
    #[error("{path} is {found}, not {before}; give logs of one format")]
    Mixed {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: Format,
        /// The format that was named, or that of the files before.
        before: Format,
    },
    /// A folder has no tables.
    #[error("{path} holds no Parquet tables")]
    NoTables {
        /// The folder.
        path: PathBuf,
    },
    /// Tables could not be read.
    #[error("{path}: {error}")]
    Tables {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        error: tables::Error,
    },
}

impl LogError {
    /// Whether the log's content is at fault, rather than how it was named.
    #[must_use]
    pub fn is_of_content(&self) -> bool {
        matches!(self, Self::Tables { .. })
    }
}

/// Reads the files of a log, or the folders of tables, into `sink`, and gives the format. Without a
/// `format` the content tells; a log of empty files has none.
///
/// # Errors
/// Where a file cannot be opened or is no log of that format. What is wrong within a log is the
/// sink's to hear.
pub fn read(
    files: &[PathBuf],
    format: Option<Format>,
    bar: &ProgressBar,
    sink: &mut dyn Follow,
) -> Result<Option<Format>, LogError> {
    Opened::open(files, format, bar)?.read(bar, sink)
}

/// Files in their order, the first of which has been opened: its content tells whether they are a log
/// or traces, and a pipe can be read only once.
pub struct Opened {
    /// The files, or the folders of tables, in the order in which they are read.
    pub files: Vec<PathBuf>,
    /// The first file; none of tables.
    pub first: Option<Input>,
    /// The format that was named, or that of the first file.
    pub format: Option<Format>,
}

impl Opened {
    /// Opens the first of `files`. Without a `format` its content tells.
    ///
    /// # Errors
    /// Where it cannot be opened.
    pub fn open(
        files: &[PathBuf],
        format: Option<Format>,
        bar: &ProgressBar,
    ) -> Result<Self, OpenError> {
        let mut files = files.to_vec();
        if format == Some(Format::Parquet) || format.is_none() && files.iter().all(|at| at.is_dir())
        {
            return Ok(Self { files, first: None, format: Some(Format::Parquet) });
        }
        in_reading_order(&mut files);
        let first = files.first().map(|path| Input::open(path, bar)).transpose()?;
        let found = || first.as_ref().and_then(|input| Format::of(input.head()));
        let format = format.or_else(found);
        Ok(Self { files, first, format })
    }

    /// Whether the files are traces.
    #[must_use]
    pub fn is_trace(&self) -> bool {
        self.format.is_some_and(Format::is_trace)
    }

    /// Reads the log into `sink`, and gives its format.
    ///
    /// # Errors
    /// As [`read`].
    pub fn read(
        self,
        bar: &ProgressBar,
        sink: &mut dyn Follow,
    ) -> Result<Option<Format>, LogError> {
        let Self { files, mut first, mut format } = self;
        if format == Some(Format::Parquet) {
            files.iter().try_for_each(|path| read_tables(path, sink))?;
            return Ok(format);
        }
        let mut reader = None;
        for path in files {
            let input = match first.take() {
                Some(input) => input,
                None => Input::open(&path, bar)?,
            };
            let found = Format::of(input.head());
            if let Some(found) = found.or(format).filter(|found| found.is_trace()) {
                return Err(LogError::Trace { path, found });
            }
            match (format, found) {
                (None, None) if input.head().is_empty() => {
                    sink.file_begins(&input.name, 0);
                    let modified = input.modified;
                    sink.file_ends(FileEnd { lines: 0, bytes: 0, last_line_ended: true, modified });
                    continue;
                }
                (None, None) => return Err(LogError::Unclear { path }),
                (Some(before), Some(found)) if !before.reads_like(found) => {
                    return Err(LogError::Mixed { path, found, before });
                }
                _ => format = format.or(found),
            }
            let reader = reader.get_or_insert_with(|| match format {
                Some(Format::Gpumon) => LogReader::gpumon(Mode::Tolerant),
                _ => LogReader::gpu_flight(),
            });
            if let ControlFlow::Break(()) = reader.file(&path, input, sink) {
                return Ok(format);
            }
        }
        if let Some(mut reader) = reader {
            reader.end(sink);
        }
        Ok(format)
    }
}

fn read_tables(path: &Path, sink: &mut dyn Follow) -> Result<(), LogError> {
    let open = |error| OpenError::System { path: path.to_owned(), error };
    let sessions = sessions(path).map_err(open)?;
    if sessions.is_empty() {
        return Err(LogError::NoTables { path: path.to_owned() });
    }
    for path in sessions {
        sink.file_begins(&path.display().to_string(), 0);
        tables::read(&mut Folder(&path), sink).map_err(|error| LogError::Tables { path, error })?;
    }
    Ok(())
}
