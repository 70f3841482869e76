//! From few measured launches to an estimate for all of them. Arithmetic alone: no clock, no CUPTI.
//!
//! A launch shape is measured now and then; what was measured stands for its launches until it is
//! measured again. Launches of a shape wait until the first measurement of it, and are published
//! with it, so that a total comes out right even though a shape is first measured a little after it
//! first runs. Where a shape is never measured its launches are published for no such function, and
//! the share of the others says so.
//!
//! ```text
//! mean of a shape   plain over its first 8 measurements, then each new one weighs 1/8
//! id 0              sum over measured shapes: launches x mean, to a whole number, with the fraction
//!                   carried into the next interval
//! ids 2 and 3       mean of each measured shape, weighing its launches
//! ```
//!
//! A graph launches several shapes in one window. Of those that are one function's, only the sum is
//! known: they share its mean, so that the total of the graph is right, though not how it divides
//! among them. A shape that was ever measured alone keeps its own mean, and what it did is taken off
//! the sum first; its percentages are not taken off the others'.
//!
//! Errors: none where a shape always does the same work. Where the work depends on data, with a
//! standard deviation of s per launch, the mean of a shape is off by s / sqrt(n) for n < 8
//! measurements and s / sqrt(15) later (the variance of an exponential mean of weight w is
//! s^2 w / (2 - w)). Where the work drifts by d between two measurements, the mean lags by at most
//! 7 d more than the launches themselves (an exponential mean of weight w lags by (1 - w) / w).

use std::collections::HashMap;

use warpgauge_wire::{Function, FunctionSet};

use crate::launch::KEY_WORDS;
use crate::probes::{COUNTED, COUNTED_PROBES, counted_index};

/// Shapes that are remembered: as many again as the ledger holds.
pub const MAX_SHAPES: usize = 8192;

/// How many measurements weigh alike, and the weight of a later one: 1 / 8.
const MEMORY: f64 = 8.0;

/// How much of a shape's share a survey keeps. A program's rounds are often longer than the time
/// between two surveys; with a short memory the shapes that were launched last would come first, and
/// these come last again.
const SHARE_KEPT: f64 = 63.0 / 64.0;

/// A shape that was not launched for so many surveys is not waited for.
const MOST_IDLE: u32 = 32;

/// One that was not launched for so many makes room where that is short.
const MOST_IDLE_WHERE_CROWDED: u32 = 10;

/// What is known of a function's value for a shape.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Knowledge {
    /// It was never measured.
    #[default]
    Unmeasured,
    /// It was, and a launch has no such value.
    Nothing,
    /// The mean and the variance of what was measured.
    Value {
        /// The mean.
        mean: f64,
        /// The mean square of the distance from the mean.
        variance: f64,
        /// How many measurements it is made of, up to `MEMORY`.
        weight: f64,
    },
}

impl Knowledge {
    /// Takes one measurement in. Gives its distance from what was expected, relative to that; 0 for
    /// the first one.
    pub fn learn(&mut self, measured: Option<f64>) -> f64 {
        let Some(measured) = measured else {
            if matches!(self, Self::Unmeasured) {
                *self = Self::Nothing;
            }
            return 0.0;
        };
        let Self::Value { mean, variance, weight } = self else {
            *self = Self::Value { mean: measured, variance: 0.0, weight: 1.0 };
            return 0.0;
        };
        *weight = (*weight + 1.0).min(MEMORY);
        let distance = measured - *mean;
        let step = distance / *weight;
        *mean += step;
        // Welford's update, with a weight that stops growing.
        *variance += (distance * (measured - *mean) - *variance) / *weight;
        if distance == 0.0 { 0.0 } else { (distance / measured.abs().max(mean.abs())).abs() }
    }

    /// The standard deviation relative to the mean; 0 where that is not known.
    #[must_use]
    pub fn spread(&self) -> f64 {
        match self {
            Self::Value { mean, variance, .. } if *mean > 0.0 => variance.max(0.0).sqrt() / mean,
            _ => 0.0,
        }
    }
}

