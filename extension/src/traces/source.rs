//! What is converted: traces, or an event log that is drawn as one. It can be read several times.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;

use super::log;
use super::read::{self, Follow};
use crate::events::convert::ConvertError;
use crate::events::format::Format;
use crate::events::input::{Input, OpenError};
use crate::events::log::{LogError, Opened};

const STDIN: &str = "standard input";

/// Files whose records can be heard.
pub(super) struct Source {
    files: Vec<PathBuf>,
    format: Option<Format>,
    repair: bool,
    /// The files, the first of which has been opened, until they are read for the first time.
    opened: Option<Opened>,
    spool: Option<Spool>,
}

/// Standard input, copied so that it can be read again.
struct Spool {
    file: File,
}

impl Spool {
    fn of_stdin() -> io::Result<Self> {
        let mut file = tempfile::tempfile()?;
        io::copy(&mut io::stdin().lock(), &mut file)?;
        Ok(Self { file })
    }

    /// The file by its descriptor (proc(5)): each opening begins at its first byte.
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

impl Source {
    /// Opens the first of `files`. Where they are read `again`, standard input is copied to a file
    /// without a name.
    pub(super) fn open(
        files: &[PathBuf],
        from: Option<Format>,
        repair: bool,
        again: bool,
        bar: &ProgressBar,
    ) -> Result<Self, ConvertError> {
        let mut files = files.to_vec();
        let stdin = files.iter_mut().find(|path| *path == Path::new("-"));
        let mut spool = None;
        if let Some(path) = stdin.filter(|_| again) {
            let copied = Spool::of_stdin();
            let copied =
                copied.map_err(|error| ConvertError::Output { path: STDIN.into(), error })?;
            *path = copied.path();
            spool = Some(copied);
        }
        let opened = Opened::open(&files, from, bar).map_err(LogError::from)?;
        let Opened { files, format, .. } = &opened;
        let (files, format) = (files.clone(), *format);
        Ok(Self { files, format, repair, opened: Some(opened), spool })
    }

    /// Whether the files are an event log.
    pub(super) fn is_log(&self) -> bool {
        self.format.is_some_and(|format| !format.is_trace())
    }

    /// The names of the traces, which is one for an event log.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.files.iter().map(|path| self.name(path));
        names.take(if self.is_log() { 1 } else { self.files.len() }).collect()
    }

    fn name(&self, path: &Path) -> String {
        match &self.spool {
            Some(spool) if spool.path() == path => STDIN.to_owned(),
            None if path == Path::new("-") => STDIN.to_owned(),
            _ => path.display().to_string(),
        }
    }

    /// Reads all of it into `sink`, until `stop` says so.
    pub(super) fn read(
        &mut self,
        bar: &ProgressBar,
        stop: &Cell<bool>,
        sink: &mut dyn Follow,
    ) -> Result<(), ConvertError> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => Opened::open(&self.files, self.format, bar).map_err(LogError::from)?,
        };
        if self.is_log() {
            return Ok(log::read(opened, &|path| self.name(path), bar, stop, sink)?);
        }
        let mut first = opened.first;
        for (trace, path) in self.files.iter().enumerate() {
            let input = match first.take() {
                Some(input) => input,
                None => Input::open(path, bar).map_err(LogError::from)?,
            };
            check(path, &input, self.format)?;
            sink.trace_begins(trace, &self.name(path));
            let end = read::read(input, self.repair, stop, sink);
            sink.trace_ends(trace, end);
        }
        Ok(())
    }
}

/// Whether a file can be a trace that is read.
fn check(path: &Path, input: &Input, format: Option<Format>) -> Result<(), LogError> {
    let path = path.to_owned();
    match (format, Format::of(input.head())) {
        (_, Some(Format::Perfetto)) | (Some(Format::Perfetto), _) => {
            Err(LogError::WrittenOnly { path })
        }
        (None, None) => Err(LogError::Unclear { path }),
        (before, Some(found)) if !found.is_trace() => {
            Err(LogError::Mixed { path, found, before: before.unwrap_or(Format::Kineto) })
        }
        _ => Ok(()),
    }
}

impl From<OpenError> for ConvertError {
    fn from(error: OpenError) -> Self {
        Self::Read(error.into())
    }
}
