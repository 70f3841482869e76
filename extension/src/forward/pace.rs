//! How fast and how much: bytes a second, bytes a pass.

use std::time::{Duration, Instant};

/// What may still go, and when.
#[derive(Debug)]
pub(super) struct Pace {
    /// Bytes a second.
    rate: u64,
    /// Bytes a pass.
    share: u64,
    spent: u64,
    /// When what was sent is paid for.
    free_at: Option<Instant>,
}

impl Pace {
    /// `rate` bytes a second, `share` bytes in all.
    pub(super) fn new(rate: u64, share: u64) -> Self {
        Self { rate: rate.max(1), share, spent: 0, free_at: None }
    }

    /// When `bytes` may go; `None` once the share is spent. The first request always goes: one that
    /// is larger than the whole share must not wait for ever.
    pub(super) fn may_go_at(&self, bytes: usize, now: Instant) -> Option<Instant> {
        if self.spent > 0 && self.spent.saturating_add(bytes as u64) > self.share {
            return None;
        }
        Some(self.free_at.map_or(now, |free_at| free_at.max(now)))
    }

    /// `bytes` went at `now`.
    pub(super) fn spend(&mut self, bytes: usize, now: Instant) {
        self.spent = self.spent.saturating_add(bytes as u64);
        let nanos = u128::from(bytes as u64) * 1_000_000_000 / u128::from(self.rate);
        let price = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let begin = self.free_at.map_or(now, |free_at| free_at.max(now));
        self.free_at = begin.checked_add(price).or(self.free_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_paid_for_before_more_goes() {
        let now = Instant::now();
        let mut pace = Pace::new(1_000, 10_000);
        assert_eq!(pace.may_go_at(500, now), Some(now));
        pace.spend(500, now);
        assert_eq!(pace.may_go_at(1, now), Some(now + Duration::from_millis(500)));
        pace.spend(250, now);
        assert_eq!(pace.may_go_at(1, now), Some(now + Duration::from_millis(750)));
        let later = now + Duration::from_secs(9);
        assert_eq!(pace.may_go_at(1, later), Some(later), "idle time is not saved up");
        pace.spend(1_000, later);
        assert_eq!(pace.may_go_at(1, later), Some(later + Duration::from_secs(1)));
    }

    #[test]
    fn a_pass_sends_its_share_and_at_least_one_request() {
        let now = Instant::now();
        let mut pace = Pace::new(u64::MAX, 1_000);
        assert!(pace.may_go_at(5_000, now).is_some(), "the first goes however large it is");
        pace.spend(600, now);
        assert!(pace.may_go_at(400, now).is_some());
        assert_eq!(pace.may_go_at(401, now), None);
    }
}
