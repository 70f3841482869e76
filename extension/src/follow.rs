//! Follows event logs from pass to pass, through every way of rotating them.
//!
//! ```text
//! rules ── discover ── assign ── read ── the consumer's lines
//!             files     |          |
//!                    <state>/cursors/<consumer>.json, replaced whole by `commit`
//! ```
//!
//! A cursor belongs to a content, not to a name: `assign` finds the content again after a rename, a
//! copy with truncation, a compression, whatever the numbers in the names do. `names` tells which
//! names belong together.
//!
//! Bounds of a pass: [`Limits`], 10,000 files, lines of 4 MiB, 200,000 entries of folders, one file
//! open at a time. The logs are anybody's: they are data, opened for reading through no link.

mod assign;
mod content;
mod cursors;
mod discover;
mod fingerprint;
mod names;
mod reading;
mod refusals;
mod rule;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use warpgauge_formats::lines::Line;

use self::assign::{Assigned, Part};
pub use self::cursors::CursorError;
use self::cursors::Cursors;
use self::discover::{Found, NotOpened, Search};
use self::reading::{Ended, Turn};
pub use self::rule::{Rule, RuleFault, Start};
use crate::skips::Skips;

/// Why files are not read ([`Summary::refused`]).
pub const REASONS: [&str; 10] = [
    "not_a_regular_file",
    "hard_linked",
    "unreadable",
    "name_not_utf8",
    "not_compressed",
    "cut_short",
    "folder_unreadable",
    "too_many_entries",
    "too_many_files",
    "gone_unread",
];

/// Bytes of one file before the next one has its turn.
const SLICE: u64 = 16 << 20;

/// Follows the logs that some rules mean, for one consumer.
///
/// One at a time for each consumer: whoever makes one holds a lock.
#[derive(Debug)]
pub struct Follower {
    /// Where the cursors lie, if anywhere.
    path: Option<PathBuf>,
    rules: Vec<Rule>,
    /// As the file has them.
    committed: Cursors,
    /// After what was read.
    current: Cursors,
    /// What one [`Follower::read`] may cost.
    pub limits: Limits,
}

/// What one reading may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files; of a compressed file, of what it unpacks to. A line that was begun is
    /// read to its end.
    pub bytes: u64,
    /// Time.
    pub time: Duration,
    /// How long the last line of a rotated file may lack its newline before it is taken without.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let (time, patience) = (Duration::from_secs(10), Duration::from_secs(600));
        Self { bytes: 256 << 20, time, patience }
    }
}

/// The file that a line stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileId {
    /// Which rule means it: its place among the rules.
    pub rule: usize,
    /// The content's number: the same through renames, copies and compressions, and never used
    /// again for this consumer.
    pub stream: u64,
    /// Where it is now.
    pub path: PathBuf,
    /// The path without what rotation put into it: the same for all files made of one.
    pub family: String,
    /// Bytes of it that stood there when following began at the end ([`Start::End`]), of a compressed
    /// file all; 0 where it began at the beginning.
    pub stood: u64,
}

impl FileId {
    /// Whether a line of this file stood there, with its newline, before following began.
    #[must_use]
    pub fn is_past(&self, line: &Line<'_>) -> bool {
        line.offset.saturating_add(line.bytes.len() as u64) < self.stood
    }
}

/// What the consumer says to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It has the line.
    Next,
    /// It does not have the line: this file and what follows it in its family wait, others go on.
    WaitHere,
    /// It does not have the line: everything waits.
    Stop,
}

/// What one reading did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that the rules mean.
    pub files: usize,
    /// Lines that were taken.
    pub lines: u64,
    /// Bytes that were taken.
    pub bytes: u64,
    /// Whether something is left to be read at once: the limits were met.
    pub has_more: bool,
    /// Files and folders that are not read, each counted when it is first met.
    pub refused: Skips,
}

/// Why a follower cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The name becomes a file's.
    #[error("`{0}` is no name for a consumer; use small letters, digits, `-` and `_`")]
    Consumer(String),
    /// See there.
    #[error(transparent)]
    Cursors(#[from] CursorError),
}

impl Follower {
    /// Takes up where the consumer's last [`Follower::commit`] was. A new consumer begins at the
    /// beginning of every file.
    ///
    /// # Errors
    /// [`FollowError`].
    pub fn new(state: &Path, consumer: &str, rules: Vec<Rule>) -> Result<Self, FollowError> {
        let is_fine =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        if consumer.is_empty() || !consumer.bytes().all(is_fine) {
            return Err(FollowError::Consumer(consumer.to_owned()));
        }
        let path = Self::cursor_file(state, consumer);
        let committed = Cursors::load(&path)?;
        let current = committed.clone();
        Ok(Self { path: Some(path), rules, committed, current, limits: Limits::default() })
    }

    /// A follower that has its cursors in memory only.
    #[must_use]
    pub fn in_memory(rules: Vec<Rule>) -> Self {
        let (committed, current) = Default::default();
        Self { path: None, rules, committed, current, limits: Limits::default() }
    }

