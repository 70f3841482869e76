//! Which file has which content now.
//!
//! | what happened | how it is recognised |
//! |---|---|
//! | nothing, or a rename | device and inode, and the bytes at both ends of what was taken |
//! | copied, then cut off | a new file of the family begins with all that was taken |
//! | compressed | the same, of what it unpacks to |
//! | an inode that was used again | the bytes differ: a new content |
//! | a copy of a file that still stands | it is a beginning of that file: left alone |

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use super::content::Content;
use super::cursors::{Agreement, Cursor, Cursors};
use super::discover::{FileState, Found, NotOpened};
use super::fingerprint::{Fingerprint, LENGTH};
use super::names::Turn;

/// A file and the number of the content that it has.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) found: Found,
    pub(super) stream: u64,
    /// What a new content begins with: until something is taken, nothing else tells it from what
    /// may be in its file a moment later.
    pub(super) head: Vec<u8>,
    /// Whether the content was not in this file before: it is new, or has moved.
    pub(super) has_come: bool,
}

/// Where the files' contents were found.
#[derive(Debug, Default)]
pub(super) struct Assigned {
    pub(super) parts: Vec<Part>,
    /// Whether the time was spent before all files were compared.
    pub(super) is_late: bool,
    /// The families that were probably being rotated while they were looked at: they have new files
    /// while the newest of those that they had is nowhere, or a compressed one is not finished and
    /// what it is made of does not stand beside it.
    pub(super) blurred: BTreeSet<String>,
}

/// Gives each file its content's number, new ones where the content is new; the oldest content of a
/// family comes first. Where only a part of the files was found, no content is said to have moved and
/// none to be new: its file may be among the others. A compressed file that has not grown for `patience`
/// will not be finished any more.
pub(super) fn assign(
    found: Vec<Found>,
    is_partial: bool,
    cursors: &mut Cursors,
    now_ns: u64,
    patience: Duration,
    deadline: Instant,
) -> Assigned {
    let order = Order::of(&found);
    let mut is_late = false;
    let mut parts = Vec::new();
    let mut rest = Vec::new();
    let mut taken = BTreeSet::new();
    let mut by_inode = HashMap::<_, Vec<u64>>::new();
    for (stream, cursor) in &cursors.of {
        by_inode.entry((cursor.device, cursor.inode)).or_default().push(*stream);
    }
    for file in found {
        let candidates = by_inode.get(&(file.state.device, file.state.inode));
        match unmoved(&file, candidates.map_or(&[], Vec::as_slice), cursors) {
            Ok(Some(stream)) => {
                taken.insert(stream);
                parts.push(Part { found: file, stream, head: Vec::new(), has_come: false });
            }
            Ok(None) => rest.push(file),
            Err(why) => note(cursors, &file, why),
        }
    }
    if is_partial {
        rest.clear();
    }
    // A copy is never longer than what it was made of, and compressed after it was plain.
    rest.sort_by_key(|file| (file.is_packed, Reverse(file.state.size), file.turn != Turn::Current));
    let mut new = Vec::<(Found, Vec<u8>)>::new();
    let mut unfinished = Vec::new();
    let mut vanished = BTreeSet::new();
    let mut whole = Originals::default();
    parts.iter().for_each(|part| whole.add(&part.found));
    for mut file in rest {
        // Those that are left may be what others are copies of: none of them is new yet.
        if Instant::now() >= deadline {
            is_late = true;
            break;
        }
        let appeared = appeared(&file, &mut whole, &taken, cursors);
        whole.add(&file);
        match appeared {
            Ok(Appeared::Moved(stream)) => {
                taken.insert(stream);
                parts.push(Part { found: file, stream, head: Vec::new(), has_come: true });
            }
            Ok(Appeared::New(head, state)) => {
                file.state = state;
                new.push((file, head));
            }
            Ok(Appeared::Copy) => {}
            Ok(Appeared::Unfinished) => unfinished.push(file),
            Err(NotOpened::Vanished) => drop(vanished.insert(file.family)),
            Err(why) => note(cursors, &file, why),
        }
    }
    let families: BTreeSet<_> = new.iter().map(|(file, _)| file.family.clone()).collect();
    let mut blurred: BTreeSet<_> = families
        .into_iter()
        .filter(|family| vanished.contains(family) || is_without_its_last(family, &taken, cursors))
        .collect();
    unfinished.retain(|file| file.age(now_ns) < patience && !whole.stands_beside(file));
    blurred.extend(unfinished.into_iter().map(|file| file.family));
    new.sort_by_key(|(file, _)| order.age(file));
    for (file, head) in new {
        let cursor = Cursor::new(file.path.clone(), file.family.clone(), file.state);
        let stream = cursors.add(cursor);
        taken.insert(stream);
        parts.push(Part { found: file, stream, head, has_come: true });
    }
    for Part { found, stream, .. } in &parts {
        if let Some(cursor) = cursors.of.get_mut(stream) {
            cursor.path.clone_from(&found.path);
            cursor.family.clone_from(&found.family);
            (cursor.device, cursor.inode) = (found.state.device, found.state.inode);
            cursor.size = found.state.size;
            cursor.was_replaced = false;
            cursor.missing_since_ns = None;
        }
    }
    for (stream, cursor) in &mut cursors.of {
        if !is_partial && !is_late && !taken.contains(stream) {
            cursor.missing_since_ns.get_or_insert(now_ns);
        }
    }
    parts.sort_by_key(|part| part.stream);
    Assigned { parts, is_late, blurred }
}

