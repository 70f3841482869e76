//! How long which kinds of work ran at the same time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::intervals::Interval;
use super::role::Work;

/// Nanoseconds for each set of kinds that ran at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Together {
    times: [i128; Work::SETS],
}

impl Together {
    /// Adds what ran. Each list is in the order of time and without overlaps.
    ///
    /// Goes through all starts and ends in their order: between two of them the set does not change.
    pub(super) fn add(&mut self, lists: &[(Work, Vec<Interval>)]) {
        let mut ahead = BinaryHeap::new();
        let mut lists: Vec<_> = lists.iter().map(|(work, list)| (*work, list.iter())).collect();
        for (place, (_, list)) in lists.iter_mut().enumerate() {
            ahead.extend(list.next().map(|first| Reverse((first.start, place, Some(first.end)))));
        }
        let (mut running, mut now) = ([0_u32; Work::ALL.len()], 0);
        while let Some(Reverse((time, place, end))) = ahead.pop() {
            if let Some(sum) = self.times.get_mut(set(&running)) {
                *sum += i128::from(time) - i128::from(now);
            }
            now = time;
            let Some((work, list)) = lists.get_mut(place) else { continue };
            let Some(count) = running.get_mut(work.bit().ilog2() as usize) else { continue };
            match end {
                Some(end) => {
                    *count += 1;
                    ahead.push(Reverse((end, place, None)));
                }
                None => {
                    *count -= 1;
                    let next = list.next();
                    ahead.extend(next.map(|next| Reverse((next.start, place, Some(next.end)))));
                }
            }
        }
    }

    /// Time in which the set of what ran is one of those.
    pub(super) fn time(&self, is_one: impl Fn(Running) -> bool) -> i128 {
        let sets = self.times.iter().enumerate().skip(1);
        sets.filter(|(set, _)| is_one(Running(*set))).map(|(_, time)| time).sum()
    }
}

fn set(running: &[u32]) -> usize {
    let kinds = Work::ALL.iter().zip(running);
    kinds.filter(|(_, count)| **count > 0).map(|(work, _)| work.bit()).sum()
}

/// A set of kinds of work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Running(usize);

impl Running {
    pub(super) fn has(self, work: Work) -> bool {
        self.0 & work.bit() != 0
    }

    pub(super) fn is_busy(self) -> bool {
        Work::ALL.into_iter().any(|work| work.is_busy() && self.has(work))
    }
}