    /// Where a consumer's cursors lie.
    #[must_use]
    pub fn cursor_file(state: &Path, consumer: &str) -> PathBuf {
        Self::cursor_folder(state).join(format!("{consumer}.json"))
    }

    /// Where the cursors of all consumers lie; [`Follower::commit`] makes it.
    #[must_use]
    pub fn cursor_folder(state: &Path) -> PathBuf {
        state.join("cursors")
    }

    /// Hands on the lines behind the cursors, the oldest file of each family first, and moves the
    /// cursors behind those that `take` has. The last line of a file waits for its newline; only
    /// where the file was rotated away and nobody will write it any more it comes without
    /// (`ended` is false). A line that is too long comes cut (`too_long`).
    ///
    /// Nothing is remembered beyond this follower before [`Follower::commit`].
    pub fn read(&mut self, take: &mut dyn FnMut(&FileId, Line<'_>) -> Flow) -> Summary {
        let deadline = Instant::now() + self.limits.time;
        let now_ns = unix_now_ns();
        let (Assigned { parts, is_late, .. }, has_more) = self.look(deadline, now_ns);
        let has_more = has_more || is_late;
        let mut summary = Summary { files: parts.len(), has_more, ..Summary::default() };
        self.read_parts(parts, deadline, now_ns, take, &mut summary);
        self.current.forget(now_ns);
        summary.refused = self.current.refused.turn();
        summary
    }

    /// Finds the files and their contents. A look that fell into a rotation is taken again, so that
    /// what is older is not read after what is newer; after a few looks, what has come to files of what
    /// is still being rotated waits for the next pass.
    fn look(&mut self, deadline: Instant, now_ns: u64) -> (Assigned, bool) {
        const MOST_LOOKS: usize = 4;
        let before = self.current.clone();
        for look in 1.. {
            let Search { found, is_partial, is_late, .. } = self.search(deadline);
            let seen = found.clone();
            let patience = self.limits.patience;
            let mut assigned =
                assign::assign(found, is_partial, &mut self.current, now_ns, patience, deadline);
            self.add_those_in_motion(&Places::of(&seen), &mut assigned, deadline);
            if assigned.blurred.is_empty() {
                self.begin(&assigned, is_partial);
                return (assigned, is_late);
            }
            if look == MOST_LOOKS {
                let Assigned { parts, blurred, .. } = &mut assigned;
                parts.retain(|part| !part.has_come || !blurred.contains(&part.found.family));
                return (assigned, true);
            }
            self.current = before.clone();
        }
        (Assigned::default(), true)
    }

    /// Notes what stood there at the first whole look for a pattern whose following begins at the end.
    fn begin(&mut self, assigned: &Assigned, is_partial: bool) {
        for Part { found, stream, head, .. } in &assigned.parts {
            let Some(rule) = self.rules.get(found.rule) else { continue };
            let is_first = !head.is_empty() && !self.current.begun.contains(rule.pattern());
            if is_first
                && rule.start == Start::End
                && let Some(cursor) = self.current.of.get_mut(stream)
            {
                cursor.stood = if found.is_packed { u64::MAX } else { found.state.size };
            }
        }
        if !is_partial && !assigned.is_late {
            self.current.begun = self.rules.iter().map(|rule| rule.pattern().to_owned()).collect();
        }
    }

    /// A family in which contents have come is blurred as well when its files are not by now what
    /// they were when they were found: what was in one of them may be in another, or in one that was
    /// not seen.
    fn add_those_in_motion(
        &mut self,
        seen: &Places<'_>,
        assigned: &mut Assigned,
        deadline: Instant,
    ) {
        let come = assigned.parts.iter().filter(|part| part.has_come);
        let families: HashSet<_> = come.map(|part| part.found.family.clone()).collect();
        if families.is_empty() {
            return;
        }
        let found = self.search(deadline).found;
        let now = Places::of(&found);
        assigned
            .blurred
            .extend(families.into_iter().filter(|family| !seen.are_still(&now, family)));
    }

    fn search(&mut self, deadline: Instant) -> Search<'_> {
        let mut search = Search::new(&mut self.current.refused, deadline);
        for (index, rule) in self.rules.iter().enumerate() {
            search.add(index, rule);
        }
        search
    }

