//! Names that a program gives to numbers of its own: categories of a domain, threads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::names::NameId;

/// As many numbers are named; a power of two.
pub const MAX_LABELS: usize = 1024;

/// What each number is called. The last name given stands.
pub struct Labels {
    /// The number plus one; 0: free. Filled once, never emptied.
    numbers: [AtomicU64; MAX_LABELS],
    names: [AtomicU32; MAX_LABELS],
}

impl Labels {
    /// None; all zero bytes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            numbers: [const { AtomicU64::new(0) }; MAX_LABELS],
            names: [const { AtomicU32::new(0) }; MAX_LABELS],
        }
    }

    /// Names a number; false where there is no room.
    pub fn set(&self, number: u64, name: NameId) -> bool {
        let Some(mine) = number.checked_add(1) else { return false };
        for (held, place) in self.from(number) {
            let exchanged = held.compare_exchange(0, mine, Ordering::AcqRel, Ordering::Acquire);
            if exchanged.map_or_else(|other| other == mine, |_| true) {
                place.store(name.number(), Ordering::Release);
                return true;
            }
        }
        false
    }

    /// The name of a number; none where it has none.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<NameId> {
        let mine = number.checked_add(1)?;
        let held = |held: &AtomicU64| held.load(Ordering::Acquire);
        let (_, place) = self
            .from(number)
            .take_while(|(number, _)| held(number) != 0)
            .find(|(number, _)| held(number) == mine)?;
        Some(NameId::from_number(place.load(Ordering::Acquire)))
            .filter(|name| *name != NameId::NONE)
    }

    /// All places, beginning with the one where a number is looked for first.
    fn from(&self, number: u64) -> impl Iterator<Item = (&AtomicU64, &AtomicU32)> {
        let start = usize::try_from(crate::ledger::hash(&[number]) % MAX_LABELS as u64);
        let start = start.unwrap_or_default();
        let places = || self.numbers.iter().zip(&self.names);
        places().skip(start).chain(places().take(start))
    }
}

impl Default for Labels {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_of_a_number_stands() {
        let labels = Box::new(Labels::new());
        assert_eq!(labels.get(3), None);
        assert!(labels.set(3, NameId::from_number(10)));
        assert!(labels.set(4, NameId::from_number(11)));
        assert!(labels.set(3, NameId::from_number(12)));
        assert_eq!(
            (labels.get(3), labels.get(4)),
            (Some(NameId::from_number(12)), Some(NameId::from_number(11)))
        );
    }

    #[test]
    fn as_many_as_fit_are_named_and_the_rest_are_refused() {
        let labels = Box::new(Labels::new());
        let fitted = (0..2000).filter(|number| labels.set(*number, NameId::from_number(5))).count();
        assert_eq!(fitted, MAX_LABELS);
        assert!(labels.set(7, NameId::from_number(6)), "one that is named can be named again");
        assert_eq!((labels.get(7), labels.get(1999)), (Some(NameId::from_number(6)), None));
        assert!(!labels.set(u64::MAX, NameId::from_number(5)));
    }
}