/// One launch shape.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    /// Per probe.
    pub knowledge: [Knowledge; COUNTED_PROBES],
    /// Whether it was ever measured alone, and not with others of its function in a graph.
    alone: bool,
    /// Launches that are not published yet, per probe.
    waiting: [u64; COUNTED_PROBES],
    /// Launches since the last survey.
    pub fresh: u64,
    /// Surveys since the last launch.
    idle: u32,
    /// Launches, of which each survey keeps 63 of 64 parts.
    pub share: f64,
}

/// Everything that is known about the shapes of a process.
#[derive(Debug, Default)]
pub struct Estimator {
    shapes: HashMap<[u64; KEY_WORDS], Shape>,
    /// Of id 0: what rounding left over, between -0.5 and 0.5.
    remainder: f64,
}

/// An estimate for an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Estimate {
    /// Executed instructions; `None` where no shape was measured.
    pub instructions: Option<u64>,
    /// Per probe, values in percent with the launches that they stand for; empty for instructions.
    pub percents: [Vec<(f64, u64)>; COUNTED_PROBES],
}

impl Estimator {
    /// Begins a survey: launches counted from now on are fresh.
    pub fn begin_survey(&mut self) {
        for shape in self.shapes.values_mut() {
            shape.fresh = 0;
            shape.idle = shape.idle.saturating_add(1);
            shape.share *= SHARE_KEPT;
        }
    }

    /// Counts launches of a shape. `false` where there is no room to remember it.
    pub fn count(&mut self, key: [u64; KEY_WORDS], launches: u64) -> bool {
        if self.shapes.len() >= MAX_SHAPES && !self.shapes.contains_key(&key) {
            return false;
        }
        let shape = self.shapes.entry(key).or_default();
        for waiting in &mut shape.waiting {
            *waiting = waiting.saturating_add(launches);
        }
        shape.fresh = shape.fresh.saturating_add(launches);
        shape.idle = 0;
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
        let launches = launches as f64;
        shape.share += launches;
        true
    }

    /// Takes a measurement of a shape in: per probe, the value or `None` where the launch has none;
    /// `functions` are those that were counted for. Gives the largest relative distance from what
    /// was expected; `None` for a shape that is not remembered any more.
    pub fn learn(
        &mut self,
        key: &[u64; KEY_WORDS],
        functions: FunctionSet,
        values: [Option<f64>; COUNTED_PROBES],
    ) -> Option<f64> {
        let shape = self.shapes.get_mut(key)?;
        if !shape.alone {
            // What it shared with others was not its own.
            *shape = Shape { alone: true, knowledge: Default::default(), ..shape.clone() };
        }
        Some(shape.learn(functions, values))
    }