/// Whether the newest known content of a family has gone missing just now.
fn is_without_its_last(family: &str, taken: &BTreeSet<u64>, cursors: &Cursors) -> bool {
    let last = cursors.of.iter().rfind(|(_, cursor)| cursor.family == family);
    last.is_some_and(|(stream, cursor)| {
        !taken.contains(stream) && cursor.missing_since_ns.is_none()
    })
}

fn note(cursors: &mut Cursors, file: &Found, why: NotOpened) {
    if let NotOpened::Refused(reason) = why {
        cursors.refused.note(reason, file.path.display().to_string());
    }
}

/// The content that has always been in this inode.
fn unmoved(
    file: &Found,
    candidates: &[u64],
    cursors: &mut Cursors,
) -> Result<Option<u64>, NotOpened> {
    for stream in candidates {
        let Some(cursor) = cursors.of.get_mut(stream) else { continue };
        if cursor.is_drained(file.state) {
            return Ok(Some(*stream));
        }
        let mut content = Content::new(file.open()?.0, file.is_packed);
        match cursor.agreement(&mut content) {
            Ok(Agreement::Same) => return Ok(Some(*stream)),
            Ok(_) => cursor.was_replaced = true,
            Err(fault) => return Err(unreadable(&fault)),
        }
    }
    Ok(None)
}

/// What a file is that was not there before.
enum Appeared {
    /// A content that was in another file.
    Moved(u64),
    /// A copy of what still stands, or nothing yet.
    Copy,
    /// The beginning of a compressed file.
    Unfinished,
    /// A new content: what it begins with, and the file's state after that was read.
    New(Vec<u8>, FileState),
}

