//! From a line to its end: delivered, set aside, or left where it is.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use warpgauge_formats::lines::Line;

use super::answer::Verdict;
use super::backend::{Backend, Packed};
use super::batch::{Batch, Item};
use super::dead_letters::DeadLetters;
use super::journal::{Journal, Settled};
use super::line::{self, Unpostable};
use super::memory::{Memory, unix_now_ns};
use super::pace::Pace;
use super::patience::Patience;
use super::request::Request;
use super::settings::{Settings, Speaker};
use super::{ForwardError, Forwarded, REFUSED, is_blank};
use crate::follow::{FileId, Flow};

/// Most lines that are held while it is in doubt whether the way is right.
const MOST_HELD: usize = 20;

/// No request begins with less time than this before the end: it would only be cut off.
const SHORTEST_EXCHANGE: Duration = Duration::from_millis(100);

/// The status with which a gatekeeper turns away a token or a text, nobody knows which.
const FORBIDDEN: u16 = 403;

/// What is done with the lines that the follower hands on.
pub(super) struct Work<'a> {
    settings: &'a Settings,
    state: &'a Path,
    end: Instant,
    backend: Backend,
    speaker: Speaker,
    pace: Pace,
    memory: Memory,
    pub(super) journal: Journal,
    pub(super) dead_letters: DeadLetters,
    batch: Batch,
    /// Refused lines of which it is in doubt whether the way is to blame.
    held: Vec<Refusal>,
    /// Nothing goes any more in this pass.
    is_stopped: bool,
    pub(super) told: &'a mut Forwarded,
}

