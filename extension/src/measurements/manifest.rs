//! Which files a window has counted, and which entries it has refused: the lists that are committed
//! together with the window's numbers, so that no kill can make any of them count twice or not at
//! all.
//!
//! ```text
//! <inode> <size> <modified ns> <name>\n        a counted file; its name is printable ASCII
//! <name>\0                                     a refused entry; its name is any bytes but NUL
//! /<folder>\n, /<folder>\0                     what follows lies in this container folder
//! ```
//!
//! What comes before the first folder lies in the top one. No entry has a `/` in its name.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::folder::{Folder, Identity};

/// How many names a worker takes at a time.
const BATCH: usize = 128;

/// Bytes of a line, for nothing but how much memory to ask for at once.
const TYPICAL_LINE_BYTES: usize = 80;

/// Entries by the folder that they lie in: `None` is the top one, else the container folder's name.
pub type ByFolder<T> = BTreeMap<Option<String>, Vec<T>>;

/// What still stands, by folder in the same way.
pub type StillThereByFolder = BTreeMap<Option<String>, StillThere>;

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

/// The manifest as text. The folders may come in any order, also more than once.
#[must_use]
pub fn render<'f, Files>(folders: impl IntoIterator<Item = (&'f Option<String>, Files)>) -> Vec<u8>
where
    Files: IntoIterator<Item = &'f Counted>,
{
    let mut out = Vec::new();
    for (folder, files) in top_first(folders) {
        section(&mut out, folder, b'\n');
        let files = files.into_iter();
        out.reserve(files.size_hint().0 * TYPICAL_LINE_BYTES);
        for Counted { name, inode, size, modified_ns } in files {
            // Writing to memory does not fail.
            let _ = write!(out, "{inode} {size} {modified_ns} ");
            out.extend_from_slice(name);
            out.push(b'\n');
        }
    }
    out
}

/// Reads a manifest. Lines that do not fit are left out: they cannot have been written here.
#[must_use]
pub fn parse(text: &[u8]) -> ByFolder<Counted> {
    parse_sections(text, b'\n', parse_line)
}

/// What lies in the top folder comes first, since nothing leads back to it.
fn top_first<'f, T>(
    folders: impl IntoIterator<Item = (&'f Option<String>, T)>,
) -> Vec<(&'f Option<String>, T)> {
    let mut folders: Vec<_> = folders.into_iter().collect();
    folders.sort_by_key(|(folder, _)| *folder);
    folders
}

fn section(out: &mut Vec<u8>, folder: &Option<String>, end: u8) {
    if let Some(folder) = folder {
        out.push(b'/');
        out.extend_from_slice(folder.as_bytes());
        out.push(end);
    }
}

fn parse_sections<T>(text: &[u8], end: u8, entry: impl Fn(&[u8]) -> Option<T>) -> ByFolder<T> {
    let mut folders = ByFolder::new();
    // `None` while nobody can tell which folder is meant.
    let mut current = Some(None);
    for part in text.split(|&byte| byte == end) {
        if let Some(folder) = part.strip_prefix(b"/") {
            let name = std::str::from_utf8(folder).ok().filter(|name| is_entry(name.as_bytes()));
            current = name.map(|name| Some(name.to_owned()));
        } else if let (Some(folder), Some(entry)) = (&current, entry(part)) {
            folders.entry(folder.clone()).or_default().push(entry);
        }
    }
    folders
}

fn parse_line(line: &[u8]) -> Option<Counted> {
    let mut parts = line.splitn(4, |&byte| byte == b' ');
    let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
    let (inode, size, modified_ns) = (number()?, number()?, number()?);
    let name = parts.next().filter(|name| is_entry(name))?;
    Some(Counted { name: name.into(), inode, size, modified_ns })
}

/// The names of refused entries, by folder as in [`render`].
#[must_use]
pub fn render_refused<'f>(
    folders: impl IntoIterator<Item = (&'f Option<String>, &'f Vec<Box<[u8]>>)>,
) -> Vec<u8> {
    let mut out = Vec::new();
    for (folder, names) in top_first(folders) {
        section(&mut out, folder, 0);
        for name in names {
            out.extend_from_slice(name);
            out.push(0);
        }
    }
    out
}

/// Reads the names of refused entries. What cannot be the name of an entry of a folder is left out.
#[must_use]
pub fn parse_refused(text: &[u8]) -> ByFolder<Box<[u8]>> {
    parse_sections(text, 0, |name| is_entry(name).then(|| name.into()))
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

    #[test]
    fn a_folder_that_cannot_be_is_left_out_with_all_that_lies_in_it() {
        let text = b"1 2 3 1-1-1\n/..\n1 2 3 2-2-2\n/a/b\n1 2 3 3-3-3\n/c\n1 2 3 4-4-4\n";
        let found: Vec<_> =
            parse(text).into_iter().map(|(folder, files)| (folder, files.len())).collect();
        assert_eq!(found, [(None, 1), (Some("c".to_owned()), 1)]);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(inode: u64, size: u64, modified_ns: u64, name in "[1-9][!-.0-~]{0,40}") {
            let files = vec![Counted { name: name.into_bytes().into(), inode, size, modified_ns }; 2];
            for folders in [
                ByFolder::from([(None, files.clone())]),
                ByFolder::from([(Some("a".to_owned()), files.clone())]),
                ByFolder::from([(None, files.clone()), (Some("a".into()), files.clone()), (Some("b".into()), files)]),
            ] {
                prop_assert_eq!(parse(&render(&folders)), folders);
            }
        }

        #[test]
        fn refused_names_read_back(names in proptest::collection::vec("[^/\0]{3,20}", 0..5)) {
            let names: Vec<Box<[u8]>> = names.into_iter().map(|name| name.into_bytes().into()).collect();
            let mut folders = ByFolder::from([(None, names.clone()), (Some("a\n".into()), names)]);
            folders.retain(|_, names| !names.is_empty());
            prop_assert_eq!(parse_refused(&render_refused(&folders)), folders);
        }

        #[test]
        fn no_text_panics_and_no_name_leaves_the_folder(text: Vec<u8>) {
            let is_inside = |folder: &Option<String>| folder.as_ref().is_none_or(|name| is_entry(name.as_bytes()));
            let (counted, refused) = (parse(&text), parse_refused(&text));
            prop_assert!(counted.values().flatten().all(|file| is_entry(&file.name)));
            prop_assert!(refused.values().flatten().all(|name| is_entry(name)));
            prop_assert!(counted.keys().chain(refused.keys()).all(is_inside));
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
