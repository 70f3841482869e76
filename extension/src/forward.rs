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
pub mod journal;
pub mod line;
pub mod memory;
mod pace;
mod patience;
mod request;
pub mod settings;
mod work;

use std::path::Path;
use std::time::Instant;

use warpgauge_formats::lines::Line;

use self::dead_letters::DeadLetterError;
use self::journal::{Journal, JournalError, Settled};
use self::memory::{Memory, MemoryError};
use self::settings::Settings;
use self::work::Work;
use crate::follow::{CursorError, Flow, FollowError, Follower, Limits};
use crate::skips::Skips;

/// Whose cursors they are.
const CONSUMER: &str = "forward";

/// `reason` of a line that the backend will never take.
pub const REFUSED: &str = "refused";

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
    /// Logs that are not read, by reason; each is told of when it is first met.
    pub unread: Skips,
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
    let end = end.min(Instant::now() + settings.budget);
    let outcome = run(settings, hostname, state, end, &mut told);
    told.refused.log("set aside (lines of event logs)");
    told.unread.log("not forwarded (event logs)");
    (told, outcome)
}

fn run(
    settings: &Settings,
    hostname: &str,
    state: &Path,
    end: Instant,
    told: &mut Forwarded,
) -> Result<(), ForwardError> {
    let memory = Memory::load(state, &settings.backend.to_string());
    if let Some(seconds) = memory.seconds_to_wait() {
        let wish = format!("{}: asked to be left alone for {seconds} s more", settings.backend);
        told.waits_for = Some(wish);
        return Ok(());
    }
    let mut follower = Follower::new(state, CONSUMER, settings.logs.clone())?;
    let mut journal = Journal::open(state)?;
    told.unread = catch_up(&mut follower, &mut journal, false)?;
    let mut work = Work::new(settings, hostname, state, end, memory, journal, told);
    loop {
        follower.limits.time = end.saturating_duration_since(Instant::now());
        let mut outcome = Ok(());
        let summary = follower.read(&mut |file, line| {
            work.offer(file, &line).unwrap_or_else(|fault| {
                outcome = Err(fault);
                Flow::Stop
            })
        });
        let outcome = outcome.and_then(|()| work.flush());
        let goes_on = work.journal.is_full() && outcome.is_ok();
        let has_news = summary.refused != Skips::default();
        work.told.unread.merge(summary.refused);
        if summary.has_more && !goes_on {
            work.told.left_by.get_or_insert("forward.budget");
        }
        work.dead_letters.sync()?;
        if outcome.is_ok() && work.is_settled() {
            follower.commit()?;
            work.journal.clear()?;
        } else {
            // What it meets has been told already.
            catch_up(&mut follower, &mut work.journal, has_news)?;
        }
        outcome?;
        if !goes_on {
            work.doubt();
            return Ok(());
        }
    }
}

/// Moves the cursors behind the lines that were settled, and behind no other. Gives the logs that
/// are not read; they are remembered as told where there is anything to be written.
fn catch_up(
    follower: &mut Follower,
    journal: &mut Journal,
    has_news: bool,
) -> Result<Skips, ForwardError> {
    follower.roll_back();
    if journal.is_empty() && !has_news {
        return Ok(Skips::default());
    }
    let limits = follower.limits;
    follower.limits = Limits { bytes: u64::MAX, ..Limits::default() };
    let summary = follower.read(&mut |file, line| match is_blank(&line)
        || journal.forget(Settled::new(file, &line))
    {
        true => Flow::Next,
        false => Flow::WaitHere,
    });
    follower.limits = limits;
    follower.commit()?;
    journal.clear()?;
    Ok(summary.refused)
}

/// A line in which there is nothing to deliver.
fn is_blank(line: &Line<'_>) -> bool {
    !line.too_long && line.bytes.iter().all(u8::is_ascii_whitespace)
}
