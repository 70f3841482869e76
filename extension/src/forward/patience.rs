//! How long to wait before a request is tried again.

use std::time::{Duration, SystemTime};

/// How often a request is tried in one pass.
const ATTEMPTS: u32 = 4;

/// Before the second attempt; doubled before each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The attempts at one request.
#[derive(Debug, Default)]
pub(super) struct Patience {
    failed: u32,
}

impl Patience {
    /// How long to wait after one more failure; `None` when this pass has tried often enough. The
    /// backend's own wish is met, however long it is.
    pub(super) fn pause(&mut self, asked: Option<Duration>) -> Option<Duration> {
        self.failed += 1;
        if self.failed >= ATTEMPTS {
            return None;
        }
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.failed - 1);
        Some(asked.unwrap_or_default().max(pause + jitter(pause)))
    }
}

/// Up to a quarter more, so that the passes of many machines, all begun at the full minute, come
/// apart.
fn jitter(pause: Duration) -> Duration {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    pause.mul_f64(f64::from(since_epoch.subsec_nanos() % 1_000) / 4_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pause_is_longer_until_patience_ends() {
        let mut patience = Patience::default();
        let pauses: Vec<_> = std::iter::from_fn(|| patience.pause(None)).collect();
        assert_eq!(pauses.len(), ATTEMPTS as usize - 1);
        assert!(pauses.is_sorted(), "{pauses:?}");
        assert!(pauses[0] >= FIRST_PAUSE && pauses[0] <= FIRST_PAUSE.mul_f64(1.25), "{pauses:?}");
    }

    #[test]
    fn the_backends_wish_is_met() {
        let wish = Duration::from_secs(120);
        assert_eq!(Patience::default().pause(Some(wish)), Some(wish));
        assert!(Patience::default().pause(Some(Duration::ZERO)).unwrap() >= FIRST_PAUSE);
    }
}
