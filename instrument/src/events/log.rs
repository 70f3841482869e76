//! The log's keeper: says when it begins, what goes into it, and when it ends.
//!
//! It works for the session ([`crate::session`]), step by step, on whatever thread holds that: the
//! library's own, and the one that exits.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::cupti::{Activity, Cupti, activity, buffers};
use crate::events::clock::{Offset, wall_clock};
use crate::events::files::FileError;
use crate::events::losses::Reason;
use crate::events::settings::EventSettings;
use crate::events::writer::Writer;
use crate::events::{self, memory};
use crate::log::Log;
use crate::names::NAMES;

/// How often everything that waits is written.
const INTERVAL: Duration = Duration::from_millis(250);

/// Keeps the event log of this process.
#[derive(Debug)]
pub struct EventLog {
    settings: EventSettings,
    /// None before the process was listed for the first time, and where no log is wanted.
    writer: Option<Writer>,
    activity: Option<Activity>,
    clock: Offset,
    next: Instant,
    /// Kernels that CUPTI has told of.
    kernels: u64,
    /// Whether kernels were traced whenever launches were counted.
    is_complete: bool,
    said: Vec<Reason>,
    failures: u64,
}

/// What the health file says of the event log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Events in the log.
    pub written: u64,
    /// Events that are not.
    pub lost: u64,
}

impl EventLog {
    /// A log that is not written yet.
    #[must_use]
    pub fn new(settings: EventSettings, now: Instant) -> Self {
        Self {
            settings,
            writer: None,
            activity: None,
            clock: Offset::default(),
            next: now,
            kernels: 0,
            is_complete: true,
            said: vec![],
            failures: 0,
        }
    }

    /// Whether the settings ask for kernels and copies, which excludes windows.
    #[must_use]
    pub fn excludes_windows(&self) -> bool {
        self.settings.format.is_some() && self.settings.activity && self.activity.is_some()
    }

    /// The process is listed: from now on events are taken.
    pub fn begin(&mut self, now: Instant, log: &mut Log) {
        let Some(format) = self.settings.format else { return };
        if self.writer.is_none() {
            let app = app_of(std::env::args_os().next().as_deref().map(Path::new));
            self.writer = Some(Writer::new(format, &self.settings, &app, &NAMES, wall_clock()));
        }
        if !events::is_on() {
            memory::allow(self.settings.memory_interval);
            events::switch(true);
            self.round(log);
            self.next = now + INTERVAL;
        }
    }

    /// The driver is in the process: memory can be read.
    pub fn cuda_begins(&mut self) {
        memory::find_driver();
    }

    /// Begins to trace kernels and copies, where the settings ask for them. Where CUPTI refuses, the
    /// log goes without.
    pub fn trace(&mut self, cupti: &Cupti, log: &mut Log) {
        if self.settings.format.is_none() || self.activity.is_some() {
            return;
        }
        if !self.settings.activity {
            self.is_complete = false;
            return;
        }
        match Activity::start(cupti) {
            Ok(activity) => {
                self.clock.measure(wall_clock, || activity.timestamp());
                self.activity = Some(activity);
                log.say(
                    "events: kernels and copies are traced; instructions, coalescence and \
                     divergence are left out meanwhile (events_activity = false measures them)",
                );
            }
            Err(error) => {
                self.is_complete = false;
                log.say(format_args!("events: without kernels and copies: {error}"));
            }
        }
    }

    /// Ends the tracing and takes what CUPTI still has; not for an exit.
    pub fn stop_tracing(&mut self) {
        if let Some(activity) = self.activity.take() {
            activity.stop();
        }
    }

    /// CUPTI was ended for everybody: what it had is gone.
    pub fn forget_tracing(&mut self) {
        self.activity = None;
        self.is_complete = false;
    }

    /// The process is not listed any more: events are not taken until it is again.
    pub fn pause(&mut self, log: &mut Log) {
        if self.writer.is_some() {
            events::switch(false);
            self.round(log);
        }
    }

    /// Writes what waits if it is time for it, and says how long there is nothing to do; `None`
    /// while there is no log.
    pub fn step(&mut self, now: Instant, cupti: Option<&Cupti>, log: &mut Log) -> Option<Duration> {
        self.writer.as_ref()?;
        if !events::is_on() {
            return None;
        }
        let few_buffers = self.activity.is_some() && buffers::POOL.free() < buffers::FEW_BUFFERS;
        if now >= self.next || events::is_filling() || few_buffers {
            if let (Some(activity), Some(cupti)) = (&self.activity, cupti) {
                self.clock.measure(wall_clock, || activity.timestamp());
                if let Err(error) = activity.flush(cupti) {
                    log.say(format_args!("events: no more kernels and copies: {error}"));
                    self.stop_tracing();
                    self.is_complete = false;
                }
            }
            self.round(log);
            self.next = now + INTERVAL;
        }
        Some(self.next.saturating_duration_since(now))
    }