fn appeared(
    file: &Found,
    originals: &mut Originals,
    taken: &BTreeSet<u64>,
    cursors: &mut Cursors,
) -> Result<Appeared, NotOpened> {
    if file.state.size == 0 {
        return Ok(Appeared::Copy);
    }
    let open = || file.open().map(|(opened, _)| Content::new(opened, file.is_packed));
    let head = match open()?.stretch(0, LENGTH) {
        Err(fault) if is_unfinished(&fault) => return Ok(Appeared::Unfinished),
        head => head.map_err(|fault| unreadable(&fault))?,
    };
    // Cut off since it was found; or the beginning of a first line, which many logs have in common:
    // when there is something to take, the file may have been cut off and written anew.
    let may_be_cut_off = file.turn == Turn::Current && !file.is_packed && head.len() < LENGTH;
    if head.is_empty() || (may_be_cut_off && !head.contains(&b'\n')) {
        return Ok(Appeared::Copy);
    }
    let mut hashes = HashMap::new();
    for (stream, cursor) in &mut cursors.of {
        // What nothing was taken of looks like everything.
        let is_begun = cursor.offset > 0;
        if taken.contains(stream) || cursor.family != file.family || !is_begun {
            continue;
        }
        let length = cursor.head.length();
        let hash = hashes.entry(length).or_insert_with(|| head.get(..length).map(Fingerprint::of));
        if hash.as_ref() != Some(&cursor.head) {
            continue;
        }
        let is_in_place = (cursor.device, cursor.inode) == (file.state.device, file.state.inode);
        match cursor.agreement(&mut open()?) {
            Ok(Agreement::Same) => {
                cursor.drained = None;
                return Ok(Appeared::Moved(*stream));
            }
            // What came after the copy was made and before the original was cut off is in no file
            // any more, but it has been read.
            Ok(Agreement::Beginning(length)) if cursor.was_replaced && !is_in_place => {
                let (ends, length) = open()?.ends(length).map_err(|fault| unreadable(&fault))?;
                cursor.take_ends(&ends);
                cursor.offset = length;
                cursor.drained = None;
                return Ok(Appeared::Moved(*stream));
            }
            Ok(_) => {}
            Err(fault) if is_unfinished(&fault) => return Ok(Appeared::Unfinished),
            Err(fault) => return Err(unreadable(&fault)),
        }
    }
    for original in originals.that_begin(file, &head) {
        if is_beginning_of(&mut open()?, original)? {
            return Ok(Appeared::Copy);
        }
    }
    // The time at which the file was found may be that of another content, which was cut off since;
    // one that is read behind the head is never too early.
    let (_, state) = file.open()?;
    Ok(Appeared::New(head, state))
}

/// The files that a copy may be made of: all plain ones, by family. The head of each is read once.
#[derive(Default)]
struct Originals {
    by_family: HashMap<String, Vec<Original>>,
}

struct Original {
    found: Found,
    head: Option<Vec<u8>>,
}

impl Originals {
    fn add(&mut self, found: &Found) {
        if !found.is_packed {
            let family = self.by_family.entry(found.family.clone()).or_default();
            family.push(Original { found: found.clone(), head: None });
        }
    }

    /// Whether what a compressed file is made of stands beside it, by its name.
    fn stands_beside(&self, packed: &Found) -> bool {
        let family = self.by_family.get(&packed.family).map(Vec::as_slice).unwrap_or_default();
        let plain = packed.path.with_extension("");
        family.iter().any(|original| original.found.path == plain)
    }

    /// Those that a file with this head may be a copy of. What is compressed may be so of any; a
    /// plain copy has a rotated file's name and is made of the one that is being written.
    fn that_begin(&mut self, file: &Found, head: &[u8]) -> impl Iterator<Item = &Found> {
        let all = self.by_family.get_mut(&file.family).map(Vec::as_mut_slice).unwrap_or_default();
        let (is_packed, is_current) = (file.is_packed, file.turn == Turn::Current);
        let may_be =
            move |original: &Found| is_packed || (!is_current && original.turn == Turn::Current);
        all.iter_mut().filter(move |original| may_be(&original.found)).filter_map(
            move |Original { found, head: known }| {
                let known = known.get_or_insert_with(|| head_of(found).unwrap_or_default());
                known.starts_with(head).then_some(&*found)
            },
        )
    }
}

fn head_of(found: &Found) -> Option<Vec<u8>> {
    let (file, _) = found.open().ok()?;
    Content::new(file, found.is_packed).stretch(0, LENGTH).ok()
}

