//! Which scopes are open, to say what a memory sample belongs to.

use std::collections::HashMap;

use crate::names::NameId;
use crate::scopes::{Phase, ScopeRecord};

/// Scopes that are followed at once; samples inside others belong to the ones around them.
const MOST_OPEN: usize = 4096;

/// The open scopes of each thread, outermost first.
#[derive(Debug, Default)]
pub(super) struct OpenScopes {
    threads: HashMap<u32, Vec<(u64, NameId)>>,
    count: usize,
    /// The thread that opened a scope last.
    latest: Option<u32>,
}

impl OpenScopes {
    /// Follows what happened.
    pub(super) fn follow(&mut self, scope: &ScopeRecord) {
        match scope.phase {
            Phase::Begin if self.count < MOST_OPEN => {
                let open = self.threads.entry(scope.thread).or_default();
                open.push((scope.instance, scope.name));
                self.count += 1;
                self.latest = Some(scope.thread);
            }
            Phase::Begin | Phase::Mark => {}
            Phase::End => self.close(scope),
        }
    }

    /// The innermost scope of a thread, or where it has none, the one that another thread opened
    /// last: work is often launched by threads that serve others.
    #[must_use]
    pub(super) fn around(&self, thread: u32) -> Option<(u64, NameId)> {
        let innermost = |thread: u32| self.threads.get(&thread)?.last().copied();
        innermost(thread).or_else(|| innermost(self.latest?))
    }

    /// Scopes may be closed on another thread than they were opened on, and in any order.
    fn close(&mut self, scope: &ScopeRecord) {
        let is_it = |open: &&mut Vec<(u64, NameId)>| {
            open.iter().any(|(instance, _)| *instance == scope.instance)
        };
        let own = self.threads.get_mut(&scope.thread).filter(|open| is_it(open));
        let thread = match own {
            Some(_) => Some(scope.thread),
            None => {
                self.threads.iter_mut().find(|(_, open)| is_it(open)).map(|(thread, _)| *thread)
            }
        };
        let Some((thread, open)) =
            thread.and_then(|thread| Some((thread, self.threads.get_mut(&thread)?)))
        else {
            return;
        };
        open.retain(|(instance, _)| *instance != scope.instance);
        self.count -= 1;
        if open.is_empty() {
            self.threads.remove(&thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scopes::Payload;

    fn scope(phase: Phase, thread: u32, instance: u64) -> ScopeRecord {
        let name = NameId::from_number(instance as u32);
        let (time_ns, category, depth, payload) = (0, 0, 0, Payload::None);
        let domain = NameId::NONE;
        ScopeRecord {
            time_ns,
            begun_ns: time_ns,
            thread,
            phase,
            instance,
            name,
            domain,
            category,
            depth,
            spans_threads: false,
            payload,
            color: None,
        }
    }

    #[test]
    fn a_sample_belongs_to_the_innermost_scope_of_its_thread_or_to_the_latest() {
        let mut open = OpenScopes::default();
        assert_eq!(open.around(1), None);
        for (thread, instance) in [(1, 10), (1, 11), (2, 12)] {
            open.follow(&scope(Phase::Begin, thread, instance));
        }
        let instance =
            |open: &OpenScopes, thread| open.around(thread).map(|(instance, _)| instance);
        assert_eq!(instance(&open, 1), Some(11));
        assert_eq!(instance(&open, 3), Some(12));
        // Closed by another thread, and out of order.
        open.follow(&scope(Phase::End, 3, 10));
        assert_eq!(instance(&open, 1), Some(11));
        for instance in [11, 12, 13] {
            open.follow(&scope(Phase::End, 1, instance));
        }
        assert_eq!(open.around(1), None);
        assert_eq!(open.count, 0);
    }

    #[test]
    fn open_scopes_are_bounded() {
        let mut open = OpenScopes::default();
        for instance in 0..3 * MOST_OPEN as u64 {
            open.follow(&scope(Phase::Begin, instance as u32 % 7, instance));
        }
        assert_eq!(open.threads.values().map(Vec::len).sum::<usize>(), MOST_OPEN);
        for instance in 0..3 * MOST_OPEN as u64 {
            open.follow(&scope(Phase::End, 0, instance));
        }
        assert!(open.threads.is_empty());
    }
}
