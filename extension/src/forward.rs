//! Posts the lines of event logs to a backend, each at least once and in their order.
//!
//! ```text
//! source ── batch ── request ── pace ── backend ── answer ──┬── accepted: the cursor moves
//!   ▲                                                       ├── refused: dead letter, the cursor moves
//!   └──────────────── nothing moves ────────────────────────┴── not ready: the next pass goes on here
//! ```
//!
//! The cursor moves after each request that was settled and never before, so that a pass that is
//! killed repeats at most the one request whose acknowledgement it had not written down.
//!
//! **A wrong URL must not cost a log.** As long as a backend has never taken a line, a refusal may
//! be about the way as well as about the line; so may be a 403 at any time. Such lines are held,
//! until another one is taken: then they become dead letters. Where none is, nothing has moved, and
//! a person is told.

mod answer;
mod backend;
mod batch;
pub mod dead_letters;
pub mod line;
mod memory;
mod pace;
mod patience;
mod request;
pub mod settings;
pub mod source;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use self::answer::Verdict;
use self::backend::Backend;
use self::batch::{Batch, Item};
use self::dead_letters::{DeadLetter, DeadLetterError, DeadLetters};
use self::memory::{Memory, MemoryError};
use self::pace::Pace;
use self::patience::Patience;
use self::request::Request;
use self::settings::{Settings, Speaker};
use self::source::{Source, SourceError};
use crate::skips::Skips;

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
    /// Logs or cursors.
    #[error("event logs: {0}")]
    Source(SourceError),
    /// The dead letters.
    #[error(transparent)]
    DeadLetters(#[from] DeadLetterError),
    /// What is remembered of the backend.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A request could not be written down.
    #[error("a request cannot be made: {0}")]
    Request(Box<dyn std::error::Error + Send + Sync>),
}

/// Whether there is more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The request is settled, or held.
    GoOn,
    /// Nothing goes any more in this pass.
    Stop,
}

/// Forwards what `source` has, until `end` at the latest. What was done before an error is told
/// beside it.
pub fn forward(
    source: &mut dyn Source,
    settings: &Settings,
    hostname: &str,
    state: &Path,
    end: Instant,
) -> (Forwarded, Result<(), ForwardError>) {
    let mut forwarder = Forwarder {
        settings,
        state,
        end: end.min(Instant::now() + settings.budget),
        backend: Backend::new(settings),
        speaker: Speaker::new(hostname, &settings.backend),
        pace: Pace::new(settings.max_rate, settings.max_bytes),
        memory: Memory::load(state, &settings.backend.to_string()),
        dead_letters: DeadLetters::new(state, settings.max_dead_letter_bytes),
        held: Vec::new(),
        told: Forwarded::default(),
    };
    let outcome = forwarder.run(source);
    (forwarder.told, outcome)
}

struct Forwarder<'a> {
    settings: &'a Settings,
    state: &'a Path,
    end: Instant,
    backend: Backend,
    speaker: Speaker,
    pace: Pace,
    memory: Memory,
    dead_letters: DeadLetters,
    /// Refused lines of which it is in doubt whether the way is to blame.
    held: Vec<DeadLetter>,
    told: Forwarded,
}

