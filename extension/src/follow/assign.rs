//! Which file has which content now.
//!
//! | what happened | how it is recognised |
//! |---|---|
//! | nothing, or a rename | device and inode, and the bytes at both ends of what was taken |
//! | copied, then cut off | a new file of the family begins with all that was taken |
//! | compressed | the same, of what it unpacks to |
//! | an inode that was used again | the bytes differ: a new content |
//! | a copy of a file that still stands | it is a beginning of that file: left alone |

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::io;

use super::content::Content;
use super::cursors::{Agreement, Cursor, Cursors};
use super::discover::{Found, NotOpened};
use super::fingerprint::LENGTH;
use super::names::Turn;

/// A file and the number of the content that it has.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) found: Found,
    pub(super) stream: u64,
}

/// Gives each file its content's number, new ones where the content is new; the oldest content of a
/// family comes first. Where only a part of the files was found, no content is said to have moved and
/// none to be new: its file may be among the others.
pub(super) fn assign(
    found: Vec<Found>,
    is_partial: bool,
    cursors: &mut Cursors,
    now_ns: u64,
) -> Vec<Part> {
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
                parts.push(Part { found: file, stream });
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
    let mut new = Vec::<Found>::new();
    for file in rest {
        let known: Vec<_> = parts.iter().map(|part| &part.found).chain(&new).collect();
        match appeared(&file, &known, &taken, cursors) {
            Ok(Appeared::Moved(stream)) => {
                taken.insert(stream);
                parts.push(Part { found: file, stream });
            }
            Ok(Appeared::New) => new.push(file),
            Ok(Appeared::Copy) => {}
            Err(why) => note(cursors, &file, why),
        }
    }
    sort_by_age(&mut new);
    for file in new {
        let cursor = Cursor::new(file.path.clone(), file.family.clone(), file.state);
        let stream = cursors.add(cursor);
        taken.insert(stream);
        parts.push(Part { found: file, stream });
    }
    for Part { found, stream } in &parts {
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
        if !is_partial && !taken.contains(stream) {
            cursor.missing_since_ns.get_or_insert(now_ns);
        }
    }
    parts.sort_by_key(|part| part.stream);
    parts
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
    /// A new content.
    New,
}

fn appeared(
    file: &Found,
    known: &[&Found],
    taken: &BTreeSet<u64>,
    cursors: &mut Cursors,
) -> Result<Appeared, NotOpened> {
    if file.state.size == 0 {
        return Ok(Appeared::Copy);
    }
    let open = || file.open().map(|(opened, _)| Content::new(opened, file.is_packed));
    let head = match open()?.stretch(0, LENGTH) {
        Err(fault) if is_unfinished(&fault) => return Ok(Appeared::Copy),
        head => head.map_err(|fault| unreadable(&fault))?,
    };
    for (stream, cursor) in &mut cursors.of {
        if taken.contains(stream) || cursor.family != file.family || !cursor.head.begins(&head) {
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
            Err(fault) if is_unfinished(&fault) => return Ok(Appeared::Copy),
            Err(fault) => return Err(unreadable(&fault)),
        }
    }
    for other in known.iter().filter(|other| other.family == file.family) {
        if is_beginning_of(&mut open()?, &head, other)? {
            return Ok(Appeared::Copy);
        }
    }
    Ok(Appeared::New)
}

/// Whether a content, which has this head, is the beginning of another file's, or all of it.
fn is_beginning_of(content: &mut Content, head: &[u8], other: &Found) -> Result<bool, NotOpened> {
    let whole = || other.open().map(|(opened, _)| Content::new(opened, other.is_packed));
    let heads = whole().map(|mut whole| whole.stretch(0, head.len()));
    if !heads.is_ok_and(|others| others.is_ok_and(|others| others == head)) {
        return Ok(false);
    }
    let (ends, length) = match content.ends(u64::MAX) {
        // Still being compressed: what it is made of stands beside it.
        Err(fault) if is_unfinished(&fault) => return Ok(true),
        ends => ends.map_err(|fault| unreadable(&fault))?,
    };
    let Ok(Ok((others, others_length))) = whole().map(|mut whole| whole.ends(length)) else {
        return Ok(false);
    };
    Ok((others_length, others.head, others.tail) == (length, ends.head, ends.tail))
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

/// The oldest first.
fn sort_by_age(files: &mut [Found]) {
    let current: BTreeSet<_> = files
        .iter()
        .filter(|file| file.turn == Turn::Current)
        .map(|file| file.family.clone())
        .collect();
    let age = |file: &Found| match file.turn {
        Turn::Current => i128::MAX,
        // A date rises, a number behind the name falls with time.
        Turn::Behind(date) if date >= 10_000_000 => i128::from(date),
        Turn::Behind(number) => -i128::from(number),
        Turn::Inside(number) if current.contains(&file.family) => -i128::from(number),
        Turn::Inside(number) => i128::from(number),
    };
    files.sort_by_key(|file| (file.state.modified_ns, age(file)));
}
