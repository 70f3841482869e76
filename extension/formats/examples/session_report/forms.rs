//! A session in all its forms, in memory.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use warpgauge_formats::event::Event;
use warpgauge_formats::finding::{Finding, Sink};
use warpgauge_formats::gpu_flight::{Channel, Channels, Columnar, Details, Reader};
use warpgauge_formats::join::SampleScopes;
use warpgauge_formats::lines::Lines;
use warpgauge_formats::tables::{self, Table};

use crate::truth::Truth;

/// The three channels of a session.
#[derive(Debug, Default)]
pub(crate) struct Logs(pub(crate) [Vec<u8>; 3]);

impl Channels for Logs {
    fn write(&mut self, channel: Channel, lines: &[u8]) {
        self.0[channel as usize].extend_from_slice(lines);
    }
}

/// Writes batches of all that it is handed.
pub(crate) struct ToBatches {
    writer: Columnar,
    logs: Logs,
}

impl ToBatches {
    /// With the details of all kernels or of the first of each name.
    pub(crate) fn new(details: Details) -> Self {
        Self { writer: Columnar::new(details), logs: Logs::default() }
    }

    /// The channels, and what could not be written.
    pub(crate) fn finish(mut self) -> (Logs, BTreeMap<&'static str, u64>) {
        self.writer.flush(&mut self.logs);
        (self.logs, self.writer.losses().iter().collect())
    }
}

impl Sink for ToBatches {
    fn event(&mut self, _: u64, event: &Event<'_>) {
        self.writer.write(event, &mut self.logs);
    }

    fn finding(&mut self, finding: Finding) {
        panic!("{finding}");
    }

    fn unknown(&mut self, line: u64, name: &str) {
        panic!("line {line}: unknown {name}");
    }
}

/// Parquet files in memory.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<HashMap<Table, Vec<u8>>>>);

/// One of them.
pub(crate) struct InMemory(Table, Memory);

impl Write for InMemory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.1).0.lock().expect("one thread").entry(self.0).or_default().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl tables::Files for Memory {
    type File = InMemory;

    fn create(&mut self, table: Table) -> io::Result<InMemory> {
        Ok(InMemory(table, self.clone()))
    }
}

impl tables::Tables for Memory {
    type File = Bytes;

    fn open(&mut self, table: Table) -> io::Result<Option<Bytes>> {
        Ok(self.0.lock().expect("one thread").get(&table).cloned().map(Bytes::from))
    }
}

impl Memory {
    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> usize {
        self.0.lock().expect("one thread").values().map(Vec::len).sum()
    }

    /// Puts the files into a folder.
    pub(crate) fn save(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        for (table, bytes) in self.0.lock().expect("one thread").iter() {
            File::create(folder.join(format!("{}.parquet", table.name())))?.write_all(bytes)?;
        }
        Ok(())
    }
}

/// Writes tables of all that it is handed.
pub(crate) struct ToTables(pub(crate) tables::Writer<Memory>);

impl Sink for ToTables {
    fn event(&mut self, _: u64, event: &Event<'_>) {
        self.0.write(event).expect("memory");
    }

    fn finding(&mut self, finding: Finding) {
        panic!("{finding}");
    }

    fn unknown(&mut self, line: u64, name: &str) {
        panic!("line {line}: unknown {name}");
    }
}

/// Reads the channels of a session, one after the other.
pub(crate) fn read(logs: &Logs, sink: &mut dyn Sink) {
    let mut reader = Reader::new();
    for log in &logs.0 {
        let mut lines = Lines::new(log.as_slice());
        while let Some(line) = lines.next().expect("memory") {
            reader.line(line.number, line.bytes, sink);
        }
    }
    reader.end(sink);
}

/// The channels in a folder.
pub(crate) fn load(folder: &Path) -> Logs {
    Logs(Channel::ALL.map(|channel| {
        let file = folder.join(format!("train.{}.log", channel.name()));
        std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }))
}

/// What the wide form becomes as batches: its samples learn their scopes from their kernels.
pub(crate) fn batches(fat: &Logs, details: Details) -> (Logs, BTreeMap<&'static str, u64>) {
    let (mut to, mut scopes) = (ToBatches::new(details), SampleScopes::default());
    read(fat, &mut scopes.before(&mut to));
    to.finish()
}

/// What the wide form becomes as tables.
pub(crate) fn parquet(fat: &Logs) -> Memory {
    let (memory, mut scopes) = (Memory::default(), SampleScopes::default());
    let mut to = ToTables(tables::Writer::new(memory.clone()));
    read(fat, &mut scopes.before(&mut to));
    to.0.finish().expect("memory");
    memory
}

/// The hashes of what tables tell. Batches number the scopes, which the wide form does not.
pub(crate) fn hashes_of_tables(tables: &Memory) -> BTreeMap<String, String> {
    let mut to = ToBatches::new(Details::First);
    tables::read(&mut tables.clone(), &mut to).expect("tables");
    hashes(&to.finish().0)
}

/// The hashes of what a log tells.
pub(crate) fn hashes(logs: &Logs) -> BTreeMap<String, String> {
    let mut truth = Truth::default();
    read(logs, &mut truth);
    assert_eq!(truth.findings, [], "a right log is read without findings");
    truth.hashes()
}
