//! Folders of Parquet tables: `<folder>/<session>/<table>.parquet`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use warpgauge_formats::event::{Event, Source};
use warpgauge_formats::loss::Losses;
use warpgauge_formats::tables::{self, Table};
use warpgauge_formats::telemetry::TelemetryEvent;

use super::output::{Unnamed, folder_of, hidden_name};

/// Most sessions of one data set: until the end each has its files open, two descriptors a table, and
/// a row group of each in memory, some 20 MiB where all are full.
pub const MOST_SESSIONS: usize = 16;

/// Finds the tables of a session in its folder.
#[derive(Debug)]
pub struct Folder<'p>(pub &'p Path);

impl tables::Tables for Folder<'_> {
    type File = File;

    fn open(&mut self, table: Table) -> io::Result<Option<File>> {
        match File::open(self.0.join(file_name(table))) {
            Ok(file) => Ok(Some(file)),
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

fn file_name(table: Table) -> String {
    format!("{}.parquet", table.name())
}

/// The folders of sessions that `path` means: itself where it holds tables, else those of its
/// folders that do, by name.
///
/// # Errors
/// What the system answers.
pub fn sessions(path: &Path) -> io::Result<Vec<PathBuf>> {
    if holds_tables(path)? {
        return Ok(vec![path.to_owned()]);
    }
    let mut sessions = vec![];
    for entry in path.read_dir()? {
        let folder = entry?.path();
        if folder.is_dir() && holds_tables(&folder)? {
            sessions.push(folder);
        }
    }
    sessions.sort();
    Ok(sessions)
}

/// The tables that a session's folder holds.
pub(super) fn tables_of(folder: &Path) -> Vec<Table> {
    let is_there = |table: &Table| folder.join(file_name(*table)).is_file();
    Table::ALL.into_iter().filter(is_there).collect()
}

/// Whether a data set holds telemetry.
pub(super) fn holds_telemetry(path: &Path) -> bool {
    // What cannot be looked at is said by who reads it.
    let folders = sessions(path).unwrap_or_default();
    folders.iter().any(|folder| tables_of(folder).contains(&Table::Telemetry))
}

fn holds_tables(folder: &Path) -> io::Result<bool> {
    for entry in folder.read_dir()? {
        if is_table(&entry?.path()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "parquet") && path.is_file()
}

/// Why a data set was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A table could not be written.
    #[error(transparent)]
    Tables(#[from] tables::Error),
    /// The folder could not be made.
    #[error("{path}: {error}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system answered.
        error: io::Error,
    },
    /// The log has too many sessions.
    #[error("more than {MOST_SESSIONS} sessions: convert them a few at a time")]
    Sessions,
    /// The folder holds other things.
    #[error("{path} holds more than Parquet tables and is not replaced")]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
}

/// A data set that is being written and has no name yet.
pub struct DataSet {
    path: PathBuf,
    sessions: BTreeMap<String, Session>,
}

struct Session {
    writer: tables::Writer<Files>,
    made: Rc<RefCell<Vec<(Table, Unnamed)>>>,
}

/// Makes the files of a session beside the data set's folder, unnamed.
struct Files {
    beside: PathBuf,
    made: Rc<RefCell<Vec<(Table, Unnamed)>>>,
}

impl tables::Files for Files {
    type File = File;

    fn create(&mut self, table: Table) -> io::Result<File> {
        let mut made = self.made.borrow_mut();
        let path = hidden_name(&self.beside, &format!("{}-{}", table.name(), made.len()))?;
        let unnamed = Unnamed::create(&path)?;
        let file = unnamed.writer()?;
        made.push((table, unnamed));
        Ok(file)
    }
}

impl DataSet {
    /// A data set that is to stand at `path`.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), sessions: BTreeMap::new() }
    }

    /// Takes one event.
    ///
    /// # Errors
    /// Where a table cannot be written.
    pub fn write(&mut self, event: &Event<'_>) -> Result<(), WriteError> {
        match self.session(folder_name(&event.source))? {
            Some(session) => Ok(session.writer.write(event)?),
            None => Ok(()),
        }
    }

    /// Takes one event of TelemetryEvent v2. All of them stand in one table, whoever wrote them.
    ///
    /// # Errors
    /// Where a table cannot be written.
    pub fn write_telemetry(
        &mut self,
        event: &TelemetryEvent<'_>,
        losses: &mut Losses,
    ) -> Result<(), WriteError> {
        match self.session(Table::Telemetry.name().to_owned())? {
            Some(session) => Ok(session.writer.write_telemetry(event, losses)?),
            None => Ok(()),
        }
    }

    /// The session of that folder.
    fn session(&mut self, name: String) -> Result<Option<&mut Session>, WriteError> {
        if !self.sessions.contains_key(&name) {
            if self.sessions.len() >= MOST_SESSIONS {
                return Err(WriteError::Sessions);
            }
            let made = Rc::default();
            let mut beside = self.path.clone().into_os_string();
            beside.push(format!(".{}", self.sessions.len()));
            let files = Files { beside: beside.into(), made: Rc::clone(&made) };
            self.sessions
                .insert(name.clone(), Session { writer: tables::Writer::new(files), made });
        }
        Ok(self.sessions.get_mut(&name))
    }

    /// Writes what waits and gives the data set its name, in one step. With `replace` it takes the
    /// place of another data set.
    ///
    /// # Errors
    /// Where that is refused; nothing is then left behind.
    pub fn finish(self, replace: bool) -> Result<Vec<PathBuf>, WriteError> {
        let path = self.path.clone();
        let named = |error| WriteError::Folder { path: path.clone(), error };
        let staging = hidden_name(&path, &format!("{}.new", std::process::id())).map_err(named)?;
        fs::create_dir(&staging).map_err(named)?;
        let placed = self.place(&staging, replace);
        if placed.is_err() {
            // What went wrong is said by the caller.
            let _ = fs::remove_dir_all(&staging);
        }
        placed
    }

    fn place(self, staging: &Path, replace: bool) -> Result<Vec<PathBuf>, WriteError> {
        let path = self.path;
        let named = |error| WriteError::Folder { path: path.clone(), error };
        let mut folders = vec![];
        for (name, Session { writer, made }) in self.sessions {
            writer.finish()?;
            let folder = staging.join(&name);
            fs::create_dir(&folder).map_err(named)?;
            for (table, unnamed) in made.take() {
                unnamed.name_as(folder.join(file_name(table))).map_err(named)?;
            }
            folders.push(path.join(name));
        }
        match fs::rename(staging, &path) {
            Err(_) if replace && path.is_dir() => {}
            outcome => return outcome.map(|()| folders).map_err(named),
        }
        if !is_replaceable(&path).map_err(named)? {
            return Err(WriteError::Foreign { path });
        }
        renameat2(AT_FDCWD, staging, AT_FDCWD, &path, RenameFlags::RENAME_EXCHANGE)
            .map_err(|errno| named(errno.into()))?;
        // The old data set stands under the hidden name now.
        fs::remove_dir_all(staging).map_err(named)?;
        File::open(folder_of(&path)).and_then(|folder| folder.sync_all()).map_err(named)?;
        Ok(folders)
    }
}

/// Whether a folder holds folders of tables and nothing else.
fn is_replaceable(path: &Path) -> io::Result<bool> {
    for session in path.read_dir()? {
        let session = session?;
        if !session.file_type()?.is_dir() {
            return Ok(false);
        }
        for table in session.path().read_dir()? {
            if !is_table(&table?.path()) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The name of a session's folder: its id, or its process. Letters that mean something to a file
/// system or a shell stand as `%` and two hexadecimal digits for each byte, so that none leads out
/// of the folder. Sessions whose ids are longer than a name may be and begin alike share a folder;
/// the rows tell them apart.
fn folder_name(source: &Source<'_>) -> String {
    let id = match (&source.session, source.pid) {
        (Some(session), _) if !session.is_empty() => session.as_ref(),
        (None, Some(pid)) => return format!("pid-{pid}"),
        _ => return "no-session".to_owned(),
    };
    let mut name = String::with_capacity(id.len());
    for (place, byte) in id.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric()
            || byte == b'-'
            || byte == b'_'
            || (byte == b'.' && place > 0);
        if is_plain {
            name.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    // Names of files have 255 bytes at most.
    name.truncate(200);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_session_leads_out_of_the_folder() {
        let name = |session: &'static str| {
            folder_name(&Source { session: Some(session.into()), ..Source::default() })
        };
        assert_eq!(name("550e8400-e29b"), "550e8400-e29b");
        assert_eq!(name("../a/\u{e9}"), "%2E.%2Fa%2F%C3%A9");
        assert_eq!(name(""), "no-session");
        assert_eq!(folder_name(&Source { pid: Some(7), ..Source::default() }), "pid-7");
    }
}