    fn read_parts(
        &mut self,
        parts: Vec<Part>,
        deadline: Instant,
        now_ns: u64,
        take: &mut dyn FnMut(&FileId, Line<'_>) -> Flow,
        summary: &mut Summary,
    ) {
        let mut families = BTreeMap::<String, VecDeque<Part>>::new();
        for part in parts {
            families.entry(part.found.family.clone()).or_default().push_back(part);
        }
        let mut budget = Budget { left: self.limits.bytes, slice: 0, deadline };
        while !families.is_empty() {
            for members in families.values_mut() {
                budget.slice = SLICE;
                while budget.slice > 0 && !members.is_empty() {
                    match self.read_first(members, &mut budget, now_ns, take, summary) {
                        ControlFlow::Continue(()) => {}
                        ControlFlow::Break(()) => return,
                    }
                }
            }
            families.retain(|_, members| !members.is_empty());
        }
    }

    /// Reads the oldest file of a family; takes it out when nothing is left of it.
    fn read_first(
        &mut self,
        members: &mut VecDeque<Part>,
        budget: &mut Budget,
        now_ns: u64,
        take: &mut dyn FnMut(&FileId, Line<'_>) -> Flow,
        summary: &mut Summary,
    ) -> ControlFlow<()> {
        let is_last = members.len() == 1;
        let Some(Part { found, stream, head, .. }) = members.front() else {
            return ControlFlow::Continue(());
        };
        let Some(cursor) = self.current.of.get_mut(stream) else {
            members.pop_front();
            return ControlFlow::Continue(());
        };
        let is_settled = found.age(now_ns) >= self.limits.patience;
        // Nobody writes to a compressed file; and not for long to one that was rotated away.
        let is_final = found.is_packed || (!is_last && is_settled);
        let has_torn_line = !found.is_packed && found.state.size > cursor.offset;
        if cursor.is_drained(found.state) && !(is_final && has_torn_line) {
            members.pop_front();
            return ControlFlow::Continue(());
        }
        if budget.left == 0 || Instant::now() >= budget.deadline {
            summary.has_more = true;
            return ControlFlow::Break(());
        }
        let (path, family) = (found.path.clone(), found.family.clone());
        let stood = cursor.stood;
        let file = FileId { rule: found.rule, stream: *stream, path, family, stood };
        let (bytes, deadline) = (budget.left.min(budget.slice), budget.deadline);
        let turn = Turn { file: &file, found, head, budget: bytes, deadline, now_ns, is_final };
        let before = (cursor.offset, cursor.lines);
        let ended = reading::read(&turn, cursor, take);
        let bytes = cursor.offset - before.0;
        budget.left = budget.left.saturating_sub(bytes);
        budget.slice = budget.slice.saturating_sub(bytes);
        summary.bytes += bytes;
        summary.lines += cursor.lines - before.1;
        let shown = file.path.display().to_string();
        match ended {
            Ok(Ended::Budget) => {}
            Ok(Ended::Drained) => drop(members.pop_front()),
            Ok(Ended::Waits) | Err(NotOpened::Vanished) => members.clear(),
            Ok(Ended::Stopped) => return ControlFlow::Break(()),
            // What is newer waits for the rest, as long as somebody may still be compressing.
            Err(NotOpened::Unfinished) if !is_settled => members.clear(),
            Err(NotOpened::Unfinished) => {
                members.pop_front();
                self.current.refused.note("cut_short", shown);
            }
            Err(NotOpened::Refused(reason)) => {
                members.pop_front();
                self.current.refused.note(reason, shown);
            }
        }
        ControlFlow::Continue(())
    }

    /// The cursors after what was read, for whoever makes them true together with something else:
    /// the content of [`Follower::cursor_file`].
    ///
    /// # Errors
    /// None in practice: every part of it has a JSON form.
    pub fn pending(&self) -> std::io::Result<Vec<u8>> {
        self.current.to_json()
    }

    /// Makes what was read stay read. Call it when the lines are safe elsewhere.
    ///
    /// # Errors
    /// [`CursorError`]; the next follower then meets the lines again.
    pub fn commit(&mut self) -> Result<(), CursorError> {
        if let Some(path) = &self.path {
            self.current.store(path)?;
        }
        self.committed = self.current.clone();
        Ok(())
    }

    /// Goes back to the last [`Follower::commit`]: what was read since comes again.
    pub fn roll_back(&mut self) {
        self.current = self.committed.clone();
    }
}

/// Which file stood at which path, and how long it was; by family.
struct Places<'f>(HashMap<&'f str, BTreeMap<&'f Path, &'f Found>>);

impl<'f> Places<'f> {
    fn of(found: &'f [Found]) -> Self {
        let mut places = HashMap::<_, BTreeMap<_, _>>::new();
        for found in found {
            let family = places.entry(found.family.as_str()).or_default();
            family.insert(found.path.as_path(), found);
        }
        Self(places)
    }

    /// Whether the same files of a family stand at the same paths later, none has become shorter, and
    /// no copy has been begun.
    fn are_still(&self, later: &Places<'_>, family: &str) -> bool {
        let (Some(before), Some(later)) = (self.0.get(family), later.0.get(family)) else {
            return false;
        };
        let is_still = |(before, later): (&&Found, &&Found)| {
            let has_begun = before.turn != names::Turn::Current && before.state.size == 0;
            before.path == later.path
                && before.state.inode() == later.state.inode()
                && before.state.size <= later.state.size
                && (!has_begun || later.state.size == 0)
        };
        before.len() == later.len() && before.values().zip(later.values()).all(is_still)
    }
}

/// What is left of a reading's limits.
struct Budget {
    /// Bytes of all files.
    left: u64,
    /// Bytes of this family before the next one has its turn.
    slice: u64,
    deadline: Instant,
}

fn unix_now_ns() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}