/// Whether a content is the beginning of another file's, or all of it. Their heads are alike. So it is
/// said, too, where the other file was cut off since it was found: the content may have moved, which
/// the next pass sees.
fn is_beginning_of(content: &mut Content, other: &Found) -> Result<bool, NotOpened> {
    let whole = || other.open().map(|(opened, _)| Content::new(opened, other.is_packed));
    let (ends, length) = match content.ends(u64::MAX) {
        // Still being compressed: what it is made of stands beside it.
        Err(fault) if is_unfinished(&fault) => return Ok(true),
        ends => ends.map_err(|fault| unreadable(&fault))?,
    };
    let Ok(Ok((others, others_length))) = whole().map(|mut whole| whole.ends(length)) else {
        return Ok(false);
    };
    let is_cut_off = others_length < length.min(other.state.size) || others.head != ends.head;
    Ok(is_cut_off || (others_length, others.tail) == (length, ends.tail))
}

/// A compressed file that is still being written ends too early.
pub(super) fn is_unfinished(fault: &io::Error) -> bool {
    fault.kind() == io::ErrorKind::UnexpectedEof
}

/// The reason for a fault while reading.
pub(super) fn unreadable(fault: &io::Error) -> NotOpened {
    NotOpened::Refused(match fault.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => "not_compressed",
        io::ErrorKind::UnexpectedEof => return NotOpened::Unfinished,
        _ => "unreadable",
    })
}

/// In which order the files of a family were written.
struct Order {
    /// The families that have a number before the extension.
    inside: HashSet<String>,
    /// Those of them whose older files have the higher numbers.
    falling: HashSet<String>,
}

impl Order {
    fn of(found: &[Found]) -> Self {
        let mut families = HashMap::<_, Vec<&Found>>::new();
        for file in found {
            families.entry(&file.family).or_default().push(file);
        }
        families.retain(|_, files| files.iter().any(|file| numbered_inside(file).is_some()));
        let falling = families.iter().filter(|(_, files)| numbers_fall(files.iter().copied()));
        let falling = falling.map(|(family, _)| (*family).clone()).collect();
        Self { inside: families.into_keys().cloned().collect(), falling }
    }

    /// The least is the oldest. The time of the last change tells, for no way of numbering is
    /// everybody's; but who compresses may change it, so that the file without a number comes last
    /// where numbers stand behind the name: there it is the one that is being written.
    fn age(&self, file: &Found) -> (bool, u64, i128) {
        let is_written =
            file.turn == Turn::Current && !file.is_packed && !self.inside.contains(&file.family);
        let turn = match file.turn {
            Turn::Current => i128::MAX,
            // A date rises, a number behind the name falls with time.
            Turn::Behind(date) if date >= 10_000_000 => i128::from(date),
            Turn::Behind(number) => -i128::from(number),
            Turn::Inside(number) if self.falling.contains(&file.family) => -i128::from(number),
            Turn::Inside(number) => i128::from(number),
        };
        (is_written, file.state.modified_ns, turn)
    }
}

fn numbered_inside(file: &Found) -> Option<u64> {
    match file.turn {
        Turn::Inside(number) => Some(number),
        Turn::Current | Turn::Behind(_) => None,
    }
}

/// Whether the older files of a family have the higher numbers inside their names: the times of the
/// lowest and the highest tell, or else that there is a file without a number, which may be missing
/// while it is being rotated.
fn numbers_fall<'f>(family: impl Iterator<Item = &'f Found> + Clone) -> bool {
    let time_of = |file: Option<(u64, &'f Found)>| file.map(|(_, file)| file.state.modified_ns);
    let numbered = family.clone().filter_map(|file| Some((numbered_inside(file)?, file)));
    let lowest = time_of(numbered.clone().min_by_key(|(number, _)| *number));
    let highest = time_of(numbered.max_by_key(|(number, _)| *number));
    match lowest.cmp(&highest) {
        Ordering::Less => false,
        Ordering::Greater => true,
        Ordering::Equal => family.into_iter().any(|file| file.turn == Turn::Current),
    }
}

#[cfg(test)]
mod tests;
