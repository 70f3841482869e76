//! When to open a window, and for which shapes. Decisions alone: the clock is the caller's.
//!
//! A window holds up the thread that launches, so windows have a budget: after one that took t the
//! next one has to wait for t / budget, and for the shortest interval at least. After a slow one the
//! wait doubles, up to 64 times. One that takes longer than [`LIMIT`] was the last one.
//!
//! All shapes that may have a window are wished for at once, and whichever is launched next has it:
//! a wish for a few of them would miss, in a program of long rounds, all that come between two
//! surveys. Shapes that were never measured are wished for alone first (`sampler/turns.rs`). A shape
//! that was measured is due again after two intervals, and after twice as long each time that a
//! measurement agrees with what was expected; so the frequent ones, which are met first, step aside
//! for the others, and those that scatter come back.

mod turns;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use warpgauge_wire::{Function, FunctionSet};

use crate::cupti::SassCall;
use crate::estimator::Estimator;
use crate::launch::KEY_WORDS;
use crate::window::{MAX_WANTED, Outcome, Refusal, hash};

use self::turns::Turns;

/// A window that takes longer is the last one in its process: a thread inside a synchronise cannot
/// be called back, and the next one might never come out.
pub const LIMIT: Duration = Duration::from_secs(2);

/// A window that takes longer is slow: patches, or the program's own work in the queue, cost more
/// than a sample is worth.
const SLOW: Duration = Duration::from_millis(100);

const MOST_STRETCH: u32 = 64;

/// How far a measurement may be from what was expected and still agree with it.
const AGREEMENT: f64 = 0.02;

/// How long a shape waits for its second measurement, in shortest intervals, and at most.
const FIRST_PATIENCE: u32 = 2;
const MOST_PATIENCE: Duration = Duration::from_secs(600);

/// After a burst of module loads there is quiet for so long.
const QUIET: Duration = Duration::from_secs(5);

/// So many windows in a row that counted nothing with eager patching: it will not become better.
const MOST_EMPTY: u32 = 3;

/// Decides on windows.
#[derive(Debug)]
pub struct Sampler {
    /// The part of wall time that windows may take, over 0.
    budget: f64,
    interval: Duration,
    not_before: Instant,
    stretch: u32,
    lazily: bool,
    empty_in_a_row: u32,
    /// Graphs that counted nothing, or nothing with a name, since one counted.
    vain_graphs: u32,
    turns: Turns,
    /// How many wishes there were.
    wishes: usize,
    /// Whether all functions are counted in one window; otherwise one by one.
    together: bool,
    turn: usize,
    plans: HashMap<[u64; KEY_WORDS], Plan>,
    refused: HashSet<[u64; KEY_WORDS]>,
    /// What happened so far.
    pub statistics: Statistics,
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    due: Instant,
    patience: Duration,
}

/// What windows have brought and cost.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Windows that gave a measurement.
    pub measured: u64,
    /// Windows that were opened in vain.
    pub discarded: u64,
    /// How long threads were held up.
    pub time: Duration,
}

/// A wish for the next window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// The shapes, by [`hash`].
    pub shapes: Vec<u64>,
    /// What to count.
    pub functions: FunctionSet,
    /// Whether to patch kernels as they are launched instead of all at once.
    pub lazily: bool,
}

/// What follows from a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    GoOn,
    /// A function cannot be counted.
    Drop(FunctionSet, String),
    /// No more windows around graphs.
    SpareGraphs(String),
    /// No more windows in this process.
    Stop(String),
}

impl Sampler {
    /// A sampler that spends `budget_percent` of wall time, in windows at least `interval` apart.
    #[must_use]
    pub fn new(budget_percent: f64, interval: Duration, now: Instant) -> Self {
        Self {
            budget: (budget_percent / 100.0).clamp(1e-6, 1.0),
            interval,
            not_before: now,
            stretch: 1,
            lazily: true,
            empty_in_a_row: 0,
            vain_graphs: 0,
            turns: Turns::new(interval),
            wishes: 0,
            together: true,
            turn: 0,
            plans: HashMap::new(),
            refused: HashSet::new(),
            statistics: Statistics::default(),
        }
    }

