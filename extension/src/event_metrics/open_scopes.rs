//! Scopes that have begun and not ended, for producers whose ends do not say when they began.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use warpgauge_formats::event::Scope;
use warpgauge_formats::time::Timestamp;

use super::EventSource;

/// Most scopes that may be open; the oldest beyond them are forgotten.
const MOST_OPEN: usize = 10_000;

/// The open scopes, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpenScopes {
    open: VecDeque<OpenScope>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OpenScope {
    source: EventSource,
    name: String,
    instance: Option<i64>,
    began_ns: i64,
}

impl OpenScopes {
    /// Notes that a scope has begun.
    pub fn begin(&mut self, source: &EventSource, scope: &Scope<'_>) {
        self.open.push_back(OpenScope {
            source: source.clone(),
            name: scope.name.to_string(),
            instance: scope.instance,
            began_ns: scope.time.0,
        });
        if self.open.len() > MOST_OPEN {
            self.open.pop_front();
        }
    }

    /// When the innermost open scope of that name or instance began; it is open no longer.
    pub fn end(&mut self, source: &EventSource, scope: &Scope<'_>) -> Option<Timestamp> {
        let is_it = |open: &OpenScope| {
            open.instance == scope.instance && open.name == scope.name && open.source == *source
        };
        let at = self.open.iter().rposition(is_it)?;
        self.open.remove(at).map(|open| Timestamp(open.began_ns))
    }
}
