//! Posts the lines of event logs to a backend, each at least once and in the order of its log.
//!
//! ```text
//! follow ── batch ── request ── pace ── backend ── answer ──┬── accepted: settled
//!   ▲                                                       ├── refused: dead letter, settled
//!   └──────────────── nothing moves ────────────────────────┴── not ready: the next pass goes on here
//! ```
//!
//! A line that is settled has its record in the journal before the next one goes, and the cursors
//! follow. So a pass that is killed repeats at most the one request whose acknowledgement it had
//! not written down.
//!
//! **A wrong URL must not cost a log.** As long as a backend has never taken a line, a refusal may
//! be about the way as well as about the line; so may be a 403 at any time. Such lines are held
//! until another one is taken: then they become dead letters. Where none is, nothing has moved, and
//! a person is told.

mod answer;
mod backend;
mod batch;
pub mod dead_letters;
mod journal;
pub mod line;
mod memory;
mod pace;
mod patience;
mod request;
pub mod settings;

use std::collections::HashMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use warpgauge_formats::lines::Line;

use self::answer::Verdict;
use self::backend::Backend;
use self::batch::{Batch, Item};
use self::dead_letters::{DeadLetterError, DeadLetters};
use self::journal::{Journal, JournalError, Settled};
use self::line::Unpostable;
use self::memory::{Memory, MemoryError};
use self::pace::Pace;
use self::patience::Patience;
use self::request::Request;
use self::settings::{Settings, Speaker};
use crate::follow::{CursorError, FileId, Flow, FollowError, Follower};
use crate::skips::Skips;

/// Whose cursors they are.
pub const CONSUMER: &str = "forward";

/// `reason` of a line that the backend will never take.
pub const REFUSED: &str = "refused";

/// Most lines that are held while it is in doubt whether the way is right.
const MOST_HELD: usize = 20;

/// No request begins with less time than this before the end: it would only be cut off.
const SHORTEST_EXCHANGE: Duration = Duration::from_millis(100);

/// What became of the lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// Lines that the backend has taken.
    pub lines: u64,
    /// Bytes of the request bodies that brought them there.
    pub bytes: u64,
    /// Lines that were set aside, by reason.
    pub refused: Skips,
    /// Requests that were sent once more.
    pub retries: u64,
    /// Logs that are not read, by reason.
    pub unread_files: Skips,
    /// Why the rest waits: the backend is away or not ready.
    pub waits_for: Option<String>,
    /// Which limit of `[forward]` left the rest to the next pass.
    pub left_by: Option<&'static str>,
    /// What a person has to mend before anything can go.
    pub misconfigured: Option<String>,
}

/// Why forwarding broke off. Nothing is lost.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The logs cannot be followed.
    #[error(transparent)]
    Follow(#[from] FollowError),
    /// The cursors cannot be written.
    #[error(transparent)]
    Cursors(#[from] CursorError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The dead letters.
    #[error(transparent)]
    DeadLetters(#[from] DeadLetterError),
    /// What is remembered of the backend.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A request could not be put into words.
    #[error("a request cannot be made: {0}")]
    Request(Box<dyn std::error::Error + Send + Sync>),
}

/// Forwards what the logs of `settings` have, until `end` at the latest. What was done before an
/// error is told beside it.
///
/// One at a time for each state folder: the caller holds the lock.
pub fn forward(
    settings: &Settings,
    hostname: &str,
    state: &Path,
    end: Instant,
) -> (Forwarded, Result<(), ForwardError>) {
    let mut told = Forwarded::default();
    let outcome = Forwarder::new(settings, hostname, state, end, &mut told).and_then(Forwarder::run);
    (told, outcome)
}

struct Forwarder<'a> {
    settings: &'a Settings,
    state: &'a Path,
    end: Instant,
    follower: Follower,
    work: Work<'a>,
}

/// What happens to the lines that the follower hands on.
struct Work<'a> {
    settings: &'a Settings,
    state: &'a Path,
    end: Instant,
    backend: Backend,
    speaker: Speaker,
    pace: Pace,
    memory: Memory,
    journal: Journal,
    dead_letters: DeadLetters,
    batch: Batch,
    /// Refused lines of which it is in doubt whether the way is to blame.
    held: Vec<Refusal>,
    /// Nothing goes any more in this pass.
    is_stopped: bool,
    told: &'a mut Forwarded,
}

/// A line that cannot be delivered.
struct Refusal {
    item: Item,
    reason: &'static str,
    status: Option<u16>,
    message: String,
}