    /// What to open a window for now, if anything.
    pub fn wish(
        &mut self,
        estimator: &Estimator,
        functions: FunctionSet,
        now: Instant,
    ) -> Option<Wish> {
        if now < self.not_before || functions.is_empty() {
            return None;
        }
        let counted = self.functions_of_a_window(functions);
        let (mut new, mut due) = (Vec::new(), Vec::new());
        for (key, shape) in estimator.shapes().filter(|(key, _)| !self.refused.contains(*key)) {
            if !shape.is_measured(counted) {
                new.push((shape.share, hash(key)));
            } else if shape.is_alive() && self.plans.get(key).is_none_or(|plan| plan.due <= now) {
                due.push((shape.share * (AGREEMENT + shape.spread(counted)), hash(key)));
            }
        }
        let is_alone = !new.is_empty() && !due.is_empty() && self.turns.is_for_the_new_alone(now);
        if is_alone {
            due.clear();
        }
        let mut shapes = ranked(new, self.wishes);
        shapes.extend(ranked(due, self.wishes));
        shapes.truncate(MAX_WANTED);
        if shapes.is_empty() {
            return None;
        }
        self.wishes += 1;
        Some(Wish { shapes, functions: counted, lazily: self.lazily })
    }

    fn functions_of_a_window(&self, functions: FunctionSet) -> FunctionSet {
        if self.together {
            let mut counted = functions;
            // Shows whether the patches counted at all.
            counted.insert(Function::Instructions);
            return counted;
        }
        let number = functions.iter().count().max(1);
        functions.iter().skip(self.turn % number).take(1).collect()
    }

    /// When the next window may open, if that is within `longest`; the moment after it otherwise.
    #[must_use]
    pub fn next_chance(&self, now: Instant, longest: Duration) -> Instant {
        let latest = now + longest;
        if self.not_before > now { self.not_before.min(latest) } else { latest }
    }

    /// Modules came in a burst: the program is starting something.
    pub fn be_quiet(&mut self, now: Instant) {
        self.not_before = self.not_before.max(now + QUIET);
    }

    /// Judges a window. `surprise` is how far its measurement was from what was expected, if it
    /// brought one.
    pub fn judge(&mut self, outcome: &Outcome, surprise: Option<f64>, now: Instant) -> Verdict {
        self.turns.over(outcome.result.is_ok());
        self.statistics.time += outcome.took;
        match outcome.result {
            Ok(_) => self.statistics.measured += 1,
            Err(_) => self.statistics.discarded += 1,
        }
        self.stretch = if outcome.took > SLOW { (self.stretch * 2).min(MOST_STRETCH) } else { 1 };
        let pause = Duration::try_from_secs_f64(outcome.took.as_secs_f64() / self.budget)
            .unwrap_or(Duration::MAX)
            .saturating_mul(self.stretch);
        let pause = pause.max(self.interval).min(Duration::from_secs(86_400));
        // From the moment that it opened: it was noticed up to a survey later, which is no cost.
        self.not_before = self.not_before.max(outcome.opened_at + pause);
        self.turn += 1;
        if outcome.took > LIMIT {
            let seconds = outcome.took.as_secs_f64();
            return Verdict::Stop(format!(
                "a window took {seconds:.1} s: longer than {LIMIT:?} is too long"
            ));
        }
        match &outcome.result {
            Ok(parts) => {
                self.empty_in_a_row = 0;
                if outcome.by_graph {
                    self.vain_graphs = 0;
                }
                for (shape, _) in parts.iter().flat_map(|part| &part.shapes) {
                    self.plan_next(*shape, surprise.unwrap_or(0.0), now);
                }
                Verdict::GoOn
            }
            Err(refusal) => self.judge_refusal(outcome, *refusal, now),
        }
    }

