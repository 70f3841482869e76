//! How often a benchmark measures, and on what.

use std::process::Command;
use std::time::Instant;

use tempfile::TempDir;

/// What the command line asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// `--json`
    pub(crate) json: bool,
    /// Cargo gives `--bench` when figures are wanted. Without it (`cargo test --benches`) one
    /// round over a hundredth of the work shows that the benchmark runs, and its figures mean
    /// nothing.
    pub(crate) in_full: bool,
    rounds: Option<usize>,
}

impl Asked {
    pub(crate) fn from_arguments() -> Self {
        let arguments: Vec<_> = std::env::args().collect();
        let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
        let rounds = arguments.iter().skip_while(|argument| *argument != "--rounds").nth(1);
        Self {
            json: has("--json"),
            in_full: has("--bench"),
            rounds: rounds.map(|number| number.parse().unwrap()),
        }
    }

    /// `--rounds N`, or the benchmark's own number.
    pub(crate) fn rounds(&self, usual: usize) -> usize {
        if self.in_full { self.rounds.unwrap_or(usual).max(1) } else { 1 }
    }

    pub(crate) fn size(&self, full: usize) -> usize {
        if self.in_full { full } else { full.div_ceil(100) }
    }
}

/// A new empty folder under `target/tmp`: on the disk, where the state folder belongs, and not on
/// the tmpfs that the system's own folder for temporary files may be.
pub(crate) fn place() -> TempDir {
    let place = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Puts each folder below into a part of the disk of its own. Without it, making a world right
    // after another was removed takes ext4 without a journal a minute, for it passes over lately
    // removed inodes one by one. Only the preparation gets faster, so other file systems may refuse.
    let _ = Command::new("chattr").arg("+T").arg(place.path()).output();
    place
}

pub(crate) fn milliseconds(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64() * 1e3
}
