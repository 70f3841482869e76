//! What the worker does, step by step: look at the plan, follow it, publish.
//!
//! There is one session in a process. Whoever holds it makes every call to CUPTI and writes every
//! file, so none of this happens twice at a time.

use std::time::{Duration, Instant};

use warpgauge_wire::FunctionSet;

use crate::control::{Control, Look};
use crate::cupti::{Cupti, CuptiError, Subscription};
use crate::driver::{Driver, DriverError};
use crate::guard;
use crate::lifecycle::{LIFECYCLE, State};
use crate::log::Log;
use crate::observer;
use crate::probes;
use crate::publisher::Publisher;
use crate::settings::Settings;
use crate::tally::Tally;

/// Where the worker stands when it takes a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Inside the host's `cuInit`: calling it again would wait for ourselves.
    InsideInit,
    /// On our own thread: whoever subscribes while the host is still inside `cuInit` races it, so
    /// the end of it has to be waited for.
    OwnThread,
}

/// The worker's possessions.
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    log: Log,
    control: Control,
    publisher: Publisher,
    tally: Tally,
    cupti: Option<Cupti>,
    subscription: Option<Subscription>,
    said: Said,
    failed_flushes: u64,
    next_poll: Instant,
    next_flush: Instant,
}

/// What is said once in the life of a process.
#[derive(Debug, Default)]
struct Said {
    unmeasurable: FunctionSet,
    unfitted: bool,
    refusal: bool,
}

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
enum Obstacle {
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error(transparent)]
    Cupti(#[from] CuptiError),
}

impl Session {
    /// A session that has not looked at anything yet.
    #[must_use]
    pub fn new(settings: Settings, log: Log, now: Instant) -> Self {
        Self {
            control: Control::new(settings.runtime_config_path.clone(), std::process::id()),
            publisher: Publisher::new(settings.measurements_output_dir.clone()),
            tally: Tally::default(),
            cupti: None,
            subscription: None,
            said: Said::default(),
            failed_flushes: 0,
            next_poll: now,
            next_flush: now + settings.flush_interval,
            log,
            settings,
        }
    }

    /// Does what is due and says how long there is nothing to do.
    pub fn step(&mut self, moment: Moment, now: Instant) -> Duration {
        if LIFECYCLE.state() == State::Off {
            return self.settings.flush_interval;
        }
        if let Some(entry) = guard::fault() {
            self.disable(&format!("a fault of this library in {entry:?}"));
        }
        if now >= self.next_poll && LIFECYCLE.state() != State::Disabled {
            self.poll(moment);
            self.next_poll = now + self.settings.runtime_config_polling_interval;
        }
        if now >= self.next_flush {
            self.flush();
            self.next_flush = now + self.settings.flush_interval;
        }
        self.next_poll.min(self.next_flush).saturating_duration_since(now)
    }

    fn poll(&mut self, moment: Moment) {
        match self.control.look() {
            Look::Unchanged => {}
            Look::Kept(why) => self.log.say(format_args!("{why}; the plan stays as it was")),
            Look::Plan(functions, notes) => {
                for note in notes {
                    self.log.say(note);
                }
                self.follow(functions, moment);
            }
        }
    }

    fn follow(&mut self, functions: FunctionSet, moment: Moment) {
        self.say_what_is_not_measurable(functions);
        let followed = match (functions.is_empty(), self.subscription.is_some()) {
            (true, false) => Ok(()),
            (true, true) => self.stop(),
            (false, false) => self.start(functions, moment),
            (false, true) => self.change(functions),
        };
        if let Err(obstacle) = followed {
            self.disable(&obstacle.to_string());
        }
    }

    fn start(&mut self, functions: FunctionSet, moment: Moment) -> Result<(), Obstacle> {
        let driver = Driver::of_this_process()?;
        if moment == Moment::OwnThread {
            driver.wait_until_initialised()?;
        }
        let cupti = match self.cupti.take() {
            Some(cupti) => cupti,
            None => Cupti::find(self.settings.cupti_path.as_deref())?,
        };
        let cupti = self.cupti.insert(cupti);
        observer::measure(functions, driver);
        // Before the first callback, which would not be counted otherwise.
        if !LIFECYCLE.change(State::Armed, State::Measuring) {
            return Ok(());
        }
        self.subscription = Some(Subscription::take(cupti)?);
        let Cupti { file, version, .. } = cupti;
        self.log.say(format_args!("listed for {functions}: measuring through {file} ({version})"));
        Ok(())
    }

    fn change(&mut self, functions: FunctionSet) -> Result<(), Obstacle> {
        observer::measure(functions, Driver::of_this_process()?);
        self.log.say_details(format_args!("listed for {functions}"));
        Ok(())
    }

    fn stop(&mut self) -> Result<(), Obstacle> {
        if let Some(subscription) = self.subscription.take() {
            subscription.give_back()?;
        }
        LIFECYCLE.change(State::Measuring, State::Armed);
        self.flush();
        self.log.say("no longer listed: CUPTI's slot is free");
        Ok(())
    }

    /// Gives up for the life of the process; what was counted is still published.
    pub fn disable(&mut self, why: &str) {
        if !matches!(LIFECYCLE.state(), State::Armed | State::Measuring) {
            return;
        }
        LIFECYCLE.disable();
        if let Some(subscription) = self.subscription.take() {
            // There is nothing to do about a slot that cannot be given back.
            let _given_back = subscription.give_back();
        }
        self.log.say(format_args!("measuring nothing for the life of this process: {why}"));
        self.flush();
    }

    /// Publishes what was counted. What cannot be published waits for the next time.
    pub fn flush(&mut self) {
        let tally = &mut self.tally;
        let drained = observer::drain(|occupancy, launches| tally.add(occupancy, launches));
        tally.add(None, drained.unfitted);
        self.say_what_is_missing(drained.unfitted);
        if self.tally.launches() == 0 {
            return;
        }
        match self.publisher.publish(&self.tally.lines()) {
            Ok(name) => {
                let launches = self.tally.launches();
                self.log.say_details(format_args!("{name}: {launches} launches"));
                if self.failed_flushes > 0 {
                    let failed = self.failed_flushes;
                    self.log.say(format_args!("publishing works again after {failed} failures"));
                }
                self.failed_flushes = 0;
                self.tally = Tally::default();
            }
            Err(error) => {
                self.failed_flushes += 1;
                if self.failed_flushes == 1 {
                    self.log.say(format_args!("{error}; measurements wait in memory"));
                }
            }
        }
    }

    /// Whether nothing waits in memory.
    #[must_use]
    pub fn has_published_everything(&self) -> bool {
        self.tally.launches() == 0
    }

    fn say_what_is_not_measurable(&mut self, functions: FunctionSet) {
        let measurable = probes::measurable();
        let missing: FunctionSet = functions
            .iter()
            .filter(|function| !measurable.contains(*function))
            .filter(|function| !self.said.unmeasurable.contains(*function))
            .collect();
        for function in missing.iter() {
            self.said.unmeasurable.insert(function);
            self.log
                .say(format_args!("{function} cannot be measured; nothing is published for it"));
        }
    }

    fn say_what_is_missing(&mut self, unfitted: u64) {
        if unfitted > 0 && !self.said.unfitted {
            self.said.unfitted = true;
            self.log.say("more launch shapes than the ledger holds: some count as launches alone");
        }
        if let Some(code) = observer::take_refusal()
            && !self.said.refusal
        {
            self.said.refusal = true;
            self.log.say(format_args!(
                "the driver refused an occupancy with CUresult {code}: such launches count alone"
            ));
        }
    }
}