    fn judge_refusal(&mut self, outcome: &Outcome, refusal: Refusal, now: Instant) -> Verdict {
        match refusal {
            Refusal::Collective => {
                self.refused.insert(outcome.shape);
                // Nothing was held up: the next shape need not wait.
                self.not_before = now;
                Verdict::GoOn
            }
            Refusal::Nameless => Verdict::Stop(
                "the driver cannot name kernels (CUDA 12.3 can), so collective ones cannot be spared"
                    .to_owned(),
            ),
            Refusal::Loading => {
                self.be_quiet(now);
                Verdict::GoOn
            }
            Refusal::Capturing
            | Refusal::UnknownDevice
            | Refusal::Disturbed
            | Refusal::NotLaunched
            | Refusal::ContextGone => Verdict::GoOn,
            // Graphs may hold kernels as they were when they were instantiated, without patches.
            Refusal::Empty | Refusal::Unattributed if outcome.by_graph => {
                if self.statistics.measured == 0 {
                    self.lazily = false;
                }
                self.vain_graphs += 1;
                if self.vain_graphs <= MOST_EMPTY {
                    return Verdict::GoOn;
                }
                Verdict::SpareGraphs(match refusal {
                    Refusal::Empty => "their kernels counted nothing".to_owned(),
                    _ => "what they counted bears no name of theirs".to_owned(),
                })
            }
            Refusal::Unattributed => Verdict::GoOn,
            Refusal::Empty if self.lazily => {
                self.lazily = false;
                Verdict::GoOn
            }
            Refusal::Empty => {
                self.empty_in_a_row += 1;
                if self.empty_in_a_row < MOST_EMPTY {
                    return Verdict::GoOn;
                }
                Verdict::Stop(format!("{MOST_EMPTY} windows in a row counted nothing"))
            }
            Refusal::DeviceFailed => {
                Verdict::Stop("waiting for the device failed inside a window".to_owned())
            }
            Refusal::Failed(failed) => {
                let why = format!("{} failed with {}", failed.call.name(), failed.code);
                match failed.call {
                    SassCall::SetConfig if outcome.functions.iter().count() > 1 => {
                        // Perhaps the metrics do not fit into one configuration.
                        self.together = false;
                        Verdict::GoOn
                    }
                    SassCall::SetConfig => Verdict::Drop(outcome.functions, why),
                    _ => Verdict::Stop(why),
                }
            }
        }
    }

    fn plan_next(&mut self, shape: [u64; KEY_WORDS], surprise: f64, now: Instant) {
        let first = self.interval.saturating_mul(FIRST_PATIENCE);
        let patience = match self.plans.get(&shape) {
            Some(plan) if surprise <= AGREEMENT => {
                plan.patience.saturating_mul(2).min(MOST_PATIENCE)
            }
            _ => first,
        };
        self.plans.insert(shape, Plan { due: now + patience, patience });
    }

    /// Whether a shape may still be measured.
    #[must_use]
    pub fn may_measure(&self, shape: &[u64; KEY_WORDS]) -> bool {
        !self.refused.contains(shape)
    }

    /// Forgets the shapes that the estimator has forgotten.
    pub fn keep_only(&mut self, is_known: impl Fn(&[u64; KEY_WORDS]) -> bool) {
        self.plans.retain(|shape, _| is_known(shape));
        self.refused.retain(|shape| is_known(shape));
    }
}

