//! The worker's side of windows: survey what was launched, take what was measured, wish for more.

use std::time::{Duration, Instant};

use warpgauge_wire::FunctionSet;

use crate::cupti::{Cupti, Sass};
use crate::estimator::{Estimate, Estimator, Shape};
use crate::launch::KEY_WORDS;
use crate::log::Log;
use crate::meter::{MAX_DEVICES, Meter};
use crate::mps;
use crate::observer;
use crate::probes::{self, COUNTED_PROBES, Counting};
use crate::sampler::{LIMIT, Sampler, Statistics, Verdict};
use crate::settings::Settings;
use crate::window::{BURST_OF_MODULE_LOADS, Outcome, Part};

/// Measures the functions that have to be counted.
#[derive(Debug)]
pub struct Sampling {
    sampler: Sampler,
    estimator: Estimator,
    budget_percent: f64,
    counting: Counting,
    interval: Duration,
    /// The functions that are listed and need windows.
    listed: FunctionSet,
    /// Those that turned out to be impossible, for the life of the process.
    dropped: FunctionSet,
    /// Why no window is ever opened again.
    stopped: Option<String>,
    module_loads: u32,
    /// Since when the window is open that was open at the last survey.
    open_since: Option<Instant>,
    launches: Launches,
    jitter: Jitter,
}

/// Launches since the process was first listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Launches {
    /// All whose shape is known, while functions were listed that need windows.
    pub surveyed: u64,
    /// Those of them whose shape had been measured when they were surveyed.
    pub measured: u64,
}

impl Sampling {
    /// Nothing listed yet.
    #[must_use]
    pub fn new(settings: &Settings, now: Instant) -> Self {
        let (budget, interval) = (settings.window_budget_percent, settings.window_interval);
        Self {
            sampler: Sampler::new(budget, interval, now),
            estimator: Estimator::default(),
            budget_percent: budget,
            counting: Counting::from_settings(settings.count_warp_level, settings.exclude_pred_off),
            interval,
            listed: FunctionSet::EMPTY,
            dropped: FunctionSet::EMPTY,
            stopped: None,
            module_loads: 0,
            open_since: None,
            launches: Launches::default(),
            jitter: Jitter(u64::from(std::process::id())),
        }
    }

    /// From now on these functions are listed.
    pub fn list(&mut self, functions: FunctionSet) {
        self.listed = counted(functions);
    }

    /// Gets windows ready for what is listed.
    pub fn prepare(&mut self, cupti: &Cupti, log: &mut Log) {
        if self.measurable().is_empty() || observer::meter().is_some() {
            return;
        }
        if self.budget_percent == 0.0 {
            return self.stop("window_budget_percent is 0", log);
        }
        if mps::serves_this_process() {
            return self.stop("the process runs under MPS", log);
        }
        match Sass::start(cupti) {
            Ok(sass) => drop(observer::meter_or(|| Meter::new(sass, self.counting))),
            Err(error) => self.stop(&error.to_string(), log),
        }
    }

    /// Forgets everything that was learnt: the process is not listed any more, or anew.
    pub fn forget(&mut self) {
        self.listed = FunctionSet::EMPTY;
        self.estimator = Estimator::default();
        self.sampler.keep_only(|_| false);
    }

    /// The listed functions that windows can measure.
    #[must_use]
    pub fn measurable(&self) -> FunctionSet {
        match self.stopped {
            Some(_) => FunctionSet::EMPTY,
            None => self.listed.iter().filter(|f| !self.dropped.contains(*f)).collect(),
        }
    }

    /// How long until the next survey; `None` while there is nothing to survey.
    #[must_use]
    pub fn interval(&self) -> Option<Duration> {
        (!self.measurable().is_empty()).then_some(self.interval)
    }

    /// When to survey next: not later than an interval from now, and at once when the next window
    /// may open, but for a little that keeps surveys out of step with the program. `None` while there is nothing to survey.
    #[must_use]
    pub fn next_survey(&mut self, now: Instant) -> Option<Instant> {
        let interval = self.interval()?;
        Some(self.sampler.next_chance(now, interval) + self.jitter.up_to(interval / 4))
    }

    /// Begins to count anew what is launched between two surveys.
    pub fn begin_survey(&mut self) {
        self.estimator.begin_survey();
    }

    /// Counts launches of a shape.
    pub fn count(&mut self, shape: &[u64; KEY_WORDS], launches: u64) {
        if !self.measurable().is_empty() {
            self.estimator.count(*shape, launches);
        }
    }

    /// Adds up what was surveyed and takes the outcome of the last window. Calls nobody.
    pub fn settle(&mut self, now: Instant, log: &mut Log) {
        let (fresh, measured) = self.estimator.fresh(self.measurable());
        self.launches.surveyed += fresh;
        self.launches.measured += measured;
        self.take_outcome(now, log);
    }

