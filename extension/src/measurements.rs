//! Measurement files: claim, read, quarantine.
//!
//! A claim moves nothing. The files stay where they are while they are read; their names go into a
//! manifest that is committed together with what they said, and only then are they removed. See
//! `docs/decisions/0002-claim-by-manifest.md`.

pub mod folder;
pub mod manifest;
pub mod quarantine;

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use warpgauge_wire::file_name::NameFault;
use warpgauge_wire::{LineReader, MeasurementFileName};

use self::folder::{Folder, Identity, Names, Opened, Refusal, shown};
use self::manifest::{Counted, StillThere};
use crate::aggregate::{FileTally, Shape, Tally};
use crate::listing::{Owner, Owners};
use crate::skips::Skips;

/// How many entries of the folder one pass looks at; the rest waits for the next.
pub const MAX_ENTRIES_PER_PASS: usize = 250_000;

/// How long one pass reads; the rest waits for the next.
pub const READING_BUDGET: Duration = Duration::from_secs(20);

/// How long a file of the older module, which appends in place, must have been quiet.
const QUIET_BEFORE_READING: Duration = Duration::from_secs(2);

/// How old an unfinished file must be before its writer is taken for dead.
const ABANDONED_AFTER: Duration = Duration::from_secs(3_600);

/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Entries that a worker takes at a time.
const BATCH: usize = 64;

/// Two threads halve what a hundred thousand files take; more would take the cores of the
/// programs that are being measured.
const MAX_WORKERS: usize = 2;

/// `reason` of lines whose id has no meaning here.
pub const UNKNOWN_ID: &str = "unknown_id";

/// What the folder said.
#[derive(Debug, Default)]
pub struct Claim {
    /// By place in the listing.
    pub tallies: HashMap<usize, Tally>,
    /// Measurements (lines) that were read and belong to somebody.
    pub read: u64,
    /// Measurements of pids that nobody listed.
    pub unattributed: u64,
    /// Lines and entries that were refused.
    pub refused: Skips,
    /// The files that were counted; to be removed once that is committed.
    pub counted: Vec<Counted>,
    /// When the first of them was written, nanoseconds since the epoch.
    pub oldest_ns: Option<u64>,
    /// Entries that were left for the next pass: limits met, or still being written.
    pub left: Skips,
    /// Entries to be quarantined once the refusals are committed.
    pub refused_names: Vec<Box<[u8]>>,
}

/// Why the folder as a whole could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}; the measurements folder must exist and be readable")]
pub struct FolderError {
    path: PathBuf,
    source: io::Error,
}

/// What a claim is to keep and to leave out.
#[derive(Debug)]
pub struct Request<'a> {
    /// Whose the files are.
    pub owners: &'a Owners<'a>,
    /// Files that an earlier pass counted and could not remove.
    pub still_there: &'a StillThere,
    /// Which buckets to keep.
    pub shape: Shape,
    /// Wall clock, nanoseconds since the epoch.
    pub now_ns: u64,
    /// How much of the folder is looked at.
    pub limits: Limits,
}

/// How much of a folder one pass looks at; the rest waits for the next.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Entries.
    pub entries: usize,
    /// Time.
    pub budget: Duration,
}

impl Limits {
    /// Of the folder that everybody shares.
    pub const OF_THE_TOP_FOLDER: Self =
        Self { entries: MAX_ENTRIES_PER_PASS, budget: READING_BUDGET };
}

/// How many threads work on a folder.
#[must_use]
pub fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_WORKERS))
}

/// Opens the measurements folder.
///
/// # Errors
/// [`FolderError`].
pub fn open(path: &Path) -> Result<Folder, FolderError> {
    Folder::open(path).map_err(|source| FolderError { path: path.to_owned(), source })
}

/// Reads everything that stands in the folder. Changes nothing in it.
///
/// # Errors
/// [`FolderError`] when the folder cannot be listed; a single entry never fails the claim.
pub fn claim(folder: &Folder, request: &Request<'_>) -> Result<Claim, FolderError> {
    let Limits { entries: max_entries, budget } = request.limits;
    let deadline = Instant::now() + budget;
    let entries = folder
        .list(max_entries, deadline)
        .map_err(|source| FolderError { path: folder.path().to_owned(), source })?;
    let names = &entries.visible;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut reader = FileReader::new(folder, request);
        loop {
            let start = next.fetch_add(BATCH, Ordering::Relaxed);
            if start >= names.len() {
                break;
            }
            let end = names.len().min(start + BATCH);
            for index in start..end {
                // Asked before each file: a few of the largest are a second's work.
                if Instant::now() >= deadline {
                    let left = (end - index) as u64;
                    reader.claim.left.note_many("reading_budget_spent", left, || {
                        folder.path().display().to_string()
                    });
                    break;
                }
                reader.read_entry(names, index);
            }
        }
        reader.claim
    };
    let workers = if names.len() <= BATCH { 1 } else { workers() };
    let mut claim = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut claim = work();
        for other in others {
            match other.join() {
                Ok(part) => claim.merge(part),
                // Its files were not counted, so they stand and are read by the next pass.
                Err(_) => claim.left.note("worker_died", || folder.path().display().to_string()),
            }
        }
        claim
    });
    note_abandoned(folder, &entries.unfinished, request.now_ns, &mut claim);
    if quarantine::is_taken(folder) {
        claim.refuse(quarantine::NAME.as_bytes(), Refusal::QuarantineTaken);
    }
    if entries.more {
        claim.left.note("too_many_entries", || {
            format!("{} holds more than {max_entries}", folder.path().display())
        });
    }
    Ok(claim)
}

