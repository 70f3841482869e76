//! A log that is written and rotated, and a consumer that follows it.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;
use warpgauge::follow::{Flow, Follower, Rule, Summary};

/// How a log is rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rotation {
    /// `x.log` becomes `x.log.1`, that `x.log.2`.
    Rename,
    /// `x.log` is copied to `x.log.1` and cut off.
    CopyTruncate,
    /// `x.0.log`, then `x.1.log`.
    NumberedUp,
    /// `x.log` becomes `x.1.log`, that `x.2.log`.
    NumberedDown,
    /// As `Rename`, and compressed at once.
    Compressed,
    /// As `CopyTruncate`, and compressed at the next turn.
    CopiedThenCompressed,
}

impl Rotation {
    pub(crate) const ALL: [Self; 6] = [
        Self::Rename,
        Self::CopyTruncate,
        Self::NumberedUp,
        Self::NumberedDown,
        Self::Compressed,
        Self::CopiedThenCompressed,
    ];
}

/// A folder with one log.
pub(crate) struct Log {
    folder: TempDir,
    rotation: Rotation,
    turns: usize,
    file: File,
}

impl Log {
    pub(crate) fn new(rotation: Rotation) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("logs")).unwrap();
        let path = folder.path().join("logs").join(match rotation {
            Rotation::NumberedUp => "x.0.log",
            _ => "x.log",
        });
        let file = append_to(path);
        Self { folder, rotation, turns: 0, file }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("logs").join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.file.write_all(bytes.as_ref()).unwrap();
    }

    /// The numbers and suffixes that this way of rotating gives to older files.
    fn older(&self, age: usize) -> PathBuf {
        match self.rotation {
            Rotation::NumberedDown => self.path(&format!("x.{age}.log")),
            _ => self.path(&format!("x.log.{age}")),
        }
    }

    fn shift(&self) {
        for age in (1..=self.turns).rev() {
            for packed in ["", ".gz"] {
                let name = |age| PathBuf::from(format!("{}{packed}", self.older(age).display()));
                if name(age).exists() {
                    fs::rename(name(age), name(age + 1)).unwrap();
                }
            }
        }
    }

    pub(crate) fn rotate(&mut self) {
        let current = self.path("x.log");
        self.shift();
        self.turns += 1;
        match self.rotation {
            Rotation::NumberedUp => {
                self.file = append_to(self.path(&format!("x.{}.log", self.turns)))
            }
            Rotation::Rename | Rotation::NumberedDown => {
                fs::rename(&current, self.older(1)).unwrap();
                self.file = append_to(current);
            }
            Rotation::Compressed => {
                fs::rename(&current, self.older(1)).unwrap();
                pack(&self.older(1));
                self.file = append_to(current);
            }
            Rotation::CopyTruncate => self.copy_and_cut_off(),
            Rotation::CopiedThenCompressed => {
                if self.older(2).exists() {
                    pack(&self.older(2));
                }
                self.copy_and_cut_off();
            }
        }
    }

    fn copy_and_cut_off(&mut self) {
        fs::copy(self.path("x.log"), self.older(1)).unwrap();
        self.file.set_len(0).unwrap();
    }

    pub(crate) fn follower(&self) -> Follower {
        let pattern = format!("{}/logs/x*.log", self.folder.path().display());
        let mut follower =
            Follower::new(&self.state(), "test", vec![Rule::new(&pattern).unwrap()]).unwrap();
        follower.limits.patience = Duration::ZERO;
        follower
    }

    /// One pass that reads everything and keeps it.
    pub(crate) fn read(&self) -> (Vec<String>, Summary) {
        let mut follower = self.follower();
        let (mut lines, mut summary) = read_once(&mut follower);
        while summary.has_more {
            let (more, next) = read_once(&mut follower);
            lines.extend(more);
            summary = next;
        }
        follower.commit().unwrap();
        (lines, summary)
    }
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

pub(crate) fn append_to(path: PathBuf) -> File {
    OpenOptions::new().append(true).create(true).open(path).unwrap()
}

/// Compresses a file as gzip does: under a new name, then the old one goes.
pub(crate) fn pack(path: &PathBuf) {
    let packed = File::create(format!("{}.gz", path.display())).unwrap();
    let mut encoder = GzEncoder::new(packed, Compression::fast());
    encoder.write_all(&fs::read(path).unwrap()).unwrap();
    encoder.finish().unwrap();
    fs::remove_file(path).unwrap();
}
