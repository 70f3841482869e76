//! When to stop: an interrupt, a closed pipe, or the time that was asked for.

use std::io::{self, stdout};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Hears SIGINT and SIGTERM instead of being ended by them, so that what was read is shown.
pub(super) struct Stop {
    signals: SignalFd,
    deadline: Option<Instant>,
}

impl Stop {
    /// From now on; after so many seconds at the latest.
    pub(super) fn after(seconds: Option<f64>) -> io::Result<Self> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        signals.thread_block()?;
        let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?;
        // A time beyond all times is none.
        let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let deadline = duration.and_then(|duration| Instant::now().checked_add(duration));
        Ok(Self { signals, deadline })
    }

    /// Waits, and says whether it is time to stop. Standard output is watched, too: who follows a
    /// silent log would never notice that nobody reads.
    pub(super) fn is_due(&self, wait: Duration) -> bool {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let wait = left.map_or(wait, |left| wait.min(left));
        let out = stdout();
        let mut both = [
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(out.as_fd(), PollFlags::empty()),
        ];
        let milliseconds = u16::try_from(wait.as_millis()).unwrap_or(u16::MAX);
        // A signal that is not ours may cut the wait short.
        let ready = poll(&mut both, PollTimeout::from(milliseconds)).unwrap_or(0);
        let is_over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        ready > 0 || is_over
    }
}
