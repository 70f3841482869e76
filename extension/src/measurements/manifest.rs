//! Which files a window has counted, and which entries it has refused: the lists that are committed
//! together with the window's numbers, so that no kill can make any of them count twice or not at
//! all.
//!
//! ```text
//! <inode> <size> <modified ns> <name>\n        a counted file; its name is printable ASCII
//! <name>\0                                     a refused entry; its name is any bytes but NUL
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
pub fn render<'f>(files: impl IntoIterator<Item = &'f Counted>) -> Vec<u8> {
    let files = files.into_iter();
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
    let name = parts.next().filter(|name| is_entry(name))?;
    Some(Counted { name: name.into(), inode, size, modified_ns })
}

/// The names of refused entries.
#[must_use]
pub fn render_refused(names: &[Box<[u8]>]) -> Vec<u8> {
    names.iter().flat_map(|name| name.iter().copied().chain([0])).collect()
}

/// Reads the names of refused entries. What cannot be the name of an entry of a folder is left out.
#[must_use]
pub fn parse_refused(text: &[u8]) -> Vec<Box<[u8]>> {
    let names = text.split(|&byte| byte == 0).filter(|name| is_entry(name));
    names.map(Into::into).collect()
}

/// Whether a name stays inside the folder.
fn is_entry(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/')
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
        fn what_is_written_reads_back(inode: u64, size: u64, modified_ns: u64, name in "[1-9][!-.0-~]{0,40}") {
            let files = vec![Counted { name: name.into_bytes().into(), inode, size, modified_ns }; 2];
            prop_assert_eq!(parse(&render(files.iter())), files);
        }

        #[test]
        fn refused_names_read_back(names in proptest::collection::vec("[^/\0]{3,20}", 0..5)) {
            let names: Vec<Box<[u8]>> = names.into_iter().map(|name| name.into_bytes().into()).collect();
            prop_assert_eq!(parse_refused(&render_refused(&names)), names);
        }

        #[test]
        fn no_text_panics_and_no_name_leaves_the_folder(text: Vec<u8>) {
            prop_assert!(parse(&text).iter().all(|file| is_entry(&file.name)));
            prop_assert!(parse_refused(&text).iter().all(|name| is_entry(name)));
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
