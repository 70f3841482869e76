//! A log that is rotated in one of the usual ways.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;

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

/// One log and what rotation has made of it.
pub(crate) struct RotatedLog {
    folder: PathBuf,
    stem: String,
    rotation: Rotation,
    turns: usize,
    file: File,
}

impl RotatedLog {
    /// `<folder>/<stem>.log`, or `<stem>.0.log` where numbers rise.
    pub(crate) fn new(folder: PathBuf, stem: &str, rotation: Rotation) -> Self {
        let path = folder.join(match rotation {
            Rotation::NumberedUp => format!("{stem}.0.log"),
            _ => format!("{stem}.log"),
        });
        let (stem, file) = (stem.to_owned(), append_to(path));
        Self { folder, stem, rotation, turns: 0, file }
    }

    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.file.write_all(bytes.as_ref()).unwrap();
    }

    fn current(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.stem))
    }

    /// The name that this way of rotating gives to an older file.
    fn older(&self, age: usize) -> PathBuf {
        self.folder.join(match self.rotation {
            Rotation::NumberedDown => format!("{}.{age}.log", self.stem),
            _ => format!("{}.log.{age}", self.stem),
        })
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
        let current = self.current();
        if self.rotation != Rotation::NumberedUp {
            self.shift();
        }
        self.turns += 1;
        match self.rotation {
            Rotation::NumberedUp => {
                let next = format!("{}.{}.log", self.stem, self.turns);
                self.file = append_to(self.folder.join(next));
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
        fs::copy(self.current(), self.older(1)).unwrap();
        self.file.set_len(0).unwrap();
    }
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