/// A line that cannot be delivered.
struct Refusal {
    item: Item,
    reason: &'static str,
    status: Option<u16>,
    message: String,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        hostname: &str,
        state: &'a Path,
        end: Instant,
        memory: Memory,
        journal: Journal,
        told: &'a mut Forwarded,
    ) -> Self {
        Self {
            settings,
            state,
            end,
            backend: Backend::new(settings),
            speaker: Speaker::new(hostname, &settings.backend),
            pace: Pace::new(settings.max_rate, settings.max_bytes),
            memory,
            journal,
            dead_letters: DeadLetters::new(state, settings.max_dead_letter_bytes),
            batch: Batch::new(settings.batch_bytes),
            held: Vec::new(),
            is_stopped: false,
            told,
        }
    }

    /// Whether nothing is left of the lines that were taken.
    pub(super) fn is_settled(&self) -> bool {
        !self.is_stopped && self.batch.is_empty() && self.held.is_empty()
    }

    /// Takes the next line, and sends what is due.
    pub(super) fn offer(&mut self, file: &FileId, line: &Line<'_>) -> Result<Flow, ForwardError> {
        if self.is_stopped || self.journal.is_full() {
            return Ok(Flow::Stop);
        }
        if is_blank(line) {
            return Ok(Flow::Next);
        }
        let read = if line.too_long { Err(Unpostable::TooLong) } else { line::read(line.bytes) };
        let item = Item::new(file, line);
        match read {
            Ok(event) => {
                if !self.batch.has_room_for(&event) {
                    self.flush()?;
                }
                self.batch.add(&event, item);
                if self.batch.is_full() {
                    self.flush()?;
                }
            }
            Err(fault) => {
                self.flush()?;
                let (reason, message) = (fault.reason(), fault.to_string());
                // About the line, whatever the way; yet it must not overtake what is held.
                self.set_aside(Refusal { item, reason, status: None, message }, false)?;
            }
        }
        Ok(if self.is_stopped { Flow::Stop } else { Flow::Next })
    }

    /// Sends what was put together so far.
    pub(super) fn flush(&mut self) -> Result<(), ForwardError> {
        let items = self.batch.take();
        self.deliver(&items)
    }

    /// Sends lines as one request; one that is refused is sent in halves, down to the line that is
    /// to blame.
    fn deliver(&mut self, items: &[Item]) -> Result<(), ForwardError> {
        let [first, rest @ ..] = items else { return Ok(()) };
        if self.is_stopped {
            return Ok(());
        }
        match self.exchange(items)? {
            Some(Verdict::Accepted) => {
                self.told.lines += items.len() as u64;
                self.trust()?;
                let settled: Vec<_> = items.iter().map(|item| item.settled).collect();
                self.settle(&settled)
            }
            Some(Verdict::Refused { status, words }) if rest.is_empty() => {
                let is_doubtful = !self.memory.has_accepted || status == FORBIDDEN;
                let (item, status) = (first.clone(), Some(status));
                let refusal = Refusal { item, reason: REFUSED, status, message: words };
                self.set_aside(refusal, is_doubtful)
            }
            Some(Verdict::Refused { .. }) => {
                let (former, latter) = items.split_at(items.len() / 2);
                self.deliver(former)?;
                self.deliver(latter)
            }
            _ => {
                self.is_stopped = true;
                Ok(())
            }
        }
    }

    /// Sends a request until it is accepted or refused; `None` where it has to wait, and why is
    /// told.
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
                let is_paced = begin > now;
                let limit = if is_paced { "forward.max_rate" } else { "forward.budget" };
                self.told.left_by = Some(limit);
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
            let now = Instant::now();
            let pause = patience.pause(after);
            let until = pause.and_then(|pause| now.checked_add(pause));
            match until.filter(|until| *until + SHORTEST_EXCHANGE <= self.end) {
                Some(until) => {
                    thread::sleep(until - now);
                    self.told.retries += 1;
                }
                None => {
                    self.told.waits_for = Some(reason);
                    self.leave_alone(after)?;
                    return Ok(None);
                }
            }
        }
    }

    fn pack(&self, items: &[Item]) -> Result<Packed, ForwardError> {
        // They could be read when they were put together.
        let events: Vec<_> = items.iter().filter_map(|item| line::read(&item.bytes).ok()).collect();
        let now_ms = unix_now_ns() / 1_000_000;
        let is_batch = self.settings.batch_bytes.is_some();
        let request = Request::new(&events, self.settings.form, is_batch, &self.speaker, now_ms)
            .map_err(|fault| ForwardError::Request(fault.into()))?;
        self.backend.pack(&request).map_err(|fault| ForwardError::Request(fault.into()))
    }

    /// The backend has taken a line: the way is right, and what is held is to blame itself.
    fn trust(&mut self) -> Result<(), ForwardError> {
        if !self.memory.has_accepted {
            self.memory.has_accepted = true;
            self.memory.store(self.state)?;
        }
        for refusal in std::mem::take(&mut self.held) {
            self.bury(&refusal)?;
        }
        Ok(())
    }

    /// Sets a line aside, or holds it while it is in doubt whether the way is to blame.
    fn set_aside(&mut self, refusal: Refusal, is_doubtful: bool) -> Result<(), ForwardError> {
        if self.is_stopped {
            return Ok(());
        }
        if !is_doubtful && self.held.is_empty() {
            return self.bury(&refusal);
        }
        self.held.push(refusal);
        self.is_stopped = self.held.len() >= MOST_HELD;
        Ok(())
    }

    fn bury(&mut self, refusal: &Refusal) -> Result<(), ForwardError> {
        let Refusal { item, reason, status, message } = refusal;
        self.dead_letters.add(&item.letter(reason, *status, message.clone(), unix_now_ns()))?;
        self.told.refused.note(reason, || format!("{item}: {message}"));
        self.settle(&[item.settled])
    }

    /// These lines need nothing more.
    fn settle(&mut self, settled: &[Settled]) -> Result<(), ForwardError> {
        Ok(self.journal.add(settled)?)
    }

    /// Lines are held and none was taken: a person should look at the way first.
    pub(super) fn doubt(&mut self) {
        let is_told = self.told.waits_for.is_some() || self.told.misconfigured.is_some();
        let refused = self.held.iter().find(|refusal| refusal.reason == REFUSED);
        if let (false, Some(Refusal { item, message, .. })) = (is_told, refused) {
            self.told.misconfigured = Some(format!(
                "{}: refused every line from {item} on: {message}; check backend_url, form and                  token of [forward]; they are set aside once another line is taken",
                self.settings.backend
            ));
        }
    }

    /// Remembers how long the backend asked to be left alone.
    fn leave_alone(&mut self, asked: Option<Duration>) -> Result<(), ForwardError> {
        if let Some(asked) = asked {
            self.memory.leave_alone_for(asked);
            self.memory.store(self.state)?;
        }
        Ok(())
    }
}