/// The shapes by their rank, those of the highest first, beginning with another one at each wish:
/// two that fall together in the window's table, or more than it holds, take turns.
fn ranked(mut shapes: Vec<(f64, u64)>, turn: usize) -> Vec<u64> {
    shapes.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let first = turn.checked_rem(shapes.len()).unwrap_or(0);
    shapes.rotate_left(first);
    shapes.into_iter().map(|(_, hash)| hash).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cupti::FailedCall;
    use crate::window::Part;

    const SECOND: Duration = Duration::from_secs(1);

    fn key(number: u64) -> [u64; KEY_WORDS] {
        [number, 0, 0, 0, 0, 0]
    }

    fn functions() -> FunctionSet {
        [Function::Instructions, Function::Divergence].into_iter().collect()
    }

    fn outcome(number: u64, opened_at: Instant, took: Duration, refusal: Refusal) -> Outcome {
        let (shape, functions) = (key(number), functions());
        let result = Err(refusal);
        Outcome { shape, by_graph: false, device: 0, functions, opened_at, took, result }
    }

    fn measured(number: u64, opened_at: Instant, took: Duration) -> Outcome {
        let part = Part { shapes: vec![(key(number), 1)], ..Part::default() };
        Outcome { result: Ok(vec![part]), ..outcome(number, opened_at, took, Refusal::Empty) }
    }

    fn learn(estimator: &mut Estimator, number: u64, value: f64) -> Option<f64> {
        estimator.learn(&key(number), functions(), [Some(value), None, Some(0.0)])
    }

    #[test]
    fn shapes_that_were_never_measured_come_first_and_the_most_launched_before_the_others() {
        let now = Instant::now();
        let mut sampler = Sampler::new(1.0, SECOND, now);
        let mut estimator = Estimator::default();
        assert_eq!(sampler.wish(&estimator, functions(), now), None);
        for (number, launches) in [(1, 10), (2, 30), (3, 1_000_000)] {
            estimator.count(key(number), launches);
        }
        learn(&mut estimator, 3, 12.0);
        let wish = sampler.wish(&estimator, functions(), now).unwrap();
        assert_eq!(wish.shapes, [hash(&key(2)), hash(&key(1))], "the measured one has to wait");
        for number in [1, 2] {
            learn(&mut estimator, number, 12.0);
        }
        let wish = sampler.wish(&estimator, functions(), now).unwrap();
        assert!(wish.shapes.contains(&hash(&key(3))));
    }

    #[test]
    fn the_one_that_scatters_comes_before_the_one_that_is_always_alike() {
        let now = Instant::now();
        let mut sampler = Sampler::new(1.0, SECOND, now);
        let mut estimator = Estimator::default();
        for number in [1, 2] {
            estimator.count(key(number), 100);
        }
        for value in [10.0, 30.0] {
            learn(&mut estimator, 1, 20.0);
            learn(&mut estimator, 2, value);
        }
        let wish = sampler.wish(&estimator, functions(), now).unwrap();
        assert_eq!(wish.shapes, [hash(&key(2)), hash(&key(1))]);
    }

    #[test]
    fn a_window_is_paid_for_before_the_next_one() {
        let now = Instant::now();
        let mut sampler = Sampler::new(1.0, SECOND, now);
        let mut estimator = Estimator::default();
        estimator.count(key(1), 1);
        estimator.count(key(2), 1);
        sampler.judge(&measured(1, now, Duration::from_millis(50)), Some(0.0), now);
        let at = |sampler: &mut Sampler, later| sampler.wish(&estimator, functions(), now + later);
        assert_eq!(at(&mut sampler, Duration::from_millis(4_999)), None, "50 ms are 1 % of 5 s");
        assert!(at(&mut sampler, 5 * SECOND).is_some());
        sampler.judge(
            &measured(1, now + 5 * SECOND, Duration::from_micros(1)),
            Some(0.0),
            now + 5 * SECOND,
        );
        assert_eq!(at(&mut sampler, Duration::from_millis(5_999)), None, "one a second at most");
        assert!(at(&mut sampler, 6 * SECOND).is_some());
    }

    #[test]
    fn slow_windows_make_the_pauses_grow() {
        let mut now = Instant::now();
        let mut sampler = Sampler::new(10.0, SECOND, now);
        let mut estimator = Estimator::default();
        estimator.count(key(1), 1);
        for doubled in [2, 4, 8] {
            sampler.judge(&measured(2, now, Duration::from_millis(200)), Some(0.0), now);
            let pause = 2 * SECOND * doubled;
            assert_eq!(sampler.wish(&estimator, functions(), now + pause - SECOND / 1000), None);
            now += pause;
            assert!(sampler.wish(&estimator, functions(), now).is_some());
        }
    }

    #[test]
    fn a_shape_that_does_as_expected_is_asked_ever_more_rarely() {
        let mut now = Instant::now();
        let mut sampler = Sampler::new(100.0, SECOND, now);
        let mut estimator = Estimator::default();
        estimator.count(key(1), 1);
        let mut waits = Vec::new();
        for surprise in [0.0, 0.0, 0.0, 0.5, 0.0] {
            learn(&mut estimator, 1, 12.0);
            sampler.judge(&measured(1, now, Duration::ZERO), Some(surprise), now);
            let mut wait = 0;
            while sampler.wish(&estimator, functions(), now).is_none() {
                now += SECOND;
                wait += 1;
            }
            waits.push(wait);
        }
        assert_eq!(waits, [2, 4, 8, 2, 4]);
    }

    #[test]
    fn a_window_over_the_limit_is_the_last_one() {
        let now = Instant::now();
        let mut sampler = Sampler::new(1.0, SECOND, now);
        let verdict = sampler.judge(&measured(1, now, LIMIT + SECOND), Some(0.0), now);
        assert!(matches!(verdict, Verdict::Stop(why) if why.contains("3.0 s")));
    }

    #[test]
    fn patches_that_count_nothing_are_tried_eagerly_and_then_given_up() {
        let now = Instant::now();
        let mut sampler = Sampler::new(1.0, SECOND, now);
        let mut estimator = Estimator::default();
        estimator.count(key(1), 1);
        assert!(sampler.wish(&estimator, functions(), now).unwrap().lazily);
        let empty = outcome(1, now, Duration::ZERO, Refusal::Empty);
        assert_eq!(sampler.judge(&empty, None, now), Verdict::GoOn);
        assert!(!sampler.wish(&estimator, functions(), now + SECOND).unwrap().lazily);
        for _ in 1..MOST_EMPTY {
            assert_eq!(sampler.judge(&empty, None, now), Verdict::GoOn);
        }
        assert!(matches!(sampler.judge(&empty, None, now), Verdict::Stop(_)));
    }

    #[test]
    fn metrics_that_do_not_fit_together_are_counted_one_function_at_a_time() {
        let now = Instant::now();
        let mut sampler = Sampler::new(1.0, SECOND, now);
        let mut estimator = Estimator::default();
        estimator.count(key(1), 1);
        let failed = Refusal::Failed(FailedCall { call: SassCall::SetConfig, code: 1 });
        let together = outcome(1, now, Duration::ZERO, failed);
        assert_eq!(sampler.judge(&together, None, now), Verdict::GoOn);
        let mut seen = Vec::new();
        for round in 1..=2 {
            let wish = sampler.wish(&estimator, functions(), now + round * SECOND).unwrap();
            seen.push(wish.functions.to_string());
            sampler.judge(&measured(1, now, Duration::ZERO), Some(0.0), now);
        }
        seen.sort();
        assert_eq!(seen, ["0", "3"]);
        let alone = Outcome { functions: [Function::Divergence].into_iter().collect(), ..together };
        assert!(matches!(sampler.judge(&alone, None, now), Verdict::Drop(..)));
    }

    #[test]
    fn graphs_that_count_nothing_are_spared_and_other_launches_are_not() {
        let now = Instant::now();
        let mut sampler = Sampler::new(1.0, SECOND, now);
        let mut estimator = Estimator::default();
        estimator.count(key(1), 1);
        let empty = outcome(1, now, Duration::ZERO, Refusal::Empty);
        let empty = Outcome { by_graph: true, ..empty };
        for _ in 0..MOST_EMPTY {
            assert_eq!(sampler.judge(&empty, None, now), Verdict::GoOn);
        }
        assert!(matches!(sampler.judge(&empty, None, now), Verdict::SpareGraphs(_)));
        assert!(sampler.wish(&estimator, functions(), now + SECOND).is_some());
    }

    /// The shapes that were launched last look like the most frequent ones, and are the last to come
    /// again.
    #[test]
    fn every_shape_of_a_long_round_is_wished_for_at_once() {
        let mut now = Instant::now();
        let mut sampler = Sampler::new(1.0, SECOND, now);
        let mut estimator = Estimator::default();
        for number in 0..500 {
            estimator.begin_survey();
            estimator.count(key(number), 1);
        }
        assert_eq!(sampler.wish(&estimator, functions(), now).unwrap().shapes.len(), 500);
        for number in 0..500 {
            learn(&mut estimator, number, 12.0);
            estimator.count(key(number), 1);
        }
        sampler.judge(&measured(450, now, Duration::ZERO), Some(0.0), now);
        now += SECOND;
        let wish = sampler.wish(&estimator, functions(), now).unwrap();
        assert_eq!(wish.shapes.len(), 499, "all but the one that was just measured");
    }

    #[test]
    fn shapes_that_fall_together_in_the_table_take_turns() {
        let now = Instant::now();
        let mut sampler = Sampler::new(1.0, SECOND, now);
        let mut estimator = Estimator::default();
        for number in 0..3 {
            estimator.count(key(number), 10 - number);
        }
        let mut first = || sampler.wish(&estimator, functions(), now).unwrap().shapes[0];
        let firsts: HashSet<u64> = (0..3).map(|_| first()).collect();
        assert_eq!(firsts.len(), 3);
    }

    /// As one that a program launches once, when it starts.
    #[test]
    fn a_shape_that_never_gets_a_window_does_not_hold_up_the_others() {
        let mut now = Instant::now();
        let mut sampler = Sampler::new(1.0, SECOND, now);
        let mut estimator = Estimator::default();
        for number in [1, 2] {
            estimator.count(key(number), 100);
        }
        let mut seconds_until_two = Vec::new();
        for _ in 0..4 {
            learn(&mut estimator, 2, 12.0);
            let mut seconds = 0;
            loop {
                estimator.begin_survey();
                estimator.count(key(2), 100);
                let wish = sampler.wish(&estimator, functions(), now).unwrap();
                assert!(wish.shapes.contains(&hash(&key(1))));
                if wish.shapes.contains(&hash(&key(2))) {
                    break;
                }
                now += SECOND;
                seconds += 1;
            }
            sampler.judge(&measured(2, now, Duration::ZERO), Some(1.0), now);
            now += 3 * SECOND;
            seconds_until_two.push(seconds);
        }
        assert_eq!(seconds_until_two, [8, 8, 0, 8]);
    }

    #[test]
    fn a_collective_kernel_is_never_asked_for_again() {
        let now = Instant::now();
        let mut sampler = Sampler::new(1.0, SECOND, now);
        let mut estimator = Estimator::default();
        estimator.count(key(1), 1);
        let refused = outcome(1, now, Duration::ZERO, Refusal::Collective);
        assert_eq!(sampler.judge(&refused, None, now), Verdict::GoOn);
        assert_eq!(sampler.wish(&estimator, functions(), now + 100 * SECOND), None);
        assert!(!sampler.may_measure(&key(1)));
    }

    proptest! {
        /// Whatever windows take, their share of the time until the next one may open is within the
        /// budget.
        #[test]
        fn no_sequence_of_windows_exceeds_the_budget(
            milliseconds in proptest::collection::vec(0_u64..2000, 1..50),
            budget in 0.1_f64..50.0,
        ) {
            let start = Instant::now();
            let mut now = start;
            let mut sampler = Sampler::new(budget, Duration::from_millis(1), now);
            let mut estimator = Estimator::default();
            estimator.count(key(1), 1);
            let mut spent = Duration::ZERO;
            for took in milliseconds.into_iter().map(Duration::from_millis) {
                sampler.judge(&measured(2, now, took), Some(0.0), now);
                spent += took;
                now = sampler.not_before;
                prop_assert!(sampler.wish(&estimator, functions(), now).is_some());
                let share = 100.0 * spent.as_secs_f64() / (now - start).as_secs_f64();
                prop_assert!(share <= budget * 1.000_001, "{} of {}", share, budget);
            }
        }
    }
}
