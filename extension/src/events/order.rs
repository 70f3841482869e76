//! In which order the files of a session are read.

use std::path::{Path, PathBuf};

/// What a file's name says of its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// A log of all events.
    Whole,
    /// `.device.` of GPU Flight, `.kernel.` of gpumon.
    Device,
    /// `.scope.`
    Scope,
    /// `.system.`
    System,
}

impl Channel {
    /// The channel that the file's name ends with, behind numbers of rotation and packing:
    /// `train.device.log`, `train.scope.3.log.gz`.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        parts(path).0
    }
}

/// Puts the device channel first, then scopes, then the system; files of one channel by their
/// number, as `N` of `<base>.<channel>.N.log` rises. Other files stay in the order in which they
/// were given.
pub fn in_reading_order(paths: &mut [PathBuf]) {
    paths.sort_by_key(|path| parts(path));
}

fn parts(path: &Path) -> (Channel, u64) {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let mut number = 0;
    for part in name.rsplit('.') {
        match part {
            "device" | "kernel" => return (Channel::Device, number),
            "scope" => return (Channel::Scope, number),
            "system" => return (Channel::System, number),
            "log" | "ndjson" | "jsonl" | "gz" | "zst" => {}
            _ => match part.parse() {
                Ok(rotation) => number = rotation,
                Err(_) => break,
            },
        }
    }
    (Channel::Whole, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_comes_first_and_numbers_count_as_numbers() {
        let names = [
            "a.system.log",
            "a.scope.10.log.gz",
            "a.scope.2.log",
            "b.log",
            "a.device.log",
            "a.log",
        ];
        let mut paths = names.map(PathBuf::from);
        in_reading_order(&mut paths);
        let expected = [
            "b.log",
            "a.log",
            "a.device.log",
            "a.scope.2.log",
            "a.scope.10.log.gz",
            "a.system.log",
        ];
        assert_eq!(paths, expected.map(PathBuf::from));
        assert_eq!(Channel::of(Path::new("x/scope.d/device_17.log")), Channel::Whole);
        assert_eq!(Channel::of(Path::new("gpufl_basic.kernel.0.log")), Channel::Device);
    }
}