    /// Takes in what several shapes of one function, each with its number of launches, did in one
    /// launch of a graph: `values` is of all of them together. Gives as [`Self::learn`] does.
    pub fn learn_together(
        &mut self,
        shapes: &[([u64; KEY_WORDS], u64)],
        functions: FunctionSet,
        mut values: [Option<f64>; COUNTED_PROBES],
    ) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let times = |launches: u64| launches as f64;
        let instructions = counted_index(Function::Instructions)?;
        let of_all = *values.get(instructions)?;
        if let [(key, launches)] = shapes {
            *values.get_mut(instructions)? = of_all.map(|total| total / times(*launches));
            return self.learn(key, functions, values);
        }
        let (mut known, mut unknown) = (0.0, 0.0);
        for (key, launches) in shapes {
            match self.shapes.get(key).map(|shape| (shape.alone, shape.knowledge.get(instructions)))
            {
                Some((true, Some(Knowledge::Value { mean, .. }))) => {
                    known += mean * times(*launches)
                }
                _ => unknown += times(*launches),
            }
        }
        let rest = of_all.map(|total| (total - known) / unknown);
        if unknown == 0.0 || rest.is_some_and(|rest| rest <= 0.0) {
            // Nothing is left to be learnt of the others.
            return Some(0.0);
        }
        *values.get_mut(instructions)? = rest;
        let mut surprise = None;
        for (key, _) in shapes {
            if let Some(shape) = self.shapes.get_mut(key).filter(|shape| !shape.alone) {
                let distance = shape.learn(functions, values);
                surprise = Some(surprise.map_or(distance, |most: f64| most.max(distance)));
            }
        }
        surprise
    }

    /// The estimate for what was counted since the last one. Launches of shapes that were not
    /// measured go on waiting.
    pub fn estimate(&mut self, functions: FunctionSet) -> Estimate {
        let mut estimate = Estimate::default();
        let mut instructions = None;
        for shape in self.shapes.values_mut() {
            let places = shape.knowledge.iter().zip(&mut shape.waiting);
            for (((probe, knowledge), waiting), percents) in COUNTED
                .iter()
                .zip(places)
                .map(|(p, (k, w))| ((p, k), w))
                .zip(&mut estimate.percents)
            {
                if !functions.contains(probe.function()) {
                    *waiting = 0;
                    continue;
                }
                match *knowledge {
                    Knowledge::Unmeasured => continue,
                    Knowledge::Nothing => {}
                    Knowledge::Value { .. } if *waiting == 0 => {}
                    Knowledge::Value { mean, .. } if probe.function() == Function::Instructions => {
                        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
                        let product = *waiting as f64 * mean;
                        *instructions.get_or_insert(0.0) += product;
                    }
                    Knowledge::Value { mean, .. } => percents.push((mean, *waiting)),
                }
                *waiting = 0;
            }
        }
        if let Some(instructions) = instructions {
            let exact: f64 = instructions + self.remainder;
            let whole = exact.round().max(0.0);
            self.remainder = exact - whole;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole and not negative; what is too large becomes the largest"
            )]
            let whole = whole as u64;
            estimate.instructions = Some(whole);
        }
        estimate
    }

    /// Launches of the last survey, and how many of them have a shape that was measured for all of
    /// `functions`.
    #[must_use]
    pub fn fresh(&self, functions: FunctionSet) -> (u64, u64) {
        self.shapes.values().fold((0, 0), |(all, measured), shape| {
            let known = shape.is_measured(functions);
            (all + shape.fresh, measured + if known { shape.fresh } else { 0 })
        })
    }

    /// Forgets shapes that were not launched lately and wait for nothing that will come, so that
    /// new ones have room. Returns launches that were given up: counted, never estimated.
    pub fn forget_idle(&mut self, is_worth_waiting_for: impl Fn(&[u64; KEY_WORDS]) -> bool) -> u64 {
        if self.shapes.len() < MAX_SHAPES / 2 {
            return 0;
        }
        let mut given_up = 0;
        self.shapes.retain(|key, shape| {
            let keep = shape.fresh > 0
                || (shape.idle <= MOST_IDLE_WHERE_CROWDED && is_worth_waiting_for(key));
            if !keep {
                given_up += shape.waiting.iter().copied().max().unwrap_or(0);
            }
            keep
        });
        given_up
    }

    /// Every shape that is remembered.
    pub fn shapes(&self) -> impl Iterator<Item = (&[u64; KEY_WORDS], &Shape)> {
        self.shapes.iter()
    }
}

impl Shape {
    fn learn(&mut self, functions: FunctionSet, values: [Option<f64>; COUNTED_PROBES]) -> f64 {
        let places = COUNTED.iter().zip(&mut self.knowledge).zip(values);
        places
            .filter(|((probe, _), _)| functions.contains(probe.function()))
            .map(|((_, knowledge), value)| knowledge.learn(value))
            .fold(0.0, f64::max)
    }

    /// Whether the shape was launched lately.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.idle <= MOST_IDLE
    }

    /// Whether each of these functions was measured.
    #[must_use]
    pub fn is_measured(&self, functions: FunctionSet) -> bool {
        COUNTED
            .iter()
            .zip(&self.knowledge)
            .filter(|(probe, _)| functions.contains(probe.function()))
            .all(|(_, knowledge)| *knowledge != Knowledge::Unmeasured)
    }

    /// The largest relative standard deviation of these functions.
    #[must_use]
    pub fn spread(&self, functions: FunctionSet) -> f64 {
        COUNTED
            .iter()
            .zip(&self.knowledge)
            .filter(|(probe, _)| functions.contains(probe.function()))
            .map(|(_, knowledge)| knowledge.spread())
            .fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests;
