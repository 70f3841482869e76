//! Ranges that may end on another thread than they began on.
//!
//! A range lives in a slot; its number says in which: `serial << 12 | slot`. Whoever ends it takes
//! the slot's number away first, so that one of two ends that come together finds nothing.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use crate::names::NameId;

/// As many ranges may be open in the process; a power of two.
pub const MAX_RANGES: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 12;

/// So many slots are looked at for a free one.
const ATTEMPTS: u64 = 64;

/// A slot that is being filled or emptied; no range has this number.
const BUSY: u64 = u64::MAX;

/// A range that is open.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Tells one run of a range from the next.
    pub instance: u64,
    /// Nanoseconds since 1970.
    pub begun_ns: i64,
    /// The range's name.
    pub name: NameId,
    /// The domain's name.
    pub domain: NameId,
    /// The program's number for a group of ranges.
    pub category: u32,
}

struct Slot {
    /// 0: free.
    number: AtomicU64,
    instance: AtomicU64,
    begun_ns: AtomicI64,
    name: AtomicU32,
    domain: AtomicU32,
    category: AtomicU32,
}

/// The open ranges of a process.
pub struct Ranges {
    slots: [Slot; MAX_RANGES],
    serial: AtomicU64,
}

impl Ranges {
    /// None; all zero bytes, so that an untouched one takes no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: [const {
                Slot {
                    number: AtomicU64::new(0),
                    instance: AtomicU64::new(0),
                    begun_ns: AtomicI64::new(0),
                    name: AtomicU32::new(0),
                    domain: AtomicU32::new(0),
                    category: AtomicU32::new(0),
                }
            }; MAX_RANGES],
            serial: AtomicU64::new(0),
        }
    }

    /// Keeps a range and gives its number, which is never 0; `None` where there is no room.
    pub fn begin(&self, range: &Range) -> Option<u64> {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed) + 1;
        for attempt in 0..ATTEMPTS {
            let place = serial.wrapping_add(attempt) % MAX_RANGES as u64;
            let slot = self.slots.get(usize::try_from(place).ok()?)?;
            let taken = slot.number.compare_exchange(0, BUSY, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_err() {
                continue;
            }
            slot.instance.store(range.instance, Ordering::Relaxed);
            slot.begun_ns.store(range.begun_ns, Ordering::Relaxed);
            slot.name.store(range.name.number(), Ordering::Relaxed);
            slot.domain.store(range.domain.number(), Ordering::Relaxed);
            slot.category.store(range.category, Ordering::Relaxed);
            let number = serial << SLOT_BITS | place;
            slot.number.store(number, Ordering::Release);
            return Some(number);
        }
        None
    }

    /// Takes a range out; `None` for a number that stands for no open range.
    pub fn end(&self, number: u64) -> Option<Range> {
        if number == 0 || number == BUSY {
            return None;
        }
        let slot = self.slots.get(usize::try_from(number % MAX_RANGES as u64).ok()?)?;
        slot.number.compare_exchange(number, BUSY, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let range = Range {
            instance: slot.instance.load(Ordering::Relaxed),
            begun_ns: slot.begun_ns.load(Ordering::Relaxed),
            name: NameId::from_number(slot.name.load(Ordering::Relaxed)),
            domain: NameId::from_number(slot.domain.load(Ordering::Relaxed)),
            category: slot.category.load(Ordering::Relaxed),
        };
        slot.number.store(0, Ordering::Release);
        Some(range)
    }
}

impl Default for Ranges {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(instance: u64) -> Range {
        Range { instance, name: NameId::from_number(7), ..Range::default() }
    }

    #[test]
    fn a_range_ends_once_in_any_order_and_on_any_thread() {
        let ranges = Box::new(Ranges::new());
        let first = ranges.begin(&range(1)).unwrap();
        let second = ranges.begin(&range(2)).unwrap();
        assert_eq!(ranges.end(first), Some(range(1)));
        assert_eq!(ranges.end(first), None);
        let other = std::thread::scope(|scope| scope.spawn(|| ranges.end(second)).join().unwrap());
        assert_eq!(other, Some(range(2)));
        for number in [0, 5, u64::MAX, u64::MAX - 1] {
            assert_eq!(ranges.end(number), None, "{number}");
        }
    }

    #[test]
    fn ranges_that_are_never_ended_fill_the_table_and_no_more() {
        let ranges = Box::new(Ranges::new());
        let begun: Vec<_> = (0..2 * MAX_RANGES as u64).map(|n| ranges.begin(&range(n))).collect();
        let kept: Vec<u64> = begun.iter().copied().flatten().collect();
        assert_eq!(kept.len(), MAX_RANGES);
        assert!(ranges.end(kept[9]).is_some());
        let again = (0..2 * MAX_RANGES as u64).find_map(|n| ranges.begin(&range(n)));
        assert_eq!(
            ranges.end(again.unwrap()).map(|range| range.name),
            Some(NameId::from_number(7))
        );
        assert_eq!(ranges.end(kept[9]), None, "the old number means nothing to the new range");
    }
}