impl Forwarder<'_> {
    fn run(&mut self, source: &mut dyn Source) -> Result<(), ForwardError> {
        if let Some(wait_ns) = self.memory.wait_ns(unix_now_ns()) {
            let seconds = wait_ns.div_ceil(1_000_000_000);
            let reason =
                format!("{}: asked to be left alone for {seconds} s more", self.settings.backend);
            self.told.waits_for = Some(reason);
            return Ok(());
        }
        loop {
            let mut batch = Batch::new(self.settings.batch_bytes);
            source.read(&mut |line| batch.offer(line)).map_err(ForwardError::Source)?;
            let is_over = batch.is_empty();
            if self.settle(batch)? == Step::Stop {
                break;
            }
            if self.held.is_empty() {
                self.dead_letters.sync()?;
                source.commit().map_err(ForwardError::Source)?;
            }
            if is_over {
                break;
            }
        }
        self.doubt();
        Ok(())
    }

    fn settle(&mut self, batch: Batch) -> Result<Step, ForwardError> {
        if let Some((item, fault)) = batch.unpostable {
            let letter = item.into_letter(fault.reason(), None, fault.to_string(), unix_now_ns());
            // About the line, whatever the way; yet it must not pass what is held.
            return self.set_aside(letter, false);
        }
        self.deliver(&batch.items)
    }

    /// Sends lines as one request; one that is refused is sent in halves, down to the line that is
    /// to blame.
    fn deliver(&mut self, items: &[Item]) -> Result<Step, ForwardError> {
        let [first, rest @ ..] = items else { return Ok(Step::GoOn) };
        match self.exchange(items)? {
            Some(Verdict::Accepted) => {
                self.told.lines += items.len() as u64;
                self.trust()?;
                Ok(Step::GoOn)
            }
            Some(Verdict::Refused { status, words }) if rest.is_empty() => {
                let is_doubtful = !self.memory.has_accepted || status == 403;
                let letter = first.clone().into_letter(REFUSED, Some(status), words, unix_now_ns());
                self.set_aside(letter, is_doubtful)
            }
            Some(Verdict::Refused { .. }) => {
                let (former, latter) = items.split_at(items.len() / 2);
                match self.deliver(former)? {
                    Step::GoOn => self.deliver(latter),
                    Step::Stop => Ok(Step::Stop),
                }
            }
            _ => Ok(Step::Stop),
        }
    }

    /// Sends a request until it is accepted or refused; anything else is told, and `None`.
    fn exchange(&mut self, items: &[Item]) -> Result<Option<Verdict>, ForwardError> {
        let packed = self.pack(items)?;
        let mut patience = Patience::default();
        loop {
            let now = Instant::now();
            let Some(begin) = self.pace.may_go_at(packed.size(), now) else {
                self.told.left_by = Some("forward.max_size");
                return Ok(None);
            };
            if begin + SHORTEST_EXCHANGE > self.end {
                self.told.left_by =
                    Some(if begin > now { "forward.max_rate" } else { "forward.budget" });
                return Ok(None);
            }
            thread::sleep(begin - now);
            self.pace.spend(packed.size(), begin);
            let (reason, after) = match self.backend.post(&packed, self.end) {
                Verdict::Accepted => {
                    self.told.bytes += packed.size() as u64;
                    return Ok(Some(Verdict::Accepted));
                }
                refused @ Verdict::Refused { .. } => return Ok(Some(refused)),
                Verdict::Misconfigured { reason } => {
                    self.told.misconfigured = Some(reason);
                    return Ok(None);
                }
                Verdict::Retry { reason, after } => (reason, after),
            };
            let pause = patience.pause(after);
            let now = Instant::now();
            match pause.and_then(|pause| now.checked_add(pause).map(|until| (pause, until))) {
                Some((pause, until)) if until + SHORTEST_EXCHANGE <= self.end => {
                    thread::sleep(pause);
                    self.told.retries += 1;
                }
                _ => {
                    self.told.waits_for = Some(reason);
                    return self.leave_alone(after).map(|()| None);
                }
            }
        }
    }

    fn pack(&self, items: &[Item]) -> Result<backend::Packed, ForwardError> {
        // They were read before they were put together.
        let events: Vec<_> = items.iter().filter_map(|item| line::read(&item.bytes).ok()).collect();
        let now_ms = unix_now_ns() / 1_000_000;
        let is_batch = self.settings.batch_bytes.is_some();
        let request = Request::new(&events, self.settings.form, is_batch, &self.speaker, now_ms)
            .map_err(|fault| ForwardError::Request(fault.into()))?;
        self.backend.pack(&request).map_err(|fault| ForwardError::Request(fault.into()))
    }

    /// The backend has taken a line: the way is right, and what is held was about the lines.
    fn trust(&mut self) -> Result<(), ForwardError> {
        for letter in std::mem::take(&mut self.held) {
            self.bury(&letter)?;
        }
        if !self.memory.has_accepted {
            self.memory.has_accepted = true;
            self.memory.store(self.state)?;
        }
        Ok(())
    }

    /// Sets a line aside, or holds it while it is in doubt whether the way is to blame.
    fn set_aside(&mut self, letter: DeadLetter, is_doubtful: bool) -> Result<Step, ForwardError> {
        if !is_doubtful && self.held.is_empty() {
            self.bury(&letter)?;
            return Ok(Step::GoOn);
        }
        self.held.push(letter);
        Ok(if self.held.len() < MOST_HELD { Step::GoOn } else { Step::Stop })
    }

    fn bury(&mut self, letter: &DeadLetter) -> Result<(), ForwardError> {
        self.dead_letters.add(letter)?;
        let DeadLetter { file, offset, message, .. } = letter;
        self.told.refused.note(letter.reason, || format!("{file}, at byte {offset}: {message}"));
        Ok(())
    }

    /// Lines are held and none was taken: a person should look at the way first.
    fn doubt(&mut self) {
        let is_told = self.told.waits_for.is_some() || self.told.misconfigured.is_some();
        let refused = self.held.iter().find(|letter| letter.reason == REFUSED);
        if let (false, Some(DeadLetter { file, offset, message, .. })) = (is_told, refused) {
            self.told.misconfigured = Some(format!(
                "{}: every line since byte {offset} of {file} was refused: {message}; check \
                 backend_url, form and token of [forward]; no line is set aside until another one \
                 is taken",
                self.settings.backend
            ));
        }
    }

    /// Remembers how long the backend asked to be left alone.
    fn leave_alone(&mut self, asked: Option<Duration>) -> Result<(), ForwardError> {
        let Some(asked) = asked else { return Ok(()) };
        let asked_ns = u64::try_from(asked.as_nanos()).unwrap_or(u64::MAX);
        let now_ns = unix_now_ns();
        self.memory.leave_alone_until(now_ns.saturating_add(asked_ns), now_ns);
        Ok(self.memory.store(self.state)?)
    }
}

fn unix_now_ns() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}
