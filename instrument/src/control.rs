//! The runtime configuration, as this process sees it: is it listed, and for which functions?
//!
//! The file is looked at by its identity first and read only when that has changed. What cannot be
//! read, and what holds lines but not one of the protocol, leaves the last good plan in force; a
//! file without any entry lists nobody.

use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc;
use warpgauge_wire::limits::MAX_RUNTIME_CONFIG_BYTES;
use warpgauge_wire::runtime_config::{LineKind, lines};
use warpgauge_wire::{FunctionSet, plan_for};

use crate::descriptors::open_above_standard;

/// What one look at the file brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Nothing new.
    Unchanged,
    /// What to measure from now on, and what to say about the file.
    Plan(FunctionSet, Vec<String>),
    /// The last good plan stays in force, for this reason.
    Kept(String),
}

/// Watches the file for one process.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    pid: u32,
    seen: Option<Identity>,
    last_failure: Option<String>,
}

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Control {
    /// Watches `path` for `pid`, the process by its own pid namespace's number.
    #[must_use]
    pub fn new(path: PathBuf, pid: u32) -> Self {
        Self { path, pid, seen: None, last_failure: None }
    }

    /// Looks at the file. A failure that was told before is [`Look::Unchanged`].
    pub fn look(&mut self) -> Look {
        match self.look_or_fail() {
            Ok(look) => {
                self.last_failure = None;
                look
            }
            Err(error) => {
                // A file that comes back unchanged is to be read all the same.
                self.seen = None;
                let failure = format!("{}: {error}", self.path.display());
                if self.last_failure.as_ref() == Some(&failure) {
                    return Look::Unchanged;
                }
                self.last_failure = Some(failure.clone());
                Look::Kept(failure)
            }
        }
    }

    fn look_or_fail(&mut self) -> io::Result<Look> {
        let identity = Identity::of(&std::fs::metadata(&self.path)?);
        if self.seen == Some(identity) {
            return Ok(Look::Unchanged);
        }
        let file = read_bounded(&self.path, MAX_RUNTIME_CONFIG_BYTES)?;
        let look = self.judge(&file);
        // Taken before reading: a change in between shows as a new identity at the next look.
        self.seen = Some(identity);
        Ok(look)
    }

    fn judge(&self, file: &[u8]) -> Look {
        let path = self.path.display();
        let mut first_fault = None;
        let (mut faults, mut entries) = (0_u64, 0_u64);
        for line in lines(file) {
            match line.kind {
                LineKind::Entry(_) => entries += 1,
                LineKind::Malformed(fault) => {
                    faults += 1;
                    first_fault.get_or_insert((line.number, fault));
                }
                LineKind::Blank | LineKind::Comment => {}
            }
        }
        let mut notes = Vec::new();
        if let Some((number, fault)) = first_fault {
            if entries == 0 {
                return Look::Kept(format!(
                    "{path}:{number}: {fault}; nor is any other line a plan"
                ));
            }
            notes.push(format!("{path}:{number}: {fault}; lines skipped: {faults}"));
        }
        let entry = plan_for(file, self.pid);
        if let Some(unknown) =
            entry.as_ref().map(|entry| &entry.unknown).filter(|ids| !ids.is_empty())
        {
            let ids: Vec<String> = unknown.iter().map(ToString::to_string).collect();
            notes.push(format!("{path}: unknown function ids ignored: {}", ids.join(",")));
        }
        Look::Plan(entry.map_or(FunctionSet::EMPTY, |entry| entry.functions), notes)
    }
}

/// A whole regular file of at most `limit` bytes.
///
/// # Errors
/// What the system says; `InvalidInput` for a pipe or a device, `FileTooLarge` for a large file.
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let not_a_file = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    // Opening alone has effects on a pipe or a terminal.
    if !std::fs::metadata(path)?.is_file() {
        return Err(not_a_file());
    }
    // Somebody may have put one there in between.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = open_above_standard(OpenOptions::new().read(true).custom_flags(flags), path)?;
    if !file.metadata()?.is_file() {
        return Err(not_a_file());
    }
    let mut bytes = Vec::new();
    (&*file).take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let what = format!("larger than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;
    use warpgauge_wire::Function;

    use super::*;

    struct World {
        _folder: TempDir,
        path: PathBuf,
        control: Control,
    }

    impl World {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("runtime.conf");
            Self { _folder: folder, path: path.clone(), control: Control::new(path, 42) }
        }

        #[allow(clippy::disallowed_methods, reason = "an operator's editor is not atomic either")]
        fn write(&self, text: &[u8]) {
            fs::write(&self.path, text).unwrap();
        }
    }

    fn plan(functions: &[Function]) -> Look {
        Look::Plan(functions.iter().copied().collect(), Vec::new())
    }

    #[test]
    fn a_file_is_read_again_when_it_has_changed() {
        let mut world = World::new();
        world.write(b"42:1\n");
        assert_eq!(world.control.look(), plan(&[Function::Occupancy]));
        assert_eq!(world.control.look(), Look::Unchanged);
        world.write(b"42:0,1\n");
        assert_eq!(world.control.look(), plan(&[Function::Instructions, Function::Occupancy]));
        world.write(b"");
        assert_eq!(world.control.look(), plan(&[]), "an empty file lists nobody");
        world.write(b"# only a comment\n43:1\n");
        assert_eq!(world.control.look(), plan(&[]));
    }

    #[test]
    fn what_cannot_be_read_keeps_the_last_plan_and_is_told_once() {
        let mut world = World::new();
        assert!(matches!(world.control.look(), Look::Kept(_)), "missing");
        assert_eq!(world.control.look(), Look::Unchanged);
        world.write(b"42:1\n");
        assert_eq!(world.control.look(), plan(&[Function::Occupancy]));
        fs::remove_file(&world.path).unwrap();
        assert!(matches!(world.control.look(), Look::Kept(_)));
        fs::create_dir(&world.path).unwrap();
        assert!(matches!(world.control.look(), Look::Kept(why) if why.contains("not a regular")));
        fs::remove_dir(&world.path).unwrap();
        world.write(&[0xff; 300]);
        assert!(matches!(world.control.look(), Look::Kept(why) if why.contains(":1:")));
        assert_eq!(world.control.look(), Look::Unchanged);
    }

    #[test]
    fn a_giant_file_is_refused_by_its_size() {
        let mut world = World::new();
        fs::File::create(&world.path).unwrap().set_len(MAX_RUNTIME_CONFIG_BYTES + 1).unwrap();
        assert!(matches!(world.control.look(), Look::Kept(why) if why.contains("larger than")));
    }

    #[test]
    fn malformed_lines_and_unknown_ids_are_named_while_the_rest_holds() {
        let mut world = World::new();
        world.write(b"42:1,9\nnonsense\n");
        let Look::Plan(functions, notes) = world.control.look() else { panic!("no plan") };
        assert_eq!(functions.to_string(), "1");
        assert_eq!(notes.len(), 2);
        assert!(notes[0].contains(":2:") && notes[1].contains('9'), "{notes:?}");
    }
}
