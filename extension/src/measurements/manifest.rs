//! Which files a window has counted: the list that is committed together with the window's
//! numbers, so that no kill can make a file count twice or not at all.
//!
//! ```text
//! <inode> <size> <modified ns> <name>\n        one line a file; names are printable ASCII
//! ```

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::folder::{Folder, Identity};

/// How many names a worker takes at a time.
const BATCH: usize = 128;

/// Bytes of a line, for nothing but how much memory to ask for at once.
const TYPICAL_LINE_BYTES: usize = 80;

/// A file that was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Its name in the folder.
    pub name: Box<[u8]>,
    /// Which content of that name.
    pub inode: u64,
    /// Its bytes.
    pub size: u64,
    /// Its last change, nanoseconds since the epoch.
    pub modified_ns: u64,
}

impl Counted {
    fn is(&self, identity: &Identity) -> bool {
        (self.inode, self.size, self.modified_ns)
            == (identity.inode, identity.size, identity.modified_ns)
    }
}

/// The manifest as text.
#[must_use]
pub fn render<'f>(files: impl Iterator<Item = &'f Counted>) -> Vec<u8> {
    let mut out = Vec::with_capacity(files.size_hint().0 * TYPICAL_LINE_BYTES);
    for Counted { name, inode, size, modified_ns } in files {
        // Writing to memory does not fail.
        let _ = write!(out, "{inode} {size} {modified_ns} ");
        out.extend_from_slice(name);
        out.push(b'\n');
    }
    out
}

/// Reads a manifest. Lines that do not fit are left out: they cannot have been written here.
#[must_use]
pub fn parse(text: &[u8]) -> Vec<Counted> {
    text.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Counted> {
    let mut parts = line.splitn(4, |&byte| byte == b' ');
    let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
    let (inode, size, modified_ns) = (number()?, number()?, number()?);
    let name = parts.next().filter(|name| !name.is_empty() && !name.contains(&b'/'))?;
    Some(Counted { name: name.into(), inode, size, modified_ns })
}

/// Files that were counted and still stand, because they could not be removed.
#[derive(Debug, Default)]
pub struct StillThere {
    by_name: HashMap<Box<[u8]>, Counted>,
}

impl StillThere {
    /// Whether this content of this name has been counted.
    #[must_use]
    pub fn contains(&self, name: &[u8], identity: &Identity) -> bool {
        self.by_name.get(name).is_some_and(|counted| counted.is(identity))
    }

    /// Remembers more of them.
    pub fn extend(&mut self, files: impl IntoIterator<Item = Counted>) {
        self.by_name.extend(files.into_iter().map(|file| (file.name.clone(), file)));
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Counted> {
        self.by_name.values()
    }
}

/// Removes what was counted, with `workers` threads, and returns what still stands: files that the
/// system refuses to remove. With `verify`, a name whose content is another one by now is left
/// alone: needed after a crash, when time has passed since the file was counted.
#[must_use]
pub fn remove(folder: &Folder, files: &[Counted], workers: usize, verify: bool) -> Vec<Counted> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut left = Vec::new();
        loop {
            let start = next.fetch_add(BATCH, Ordering::Relaxed);
            let Some(batch) = files.get(start..files.len().min(start + BATCH)) else { break };
            if batch.is_empty() {
                break;
            }
            left.extend(batch.iter().filter(|file| !remove_one(folder, file, verify)).cloned());
        }
        left
    };
    if workers <= 1 || files.len() <= BATCH {
        return work();
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut left = work();
        for other in others {
            // A worker that died removed nothing that is not gone; what it held is seen again.
            left.extend(other.join().unwrap_or_default());
        }
        left
    })
}

/// Whether the counted content is gone.
fn remove_one(folder: &Folder, file: &Counted, verify: bool) -> bool {
    if verify {
        match folder.stat(&file.name) {
            Ok((identity, _)) if file.is(&identity) => {}
            _ => return true,
        }
    }
    folder.remove(&file.name).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(inode: u64, size: u64, modified_ns: u64, name in "[!-.0-~]{1,40}") {
            let files = vec![Counted { name: name.into_bytes().into(), inode, size, modified_ns }; 2];
            prop_assert_eq!(parse(&render(files.iter())), files);
        }

        #[test]
        fn no_text_panics_and_no_name_leaves_the_folder(text: Vec<u8>) {
            prop_assert!(parse(&text).iter().all(|file| !file.name.contains(&b'/')));
        }
    }

    #[test]
    fn another_content_of_a_counted_name_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        std::fs::File::create(place.path().join("1-1-1")).unwrap();
        let (identity, _) = folder.stat(b"1-1-1").unwrap();
        let counted = |size| Counted {
            name: (*b"1-1-1").into(),
            inode: identity.inode,
            size,
            modified_ns: identity.modified_ns,
        };
        assert_eq!(remove(&folder, &[counted(99)], 2, true), []);
        assert!(place.path().join("1-1-1").exists());
        assert_eq!(remove(&folder, &[counted(0)], 2, true), []);
        assert!(!place.path().join("1-1-1").exists());
    }
}
