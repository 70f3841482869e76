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
mod tests;