    /// Wishes for the next window.
    pub fn plan(&mut self, cupti: &Cupti, now: Instant, log: &mut Log) {
        self.watch_open_window(now, log);
        let functions = self.measurable();
        let Some(meter) = observer::meter().filter(|_| !functions.is_empty()) else { return };
        self.prepare_devices(meter, cupti, log);
        let loads = observer::window().module_loads();
        if loads.wrapping_sub(self.module_loads) >= BURST_OF_MODULE_LOADS {
            self.sampler.be_quiet(now);
        }
        self.module_loads = loads;
        if self.estimator.forget_idle(|shape| self.sampler.may_measure(shape)) > 0 {
            let known: std::collections::HashSet<_> =
                self.estimator.shapes().map(|(shape, _)| *shape).collect();
            self.sampler.keep_only(|shape| known.contains(shape));
        }
        // The last wish stands until the next one is ready: a program whose bursts of launches fall
        // into the survey's own moment would otherwise never meet one.
        let wish = self.sampler.wish(&self.estimator, self.measurable(), now);
        observer::window().disarm();
        if let Some(wish) = wish {
            observer::window().arm(wish.shapes.into_iter(), wish.functions, wish.lazily);
        }
    }

    /// The estimate since the last one.
    pub fn estimate(&mut self) -> Estimate {
        self.estimator.estimate(self.measurable())
    }

    /// What windows have brought and cost.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.sampler.statistics
    }

    /// Launches since the process was first listed, and how many were measured; `None` where no
    /// function ever needed it.
    #[must_use]
    pub fn launches(&self) -> Option<Launches> {
        (self.launches.surveyed > 0).then_some(self.launches)
    }

    /// Every shape that is remembered, with what was measured of it.
    pub fn shapes(&self) -> impl Iterator<Item = (&[u64; KEY_WORDS], &Shape)> {
        self.estimator.shapes()
    }

    fn take_outcome(&mut self, now: Instant, log: &mut Log) {
        let Some(outcome) = observer::window().take() else { return };
        let surprise = match (&outcome.result, observer::meter()) {
            (Ok(parts), Some(meter)) => parts
                .iter()
                .filter_map(|part| self.learn(&outcome, part, meter))
                .max_by(f64::total_cmp),
            _ => None,
        };
        if let Err(refusal) = outcome.result {
            log.say_details(format_args!("a window measured nothing: {refusal:?}"));
        }
        match self.sampler.judge(&outcome, surprise, now) {
            Verdict::GoOn => {}
            Verdict::SpareGraphs(why) => {
                observer::window().spare_graphs();
                log.say(format_args!("what graphs launch is not measured any more: {why}"));
            }
            Verdict::Drop(functions, why) => self.drop_functions(functions, &why, log),
            Verdict::Stop(why) => self.stop(&why, log),
        }
    }

    fn learn(&mut self, outcome: &Outcome, part: &Part, meter: &Meter) -> Option<f64> {
        let values: [Option<f64>; COUNTED_PROBES] =
            std::array::from_fn(|probe| meter.value(probe, &part.counters));
        self.estimator.learn_together(&part.shapes, outcome.functions, values)
    }

    /// A window that is still open since the last survey and longer than the limit is never
    /// followed by another one, whether it ends or not.
    fn watch_open_window(&mut self, now: Instant, log: &mut Log) {
        if !observer::window().is_open() {
            self.open_since = None;
            return;
        }
        let since = *self.open_since.get_or_insert(now);
        if now.duration_since(since) > LIMIT && self.stopped.is_none() {
            self.stop(&format!("a window has been open for more than {LIMIT:?}"), log);
        }
    }

    fn prepare_devices(&mut self, meter: &Meter, cupti: &Cupti, log: &mut Log) {
        let mut seen: Vec<u32> = self
            .estimator
            .shapes()
            .filter(|(_, shape)| shape.fresh > 0)
            .filter_map(|(shape, _)| observer::contexts().device_of(*shape.first()?))
            .filter(|device| (*device as usize) < MAX_DEVICES && !meter.knows(*device))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        for device in seen {
            match meter.prepare(cupti, device) {
                Err(error) => {
                    let why = format!("device {device}: {error}");
                    self.drop_functions(self.listed, &why, log);
                }
                Ok(lacking) => {
                    for (function, metric) in lacking {
                        let metric = metric.to_string_lossy();
                        let why = format!("device {device} has no metric {metric}");
                        self.drop_functions([function].into_iter().collect(), &why, log);
                    }
                }
            }
        }
    }

    fn drop_functions(&mut self, functions: FunctionSet, why: &str, log: &mut Log) {
        for function in functions.iter().filter(|f| counted(functions).contains(*f)) {
            if !self.dropped.contains(function) {
                self.dropped.insert(function);
                if self.listed.contains(function) {
                    log.say(format_args!("{function} cannot be measured: {why}"));
                }
            }
        }
    }

    fn stop(&mut self, why: &str, log: &mut Log) {
        let functions: Vec<String> =
            self.measurable().iter().map(|function| function.to_string()).collect();
        if !functions.is_empty() {
            let functions = functions.join(", ");
            log.say(format_args!("{functions} cannot be measured any more: {why}"));
        }
        self.stopped = Some(why.to_owned());
    }
}

/// Numbers that look random. A sampler in step with what it samples meets the same part again and
/// again.
#[derive(Debug)]
struct Jitter(u64);

impl Jitter {
    /// A part of `most`, a different one each time (SplitMix64, Steele et al. 2014).
    fn up_to(&mut self, most: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        most.mul_f64((mixed >> 40) as f64 / (1_u64 << 24) as f64)
    }
}

/// Those of the functions that windows are needed for.
fn counted(functions: FunctionSet) -> FunctionSet {
    let counted = probes::counted_functions();
    functions.iter().filter(|function| counted.contains(*function)).collect()
}