    /// The process exits, in which so many launches were counted: writes what waits and the last
    /// line. Plain files alone.
    pub fn finish(&mut self, launches: u64, log: &mut Log) {
        if self.writer.is_none() {
            return;
        }
        events::switch(false);
        self.round(log);
        let undelivered = launches.saturating_sub(self.kernels + activity::dropped());
        let Some(writer) = &mut self.writer else { return };
        if self.is_complete && undelivered > 0 {
            writer.losses().set(Reason::Undelivered, undelivered);
        }
        let outcome = writer.end(wall_clock());
        self.say_outcome(outcome, log);
        self.say_losses(log);
        if let Some(writer) = &self.writer {
            let EventCounts { written, lost } = self.counts();
            let mut left_out: Vec<String> =
                writer.left_out().iter().map(|(name, count)| format!("{name} {count}")).collect();
            if writer.beyond_formats() > 0 {
                left_out.push(format!("scope attributes {}", writer.beyond_formats()));
            }
            let left_out = match left_out.as_slice() {
                [] => String::new(),
                some => format!("; the format has no place for {}", some.join(", ")),
            };
            log.say(format_args!("events: {written} written, {lost} lost{left_out}"));
        }
        if let Some(skipped) = crate::scopes::skipped::summary() {
            log.say(format_args!("scopes: not recorded as they were said: {skipped}"));
        }
    }

    /// Events that are and that are not in the log.
    #[must_use]
    pub fn counts(&self) -> EventCounts {
        self.writer.as_ref().map_or_else(EventCounts::default, |writer| EventCounts {
            written: writer.written(),
            lost: writer.lost(),
        })
    }

    /// Takes and writes everything that waits. Calls nobody.
    fn round(&mut self, log: &mut Log) {
        let Some(writer) = &mut self.writer else { return };
        let mut outcome = writer.prepare();
        let mut note = |result: Result<(), FileError>| {
            if let (Ok(()), Err(error)) = (&outcome, result) {
                outcome = Err(error);
            }
        };
        let (clock, kernels) = (self.clock, &mut self.kernels);
        buffers::POOL.take(|row| {
            *kernels += u64::from(!row.is_copy);
            note(writer.row(row, clock));
        });
        events::take(|record| note(writer.record(&record)));
        note(writer.flush());
        let losses = writer.losses();
        losses.set(Reason::RingFull, events::dropped());
        losses.set(Reason::BufferShortage, activity::dropped());
        losses.set(Reason::Malformed, activity::malformed());
        self.say_outcome(outcome, log);
        self.say_losses(log);
    }

    fn say_outcome(&mut self, outcome: Result<(), FileError>, log: &mut Log) {
        match outcome {
            Ok(()) if self.failures > 0 => {
                let failures = std::mem::take(&mut self.failures);
                log.say(format_args!("events: writing works again after {failures} failures"));
            }
            Ok(()) => {}
            Err(error) => {
                self.failures += 1;
                if self.failures == 1 {
                    log.say(format_args!("events: {error}; what comes meanwhile is lost"));
                }
            }
        }
    }

    fn say_losses(&mut self, log: &mut Log) {
        let Some(writer) = &mut self.writer else { return };
        for reason in Reason::ALL {
            if writer.losses().of(reason) > 0 && !self.said.contains(&reason) {
                self.said.push(reason);
                log.say(format_args!("events: {}", reason.meaning()));
            }
        }
    }
}

/// What the program calls itself: its first argument's file name, in characters that do no harm in a
/// file's name.
fn app_of(program: Option<&Path>) -> String {
    const LONGEST: usize = 64;
    let name = program.and_then(Path::file_name).map(|name| name.to_string_lossy());
    let name: String = name
        .unwrap_or_default()
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
        .collect();
    if name.trim_matches('.').is_empty() { "process".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_in_characters_that_fit_a_file_name() {
        let name = |program: Option<&str>| app_of(program.map(Path::new));
        assert_eq!(name(Some("/usr/bin/python3")), "python3");
        assert_eq!(name(Some("train me:now")), "train_me_now");
        assert_eq!(name(Some(&"é".repeat(500))), "_".repeat(64));
        for none in [None, Some("/"), Some(""), Some("..")] {
            assert_eq!(name(none), "process");
        }
    }
}