impl Claim {
    fn refuse(&mut self, name: &[u8], refusal: Refusal) {
        self.refused.note(refusal.reason(), || shown(name));
        self.refused_names.push(name.into());
    }

    /// Takes in what another worker read, or another folder.
    pub fn merge(&mut self, other: Self) {
        for (process, tally) in other.tallies {
            self.tallies.entry(process).or_default().merge(&tally);
        }
        self.read += other.read;
        self.unattributed += other.unattributed;
        self.refused.merge(other.refused);
        self.counted.extend(other.counted);
        self.oldest_ns = self.oldest_ns.into_iter().chain(other.oldest_ns).min();
        self.left.merge(other.left);
        self.refused_names.extend(other.refused_names);
    }
}

/// One worker's state: buffers that live as long as it does.
struct FileReader<'a> {
    folder: &'a Folder,
    request: &'a Request<'a>,
    claim: Claim,
    tally: FileTally,
    lines: LineReader,
    chunk: Vec<u8>,
}

impl<'a> FileReader<'a> {
    fn new(folder: &'a Folder, request: &'a Request<'a>) -> Self {
        Self {
            folder,
            request,
            claim: Claim::default(),
            tally: FileTally::new(request.shape),
            lines: LineReader::new(),
            chunk: vec![0; CHUNK_BYTES],
        }
    }

    fn read_entry(&mut self, names: &Names, index: usize) {
        let Some((name, kind)) = names.get(index) else { return };
        let parsed = match MeasurementFileName::parse(name) {
            Ok(parsed) => parsed,
            Err(NameFault::Hidden) => return,
            Err(NameFault::DoesNotFit) => return self.claim.refuse(name, Refusal::NameDoesNotFit),
        };
        let (file, identity) = match self.folder.open_entry(name, kind) {
            Opened::File(file, identity) => (file, identity),
            Opened::Vanished => return,
            Opened::Refused(refusal) => return self.claim.refuse(name, refusal),
        };
        if self.request.still_there.contains(name, &identity) {
            return;
        }
        if parsed.is_appended_in_place() && identity.age(self.request.now_ns) < QUIET_BEFORE_READING
        {
            return self.claim.left.note("still_written", || shown(name));
        }
        let owner = self.request.owners.find(parsed.pid, identity.modified_ns);
        match owner {
            Owner::One(_, process) if !process.uids.contains(&identity.owner) => {
                return self.claim.refuse(name, Refusal::WrongOwner);
            }
            Owner::Ambiguous => return self.claim.refuse(name, Refusal::AmbiguousPid),
            Owner::One(..) | Owner::Nobody => {}
        }
        let mut faults = Skips::default();
        match self.read_file(file, &identity, name, &mut faults) {
            Ok(true) => {}
            Ok(false) => return self.claim.left.note("changed_while_read", || shown(name)),
            Err(_) => return self.claim.refuse(name, Refusal::Unreadable),
        }
        self.claim.refused.merge(faults);
        self.claim.refused.note_many(UNKNOWN_ID, self.tally.unknown(), || shown(name));
        let Owner::One(process, _) = owner else {
            self.claim.unattributed += self.tally.lines();
            return self.claim.refused_names.push(name.into());
        };
        self.claim.tallies.entry(process).or_default().merge_file(&self.tally);
        self.claim.read += self.tally.lines();
        self.claim.oldest_ns = self.claim.oldest_ns.into_iter().chain([identity.modified_ns]).min();
        self.claim.counted.push(Counted {
            name: name.into(),
            inode: identity.inode,
            size: identity.size,
            modified_ns: identity.modified_ns,
        });
    }

    /// Reads a file into the tally. `false` when it changed meanwhile, so that what was read is
    /// neither its old content nor its new.
    fn read_file(
        &mut self,
        mut file: std::fs::File,
        identity: &Identity,
        name: &[u8],
        faults: &mut Skips,
    ) -> io::Result<bool> {
        let Self { tally, lines, chunk, .. } = self;
        tally.clear();
        lines.reset();
        let mut take = |number: u64, line: Result<_, warpgauge_wire::LineFault>| match line {
            Ok(measurement) => tally.add(measurement),
            Err(fault) => {
                faults.note(fault.reason(), || format!("{}:{number}: {fault}", shown(name)));
            }
        };
        let mut left = identity.size;
        // One byte more than it had: a file that grows is noticed without a read of its own.
        while left > 0 {
            let length = match file.read(chunk) {
                Ok(length) => length,
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => continue,
                Err(fault) => return Err(fault),
            };
            if length == 0 {
                return Ok(false);
            }
            left = match left.checked_sub(length as u64) {
                Some(left) => left,
                None => return Ok(false),
            };
            lines.push(chunk.get(..length).unwrap_or_default(), &mut take);
        }
        lines.finish(&mut take);
        Ok(Identity::now(&file)? == *identity)
    }
}

/// Refuses the files that their writers will not finish any more.
fn note_abandoned(folder: &Folder, unfinished: &Names, now_ns: u64, claim: &mut Claim) {
    for (name, _) in unfinished.iter() {
        let identity = folder.stat(name);
        if identity.is_ok_and(|(identity, _)| identity.age(now_ns) >= ABANDONED_AFTER) {
            claim.refuse(name, Refusal::Abandoned);
        }
    }
}
