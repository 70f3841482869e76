//! What the worker does, step by step: look at the plan, follow it, publish.
//!
//! There is one session in a process. Whoever holds it makes every call to CUPTI and writes every
//! file, so none of this happens twice at a time.

use std::time::{Duration, Instant};

use nix::unistd::{Pid, gettid};
use warpgauge_wire::FunctionSet;

use crate::control::{Control, Look};
use crate::cupti::{Cupti, CuptiError, Subscription};
use crate::driver::{Driver, DriverError};
use crate::events::EventLog;
use crate::graphs::Unseen;
use crate::guard;
use crate::health::{Health, Report};
use crate::kernels::Kernels;
use crate::lifecycle::{LIFECYCLE, State};
use crate::log::Log;
use crate::observer;
use crate::probes;
use crate::publisher::Publisher;
use crate::resident::resident_bytes;
use crate::sampling::Sampling;
use crate::seen::Seen;
use crate::settings::Settings;
use crate::tally::Tally;

/// How soon to look again whether a window has ended that stands in the way.
const SOON: Duration = Duration::from_millis(10);

/// How long to wait at most for such a window before CUPTI's slot is kept instead.
const PATIENCE_WITH_WINDOW: Duration = Duration::from_secs(1);

/// `CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`: another tool has the slot.
const SLOT_TAKEN: u32 = 39;

/// How often another tool may take the slot from us before it is left to it for good.
const MOST_LOSSES: u32 = 3;

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
    /// Whether the driver has injected us; before that nothing of CUDA is touched.
    has_cuda: bool,
    cupti: Option<Cupti>,
    subscription: Option<Subscription>,
    sampling: Sampling,
    kernels: Kernels,
    health: Health,
    events: EventLog,
    /// What is listed, whether it can be followed or not.
    listed: FunctionSet,
    /// Why nothing is measured, where that is not the operator's wish.
    reason: Option<String>,
    seen: Seen,
    said: Said,
    failed_flushes: u64,
    /// How often another tool took the slot from us.
    losses: u32,
    next_poll: Instant,
    next_flush: Instant,
    next_survey: Instant,
    /// Whether the plan is new and windows have not got ready for it.
    unprepared: bool,
}

