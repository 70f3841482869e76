//! A log that is rotated, in a folder of its own, and a consumer that follows it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use warpgauge::follow::{Flow, Follower, Rule, Summary};

use crate::rotated_log::RotatedLog;
pub(crate) use crate::rotated_log::{Rotation, append_to, pack};

/// A folder with one log.
pub(crate) struct Log {
    folder: TempDir,
    log: RotatedLog,
}

impl Log {
    pub(crate) fn new(rotation: Rotation) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        std::fs::create_dir(&logs).unwrap();
        Self { log: RotatedLog::new(logs, "x", rotation), folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("logs").join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.log.write(bytes);
    }

    pub(crate) fn rotate(&mut self) {
        self.log.rotate();
    }

    pub(crate) fn follower(&self) -> Follower {
        follower(self.folder.path())
    }

    /// One pass that reads everything and keeps it.
    pub(crate) fn read(&self) -> (Vec<String>, Summary) {
        read(self.folder.path())
    }

    /// What writes the log, and the folder that both are in.
    pub(crate) fn apart(&mut self) -> (&mut RotatedLog, &Path) {
        (&mut self.log, self.folder.path())
    }
}

fn follower(folder: &Path) -> Follower {
    let pattern = format!("{}/logs/x*.log", folder.display());
    let mut follower =
        Follower::new(&folder.join("state"), "test", vec![Rule::new(&pattern).unwrap()]).unwrap();
    follower.limits.patience = Duration::ZERO;
    follower
}

/// One pass that reads everything and keeps it.
pub(crate) fn read(folder: &Path) -> (Vec<String>, Summary) {
    let mut follower = follower(folder);
    let (mut lines, mut summary) = read_once(&mut follower);
    while summary.has_more {
        let (more, next) = read_once(&mut follower);
        lines.extend(more);
        summary = next;
    }
    follower.commit().unwrap();
    (lines, summary)
}

pub(crate) fn read_once(follower: &mut Follower) -> (Vec<String>, Summary) {
    let mut lines = vec![];
    let summary = follower.read(&mut |_, line| {
        let mark = if line.too_long { " too long" } else { "" };
        lines.push(String::from_utf8_lossy(line.bytes).into_owned() + mark);
        Flow::Next
    });
    (lines, summary)
}
