//! The scopes that are open on one thread.
//!
//! Each domain has a stack of its own: `pop` of a domain ends the last scope of that domain,
//! whatever was begun in others since (nvToolsExt.h, "Process/Thread Ranges"). They share one array.

use crate::names::NameId;

/// As many scopes may be open on a thread; those within are counted and not recorded.
pub const MAX_DEPTH: usize = 128;

/// A scope that is open.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// Tells one run of a scope from the next.
    pub instance: u64,
    /// Nanoseconds since 1970.
    pub begun_ns: i64,
    /// The scope's name.
    pub name: NameId,
    /// The domain's name.
    pub domain: NameId,
    /// The program's number for a group of scopes.
    pub category: u32,
    /// How many scopes were open on the thread.
    pub depth: u16,
    /// How many of them are of the domain.
    pub level: u16,
}

/// The open scopes, outermost first.
#[derive(Debug)]
pub struct Stack {
    open: [Open; MAX_DEPTH],
    depth: u16,
    /// Scopes begun on top of a full stack.
    beyond: u32,
}

/// What the end of a scope finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Popped {
    /// The scope that it ends.
    Scope(Open),
    /// One that found no room when it began.
    Beyond,
    /// Nothing: no scope of the domain is open.
    Nothing,
}

impl Stack {
    /// An empty one; all zero bytes.
    #[must_use]
    pub const fn new() -> Self {
        const NONE: Open = Open {
            instance: 0,
            begun_ns: 0,
            name: NameId::NONE,
            domain: NameId::NONE,
            category: 0,
            depth: 0,
            level: 0,
        };
        Self { open: [NONE; MAX_DEPTH], depth: 0, beyond: 0 }
    }

    /// Puts a scope on top and fills in its depth and level; `None` where there is no room.
    pub fn push(&mut self, mut scope: Open) -> Option<Open> {
        let depth = usize::from(self.depth);
        let around = self.open.get(..depth)?.iter().rev().find(|open| open.domain == scope.domain);
        scope.depth = self.depth;
        scope.level = around.map_or(0, |around| around.level.saturating_add(1));
        match self.open.get_mut(depth).filter(|_| self.beyond == 0) {
            Some(place) => {
                *place = scope;
                self.depth += 1;
                Some(scope)
            }
            None => {
                self.beyond = self.beyond.saturating_add(1);
                None
            }
        }
    }

    /// Takes the last scope of a domain out.
    pub fn pop(&mut self, domain: NameId) -> Popped {
        if self.beyond > 0 {
            self.beyond -= 1;
            return Popped::Beyond;
        }
        let depth = usize::from(self.depth);
        let open = self.open.get_mut(..depth).unwrap_or_default();
        let Some(place) = open.iter().rposition(|open| open.domain == domain) else {
            return Popped::Nothing;
        };
        let Some(after) = open.get_mut(place..) else { return Popped::Nothing };
        after.rotate_left(1);
        self.depth -= 1;
        after.last().map_or(Popped::Nothing, |scope| Popped::Scope(*scope))
    }

    /// How many scopes are open.
    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// Forgets every scope.
    pub fn clear(&mut self) {
        (self.depth, self.beyond) = (0, 0);
    }
}

impl Default for Stack {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(instance: u64, domain: u32) -> Open {
        Open { instance, domain: NameId::from_number(domain), ..Open::default() }
    }

    fn popped(stack: &mut Stack, domain: u32) -> Option<u64> {
        match stack.pop(NameId::from_number(domain)) {
            Popped::Scope(scope) => Some(scope.instance),
            Popped::Beyond | Popped::Nothing => None,
        }
    }

    #[test]
    fn each_domain_has_a_stack_of_its_own() {
        let mut stack = Stack::new();
        let levels = [(1, 0), (2, 9), (3, 0), (4, 9)].map(|(instance, domain)| {
            let scope = stack.push(scope(instance, domain)).unwrap();
            (scope.depth, scope.level)
        });
        assert_eq!(levels, [(0, 0), (1, 0), (2, 1), (3, 1)]);
        assert_eq!([0, 0, 0].map(|domain| popped(&mut stack, domain)), [Some(3), Some(1), None]);
        assert_eq!([9, 9, 9].map(|domain| popped(&mut stack, domain)), [Some(4), Some(2), None]);
    }

    #[test]
    fn ends_meet_their_beginnings_again_after_a_stack_that_was_too_deep() {
        let mut stack = Stack::new();
        let most = MAX_DEPTH as u64;
        for instance in 0..most {
            assert!(stack.push(scope(instance, 0)).is_some());
        }
        assert!(stack.push(scope(most, 0)).is_none());
        assert!(stack.push(scope(most + 1, 0)).is_none());
        assert_eq!(stack.pop(NameId::from_number(0)), Popped::Beyond);
        assert_eq!(stack.pop(NameId::from_number(0)), Popped::Beyond);
        assert_eq!(popped(&mut stack, 0), Some(most - 1));
        stack.clear();
        assert_eq!(stack.pop(NameId::from_number(0)), Popped::Nothing);
    }
}