/// What is said once in the life of a process.
#[derive(Debug, Default)]
struct Said {
    unfitted: bool,
    refusal: bool,
    slot_taken: bool,
    graphs: Vec<Unseen>,
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
            has_cuda: false,
            cupti: None,
            subscription: None,
            sampling: Sampling::new(&settings, now),
            kernels: Kernels::new(settings.mangled_names, now),
            health: Health::new(&settings.measurements_output_dir),
            events: EventLog::new(settings.events.clone(), now),
            listed: FunctionSet::EMPTY,
            reason: None,
            seen: Seen::default(),
            said: Said::default(),
            failed_flushes: 0,
            losses: 0,
            next_poll: now,
            next_flush: now + settings.flush_interval,
            next_survey: now,
            unprepared: false,
            log,
            settings,
        }
    }

    /// The driver has injected us: what is listed can be measured from the next step on.
    pub fn cuda_begins(&mut self, now: Instant) {
        self.has_cuda = true;
        self.next_poll = now;
        self.events.cuda_begins();
    }

    /// Does what is due and says how long there is nothing to do.
    pub fn step(&mut self, moment: Moment, now: Instant) -> Duration {
        if LIFECYCLE.state() == State::Off {
            return self.settings.flush_interval;
        }
        if let Some(entry) = guard::fault() {
            self.disable(&format!("a fault of this library in {entry:?}"));
        }
        if self.is_leaving() {
            self.follow(moment, now);
            if self.is_leaving() {
                return SOON;
            }
        }
        if now >= self.next_poll && LIFECYCLE.state() != State::Disabled {
            self.poll(moment, now);
            self.next_poll = now + self.settings.runtime_config_polling_interval;
        }
        self.prepare_sampling(moment);
        let survey_interval = self.sampling.interval().filter(|_| self.subscription.is_some());
        if now >= self.next_flush || (survey_interval.is_some() && now >= self.next_survey) {
            self.survey(now);
            self.next_survey = self.sampling.next_survey(now).unwrap_or(now);
        }
        if now >= self.next_flush {
            self.flush();
            self.report();
            self.kernels.report_if_due(&self.sampling, now, &mut self.log);
            self.next_flush = now + self.settings.flush_interval;
        }
        let next = self.next_poll.min(self.next_flush);
        let next = survey_interval.map_or(next, |_| next.min(self.next_survey));
        let next = next.saturating_duration_since(now);
        let events = self.events.step(now, self.cupti.as_ref(), &mut self.log);
        events.map_or(next, |events| events.min(next))
    }

    /// Whether the process was taken off the list while a thread of it was in a window.
    fn is_leaving(&self) -> bool {
        self.listed.is_empty() && self.subscription.is_some()
    }

    fn poll(&mut self, moment: Moment, now: Instant) {
        if self.notice_lost_slot(now) {
            // Whoever took it may be about to subscribe: the next poll is early enough.
            return;
        }
        match self.control.look() {
            Look::Unchanged => {
                let waits_for_slot = !self.listed.is_empty() && self.subscription.is_none();
                if waits_for_slot {
                    self.follow(moment, now);
                }
            }
            Look::Kept(why) => self.log.say(format_args!("{why}; the plan stays as it was")),
            Look::Plan(functions, notes) => {
                for note in notes {
                    self.log.say(note);
                }
                self.listed = functions;
                self.follow(moment, now);
            }
        }
    }

    fn follow(&mut self, moment: Moment, now: Instant) {
        if !self.listed.is_empty() {
            self.events.begin(now, &mut self.log);
        } else if self.subscription.is_none() {
            self.events.pause(&mut self.log);
        }
        if !self.has_cuda {
            return;
        }
        let followed = match (self.listed.is_empty(), self.subscription.is_some()) {
            (true, false) => Ok(()),
            (true, true) => self.stop(now),
            (false, false) => self.start(moment, now),
            (false, true) => self.change(now),
        };
        match followed {
            Ok(()) => {}
            Err(Obstacle::Cupti(CuptiError::Call { code: SLOT_TAKEN, .. })) => {
                self.wait_for_slot("another tool has CUPTI's only slot in this process");
            }
            Err(obstacle) => self.disable(&obstacle.to_string()),
        }
    }

    /// Another tool may have finalised CUPTI, which ends every subscription without a word.
    fn notice_lost_slot(&mut self, now: Instant) -> bool {
        if self.subscription.as_ref().is_none_or(|subscription| subscription.check().is_ok()) {
            return false;
        }
        // Nothing is left to be given back.
        self.subscription = None;
        self.events.forget_tracing();
        observer::window().abandon();
        self.survey(now);
        self.flush();
        self.losses += 1;
        self.wait_for_slot("another tool took CUPTI's only slot in this process");
        if self.losses >= MOST_LOSSES {
            self.disable("another tool took CUPTI's slot again and again");
        }
        true
    }

    /// Another tool may have the slot for as long as it likes.
    fn wait_for_slot(&mut self, why: &str) {
        LIFECYCLE.change(State::Measuring, State::Armed);
        self.reason = Some(why.to_owned());
        if !self.said.slot_taken {
            self.said.slot_taken = true;
            self.log.say(format_args!("measuring nothing for now: {why}; trying again"));
        }
        self.report();
    }

    fn start(&mut self, moment: Moment, now: Instant) -> Result<(), Obstacle> {
        let driver = Driver::of_this_process()?;
        if moment == Moment::OwnThread {
            driver.wait_until_initialised()?;
        }
        let cupti = match self.cupti.take() {
            Some(cupti) => cupti,
            None => Cupti::find(self.settings.cupti_path.as_deref())?,
        };
        let cupti = self.cupti.insert(cupti);
        observer::measure(self.listed, driver);
        observer::graphs().forget();
        // Before the first callback, which would not be counted otherwise.
        if !LIFECYCLE.change(State::Armed, State::Measuring) {
            return Ok(());
        }
        self.subscription = Some(Subscription::take(cupti)?);
        let Cupti { file, version, .. } = cupti;
        let listed = self.listed;
        self.log.say(format_args!("listed for {listed}: measuring through {file} ({version})"));
        self.reason = None;
        self.said.slot_taken = false;
        self.events.trace(cupti, &mut self.log);
        self.list_for_windows();
        self.next_survey = now;
        Ok(())
    }

    fn change(&mut self, now: Instant) -> Result<(), Obstacle> {
        // What the launches so far were counted for is the plan that was.
        self.survey(now);
        self.flush();
        observer::measure(self.listed, Driver::of_this_process()?);
        self.log.say_details(format_args!("listed for {}", self.listed));
        self.list_for_windows();
        Ok(())
    }

    /// A kernel cannot be traced and patched at once: CUPTI refuses it or hangs.
    fn list_for_windows(&mut self) {
        let traced = self.events.excludes_windows();
        self.sampling.list(if traced { FunctionSet::EMPTY } else { self.listed });
        self.unprepared = !traced;
    }

    /// What CUPTI does here takes long and calls the driver, which is not ready inside `cuInit`: it
    /// is for our own thread.
    fn prepare_sampling(&mut self, moment: Moment) {
        if !self.unprepared || moment == Moment::InsideInit || self.subscription.is_none() {
            return;
        }
        self.unprepared = false;
        let initialised =
            Driver::of_this_process().and_then(|driver| driver.wait_until_initialised());
        match (initialised, &self.cupti) {
            (Err(error), _) => self.disable(&error.to_string()),
            (Ok(()), Some(cupti)) => self.sampling.prepare(cupti, &mut self.log),
            (Ok(()), None) => {}
        }
    }

    fn stop(&mut self, now: Instant) -> Result<(), Obstacle> {
        if !observer::window().disarm() {
            // The thread in it has to come out with the callbacks in place; see `is_leaving`.
            return Ok(());
        }
        if let Some(subscription) = self.subscription.take().filter(|slot| slot.check().is_ok()) {
            self.events.stop_tracing();
            subscription.give_back()?;
        }
        self.events.pause(&mut self.log);
        LIFECYCLE.change(State::Measuring, State::Armed);
        self.survey(now);
        self.flush();
        self.kernels.report(&self.sampling, true, &mut self.log);
        self.kernels = Kernels::new(self.settings.mangled_names, now);
        self.sampling.forget();
        self.log.say("no longer listed: CUPTI's slot is free");
        self.report();
        Ok(())
    }

    /// Gives up for the life of the process; what was counted is still published.
    pub fn disable(&mut self, why: &str) {
        if !matches!(LIFECYCLE.state(), State::Armed | State::Measuring) {
            return;
        }
        self.events.stop_tracing();
        LIFECYCLE.disable();
        let is_shut = wait_for(PATIENCE_WITH_WINDOW, || observer::window().disarm());
        if let Some(subscription) = self.subscription.take() {
            if is_shut {
                // There is nothing to do about a slot that cannot be given back.
                let _given_back = subscription.give_back();
            } else {
                // The thread in the window has to come out with the callbacks in place.
                let _kept = subscription;
            }
        }
        self.log.say(format_args!("measuring nothing for the life of this process: {why}"));
        self.reason = Some(why.to_owned());
        self.survey(Instant::now());
        self.flush();
        self.events.pause(&mut self.log);
        self.report();
    }

    /// Takes out what was counted, and with it the outcome of the last window.
    fn survey(&mut self, now: Instant) {
        let Self { tally, sampling, kernels, seen, .. } = self;
        sampling.begin_survey();
        let drained = observer::drain(|shape, occupancy, launches| {
            tally.add(occupancy, launches);
            sampling.count(shape, launches);
            kernels.count(shape, occupancy, launches);
            seen.count(shape, launches);
        });
        tally.add(None, drained.unfitted);
        seen.count_unfitted(drained.unfitted);
        self.kernels.settle();
        self.sampling.settle(now, &mut self.log);
        if let (Some(cupti), State::Measuring) = (&self.cupti, LIFECYCLE.state()) {
            self.sampling.plan(cupti, now, &mut self.log);
        }
        self.say_what_is_missing(drained.unfitted);
    }

    /// Publishes what was counted. What cannot be published waits for the next time.
    pub fn flush(&mut self) {
        self.tally.add_estimate(&self.sampling.estimate());
        if self.tally.is_empty() {
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

    /// The process exits: publishes what is left. Plain files alone.
    pub fn finish(&mut self) {
        self.survey(Instant::now());
        self.flush();
        self.events.finish(self.seen.launches, &mut self.log);
        // Threads may have stacks of any size; that of the first one is large.
        let is_first_thread = gettid() == Pid::this();
        self.kernels.report(&self.sampling, is_first_thread, &mut self.log);
        self.health.remove();
    }

    /// Keeps the health file, from the first time that the process was listed.
    fn report(&mut self) {
        let state = LIFECYCLE.state();
        if state == State::Off || (self.listed.is_empty() && !self.health.is_kept()) {
            return;
        }
        let calculated = probes::calculated_functions();
        let measurable = self.sampling.measurable();
        let functions = self
            .listed
            .iter()
            .filter(|function| calculated.contains(*function) || measurable.contains(*function))
            .collect();
        let statistics = self.sampling.statistics();
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
        let share = |part: u64, whole: u64| part as f64 / whole as f64;
        let report = Report {
            state,
            reason: self.reason.clone(),
            functions,
            launches_seen: self.seen.launches,
            launches_measured_share: self
                .sampling
                .launches()
                .map(|launches| share(launches.measured, launches.surveyed)),
            launches_dropped: self.seen.unfitted,
            windows: statistics.measured,
            windows_discarded: statistics.discarded,
            window_time_ns: u64::try_from(statistics.time.as_nanos()).unwrap_or(u64::MAX),
            resident_bytes: resident_bytes(),
            events: self.events.counts(),
            devices: self.seen.by_device.iter().map(|(device, n)| (*device, *n)).collect(),
        };
        // The measurements go to the same folder and say what is wrong with it.
        let _written = self.health.write(&report);
    }

    /// Whether nothing waits in memory.
    #[must_use]
    pub fn has_published_everything(&self) -> bool {
        self.tally.is_empty()
    }

    fn say_what_is_missing(&mut self, unfitted: u64) {
        for unseen in observer::graphs().unseen() {
            if !self.said.graphs.contains(&unseen) {
                self.said.graphs.push(unseen);
                self.log.say(unseen.meaning());
            }
        }
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

/// Asks again and again until the answer is yes; false where it is not in time.
fn wait_for(patience: Duration, is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(SOON);
    }
    true
}
