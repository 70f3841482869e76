//! Waiting, with a bound that only a hang meets.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Far longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(5);

/// Asks again and again until there is an answer.
///
/// # Errors
/// What `question` failed with, or that there was no answer to `what` in [`PATIENCE`].
pub fn eventually<T>(what: &str, mut question: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = question()? {
            return Ok(answer);
        }
        if Instant::now() >= deadline {
            bail!("waited {PATIENCE:?} in vain: {what}");
        }
        std::thread::sleep(PAUSE);
    }
}
