//! What a reader remembers of a session.

use std::collections::{HashMap, HashSet};

use super::budget::{Budget, Spent};
use super::dictionary::Dictionaries;
use super::rows::Type;
use super::seen::Seen;
use crate::event::{Phase, Profile, Scope, Source, What};
use crate::time::Timestamp;

/// Most beginnings and ends that are kept: one of each is the rule.
const MOST_BOUNDS: usize = 64;

/// One session.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) dictionaries: Dictionaries,
    pub(super) source: Source<'static>,
    pub(super) seen: SeenBatches,
    pub(super) scopes: ScopeTimes,
    bounds: HashSet<(bool, Timestamp)>,
}

/// The batches that have been counted.
#[derive(Debug, Default)]
pub(super) struct SeenBatches(HashMap<Type, Seen>);

/// When the scopes were open.
#[derive(Debug, Default)]
pub(super) struct ScopeTimes(HashMap<String, Times>);

/// When scopes of one name were open.
#[derive(Debug, Default)]
struct Times {
    open: i64,
    last_begin: Option<Timestamp>,
    last_end: Option<Timestamp>,
}

impl Session {
    /// Remembers the first process and program that the session is said to be of.
    pub(super) fn learn(&mut self, source: &Source<'_>, budget: &mut Budget) -> Result<(), Spent> {
        self.source.pid = self.source.pid.or(source.pid);
        if let (None, Some(app)) = (&self.source.app, &source.app) {
            budget.take(app)?;
            self.source.app = Some(app.to_string().into());
        }
        Ok(())
    }

    /// Whether the session's beginning or end comes for the first time: each channel has both.
    pub(super) fn is_new_bound(&mut self, what: &What<'_>) -> bool {
        let bound = match what {
            What::Start(start) => (true, start.time),
            What::End(time) => (false, *time),
            _ => return true,
        };
        if self.bounds.len() >= MOST_BOUNDS {
            self.bounds.clear();
        }
        self.bounds.insert(bound)
    }
}

impl SeenBatches {
    /// Whether a batch of that number comes for the first time. One without a number always does.
    pub(super) fn is_new(&mut self, of: Type, number: Option<i64>) -> bool {
        number.is_none_or(|number| self.0.entry(of).or_default().insert(number))
    }

    /// Adds the batches of a type whose numbers lie in a range.
    pub(super) fn extend(&mut self, of: Type, (first, last): (i64, i64)) {
        self.0.entry(of).or_default().extend(first, last);
    }

    /// By type.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Type, &Seen)> {
        self.0.iter().map(|(of, seen)| (*of, seen))
    }
}

impl ScopeTimes {
    /// Notes when a scope was open. Where there is no room for its name, no sample of it is marked.
    pub(super) fn note(&mut self, scope: &Scope<'_>, budget: &mut Budget) {
        if !self.0.contains_key(scope.name.as_ref()) {
            if budget.take(&scope.name).is_err() {
                return;
            }
            self.0.insert(scope.name.to_string(), Times::default());
        }
        let Some(times) = self.0.get_mut(scope.name.as_ref()) else { return };
        match scope.phase {
            Phase::Begin => {
                times.open = times.open.saturating_add(1);
                times.last_begin = times.last_begin.max(Some(scope.time));
            }
            Phase::End => {
                times.open = times.open.saturating_sub(1);
                times.last_end = times.last_end.max(Some(scope.time));
            }
            _ => {}
        }
    }

    /// Whether the scope that the sample names had ended when the sample was taken.
    pub(super) fn had_ended(&self, sample: &Profile<'_>) -> bool {
        let Some(times) = sample.scope.as_deref().and_then(|name| self.0.get(name)) else {
            return false;
        };
        let after_last_end = times.last_end.is_some_and(|end| sample.time > end);
        let open_again =
            times.open > 0 && times.last_begin.is_some_and(|begin| sample.time >= begin);
        after_last_end && !open_again
    }
}
