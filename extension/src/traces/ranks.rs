//! The ranks of a merged trace, as a member of its document.
//!
//! ```text
//! "warpgauge_ranks":[{"rank":0,"processes":[0,4711,"Spans"],"document":{"traceName":"a.json"}},
//!                    {"trace":2,"processes":[...],"document":{}}]
//! ```
//!
//! A trace that names no rank is told by its place among the files. `document` holds what a rank's
//! trace said of itself and others said otherwise or not at all.

use std::collections::HashMap;

use warpgauge_formats::json::write::{self, Object};
use warpgauge_formats::json::{Kind, Reader, Result};
use warpgauge_formats::trace::Id;

/// The member's key.
pub(super) const MEMBER: &str = "warpgauge_ranks";

/// Whose trace it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Whose {
    /// The rank that `distributedInfo` names.
    Rank(i64),
    /// The place among the files, counted from 1.
    Trace(i64),
}

impl Whose {
    /// As a part of a file's name.
    pub(super) fn in_file_name(self) -> String {
        match self {
            Self::Rank(number) => format!("rank{number}"),
            Self::Trace(number) => format!("trace{number}"),
        }
    }
}

impl std::fmt::Display for Whose {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rank(number) => write!(formatter, "rank {number}"),
            Self::Trace(number) => write!(formatter, "trace {number}"),
        }
    }
}

/// One rank.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rank {
    pub(super) whose: Whose,
    /// Its processes, by the ids that they have in the merged trace.
    pub(super) processes: Vec<Id<'static>>,
    /// What it says of itself, as JSON.
    pub(super) document: Vec<(String, String)>,
}

/// Which of `ranks` each process belongs to.
pub(super) fn by_process(ranks: &[Rank]) -> HashMap<Id<'static>, usize> {
    let all = ranks.iter().enumerate();
    all.flat_map(|(place, rank)| rank.processes.iter().map(move |id| (id.clone(), place))).collect()
}

/// The member's value.
pub(super) fn write(ranks: &[Rank]) -> String {
    let mut out = b"[".to_vec();
    for (place, rank) in ranks.iter().enumerate() {
        if place > 0 {
            out.extend_from_slice(b",\n ");
        }
        let mut object = Object::open(&mut out);
        match rank.whose {
            Whose::Rank(number) => object.integer("rank", number),
            Whose::Trace(number) => object.integer("trace", number),
        };
        ids(object.key("processes"), &rank.processes);
        members(object.key("document"), &rank.document);
        object.close();
    }
    out.push(b']');
    // All of it is JSON that was a text before.
    String::from_utf8(out).unwrap_or_default()
}

fn ids(out: &mut Vec<u8>, ids: &[Id<'_>]) {
    out.push(b'[');
    for (place, id) in ids.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        match id {
            Id::None => out.extend_from_slice(b"null"),
            Id::Number(number) => write::integer(out, *number),
            Id::Text(text) => write::text(out, text),
        }
    }
    out.push(b']');
}

fn members(out: &mut Vec<u8>, members: &[(String, String)]) {
    out.push(b'{');
    for (place, (key, json)) in members.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write::text(out, key);
        out.push(b':');
        out.extend_from_slice(json.as_bytes());
    }
    out.push(b'}');
}

/// The ranks of a member's value.
///
/// # Errors
/// Where it is none that [`write()`] writes.
pub(super) fn read(json: &str) -> Result<Vec<Rank>> {
    let mut reader = Reader::new(json);
    let mut ranks = vec![];
    reader.enter_array()?;
    while reader.next_item()? {
        let mut rank = Rank { whose: Whose::Trace(0), processes: vec![], document: vec![] };
        reader.enter_object()?;
        while let Some(key) = reader.next_key()? {
            match key.as_ref() {
                "rank" => rank.whose = Whose::Rank(reader.number()?.whole().unwrap_or_default()),
                "trace" => rank.whose = Whose::Trace(reader.number()?.whole().unwrap_or_default()),
                "processes" => {
                    reader.enter_array()?;
                    while reader.next_item()? {
                        rank.processes.push(id(&mut reader)?);
                    }
                }
                "document" => {
                    reader.enter_object()?;
                    while let Some(key) = reader.next_key()? {
                        rank.document.push((key.into_owned(), reader.skip()?.to_owned()));
                    }
                }
                _ => drop(reader.skip()?),
            }
        }
        ranks.push(rank);
    }
    reader.end()?;
    Ok(ranks)
}

fn id(reader: &mut Reader<'_>) -> Result<Id<'static>> {
    Ok(match reader.peek()? {
        Kind::Number => Id::Number(reader.number()?.whole().unwrap_or_default()),
        Kind::Text => Id::Text(reader.text()?.into_owned().into()),
        _ => {
            reader.skip()?;
            Id::None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_back_as_they_were_written() {
        let member = |key: &str, json: &str| (key.to_owned(), json.to_owned());
        let ranks = [
            Rank {
                whose: Whose::Rank(7),
                processes: vec![Id::Number(-1), Id::Text("Spans \"x\"".into()), Id::None],
                document: vec![member("a\n", "{\"rank\":7}"), member("b", "1e400")],
            },
            Rank { whose: Whose::Trace(2), processes: vec![], document: vec![] },
        ];
        assert_eq!(read(&write(&ranks)), Ok(ranks.to_vec()));
        assert_eq!(read("[]"), Ok(vec![]));
        assert!(read("{}").is_err() && read("[1]").is_err());
    }
}
