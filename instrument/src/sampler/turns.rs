//! Whose turn the next window is.
//!
//! Wished for together, a frequent shape that is due would always be launched before a rare one that
//! was never measured. So the new ones are wished for alone first. Some of them will never have a
//! window: they were launched once, or are only launched in ways that windows avoid. When none came
//! for as long as the patience lasts, or the one that came was refused, the due ones are wished for
//! as well, for the next window, then for the next two, four, and so on.

use std::time::{Duration, Instant};

/// How long new shapes are wished for alone at least: a training step is mostly shorter.
const LEAST_PATIENCE: Duration = Duration::from_secs(2);

/// The same in shortest intervals between windows.
const PATIENCE: u32 = 8;

/// Most windows in a row for which all are wished for.
const MOST_REST: u32 = 64;

/// Decides between the shapes that were never measured and the others.
#[derive(Debug)]
pub(super) struct Turns {
    patience: Duration,
    /// Since when new shapes are wished for alone.
    alone_since: Option<Instant>,
    /// How many windows are still for all, and how many there were the last time.
    rest: u32,
    last_rest: u32,
}

impl Turns {
    pub(super) fn new(interval: Duration) -> Self {
        let patience = interval.saturating_mul(PATIENCE).max(LEAST_PATIENCE);
        Self { patience, alone_since: None, rest: 0, last_rest: 0 }
    }

    /// Whether the next window is for new shapes alone, given that there are new and due ones.
    pub(super) fn is_for_the_new_alone(&mut self, now: Instant) -> bool {
        if self.rest > 0 {
            return false;
        }
        let since = *self.alone_since.get_or_insert(now);
        if now.duration_since(since) >= self.patience {
            self.give_way();
        }
        self.rest == 0
    }

    /// A window is over, and measured something or not.
    pub(super) fn over(&mut self, has_measured: bool) {
        if self.alone_since.take().is_none() {
            self.rest = self.rest.saturating_sub(1);
        } else if has_measured {
            self.last_rest = 0;
        } else {
            self.give_way();
        }
    }

    fn give_way(&mut self) {
        self.alone_since = None;
        self.last_rest = (2 * self.last_rest).clamp(1, MOST_REST);
        self.rest = self.last_rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn new_shapes_are_alone_until_their_patience_is_over_and_again_ever_more_rarely() {
        let mut now = Instant::now();
        let mut turns = Turns::new(SECOND / 100);
        let mut windows_for_all = Vec::new();
        for _ in 0..9 {
            assert!(turns.is_for_the_new_alone(now));
            now += LEAST_PATIENCE;
            let mut windows = 0;
            while !turns.is_for_the_new_alone(now) {
                turns.over(true);
                windows += 1;
            }
            turns.alone_since = None;
            windows_for_all.push(windows);
        }
        assert_eq!(windows_for_all, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
    }

    #[test]
    fn a_window_of_a_new_shape_renews_the_patience_and_a_refused_one_ends_it() {
        let now = Instant::now();
        let mut turns = Turns::new(SECOND);
        for seconds in [0, 7, 14] {
            assert!(turns.is_for_the_new_alone(now + seconds * SECOND), "{seconds}");
            turns.over(true);
        }
        assert!(turns.is_for_the_new_alone(now));
        turns.over(false);
        assert!(!turns.is_for_the_new_alone(now));
        turns.over(true);
        assert!(turns.is_for_the_new_alone(now));
    }
}
