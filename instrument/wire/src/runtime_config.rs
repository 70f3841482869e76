//! The runtime configuration: which processes are measured, and how.
//!
//! ```text
//! # a comment
//! 4242:0,1           pid 4242: instructions and occupancy
//!  4243 : 2  # why   blanks and a trailing comment are fine
//! 4242:1             the last line for a pid wins
//! ```

use std::fmt;

use crate::function::{Function, FunctionSet, PrimitiveId};
use crate::limits::MAX_LINE_BYTES;
use crate::number::{parse_integer, trim};

/// What one line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The process, by its own pid namespace's number; never 0.
    pub pid: u32,
    /// The functions known here.
    pub functions: FunctionSet,
    /// Ids of later versions, in the order written; kept by a rewrite, ignored by the instrument.
    pub unknown: Vec<PrimitiveId>,
}

/// Why a line was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigFault {
    /// Longer than [`MAX_LINE_BYTES`].
    TooLong,
    /// Not exactly one colon.
    NotOneColon,
    /// What stands before the colon is no pid.
    NotAPid,
    /// What stands after the colon is no list of integers.
    NotAFunctionList,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "longer than 256 bytes",
            Self::NotOneColon => "expected <pid>:<function_id>[,<function_id>...]",
            Self::NotAPid => "what stands before the colon is not a process id",
            Self::NotAFunctionList => {
                "what stands after the colon is not a list of function ids such as 0,1,2"
            }
        })
    }
}

impl std::error::Error for ConfigFault {}

/// What a line of the file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineKind {
    /// Blanks alone.
    Blank,
    /// A comment alone.
    Comment,
    /// A process.
    Entry(Entry),
    /// None of these.
    Malformed(ConfigFault),
}

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// From 1.
    pub number: usize,
    /// As it stands, without its line end.
    pub text: &'a [u8],
    /// What it is.
    pub kind: LineKind,
}

/// Every line of a file, in order.
pub fn lines(file: &[u8]) -> impl Iterator<Item = Line<'_>> {
    // A file that ends with a newline has no further, empty line behind it.
    let body = file.strip_suffix(b"\n").unwrap_or(file);
    let is_empty = file.is_empty();
    body.split(|&byte| byte == b'\n').enumerate().filter(move |_| !is_empty).map(|(index, text)| {
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        Line { number: index + 1, text, kind: parse_line(text) }
    })
}

/// What one line is, given without its `\n`.
#[must_use]
pub fn parse_line(line: &[u8]) -> LineKind {
    let content = line.iter().position(|&byte| byte == b'#').and_then(|at| line.get(..at));
    let has_comment = content.is_some();
    let content = trim(content.unwrap_or(line));
    if content.is_empty() {
        return if has_comment { LineKind::Comment } else { LineKind::Blank };
    }
    if content.len() > MAX_LINE_BYTES {
        return LineKind::Malformed(ConfigFault::TooLong);
    }
    match parse_entry(content) {
        Ok(entry) => LineKind::Entry(entry),
        Err(fault) => LineKind::Malformed(fault),
    }
}

/// Reads `<pid>:<function_id>[,<function_id>...]` without comment.
///
/// # Errors
/// The first [`ConfigFault`] from the left.
pub fn parse_entry(content: &[u8]) -> Result<Entry, ConfigFault> {
    let mut halves = content.split(|&byte| byte == b':');
    let (Some(pid), Some(ids), None) = (halves.next(), halves.next(), halves.next()) else {
        return Err(ConfigFault::NotOneColon);
    };
    let pid = parse_integer(trim(pid))
        .and_then(|pid| u32::try_from(pid).ok())
        .filter(|&pid| pid > 0)
        .ok_or(ConfigFault::NotAPid)?;
    let (functions, unknown) = parse_functions(ids).ok_or(ConfigFault::NotAFunctionList)?;
    Ok(Entry { pid, functions, unknown })
}

fn parse_functions(ids: &[u8]) -> Option<(FunctionSet, Vec<PrimitiveId>)> {
    let mut functions = FunctionSet::EMPTY;
    let mut unknown = Vec::new();
    for id in ids.split(|&byte| byte == b',') {
        let id = PrimitiveId(u32::try_from(parse_integer(trim(id))?).ok()?);
        match Function::from_id(id) {
            Some(function) => functions.insert(function),
            None if unknown.contains(&id) => {}
            None => unknown.push(id),
        }
    }
    Some((functions, unknown))
}

/// The entry that holds for a process: the last well-formed line for its pid, `None` when there is
/// none.
#[must_use]
pub fn plan_for(file: &[u8], pid: u32) -> Option<Entry> {
    lines(file)
        .filter_map(|line| match line.kind {
            LineKind::Entry(entry) if entry.pid == pid => Some(entry),
            _ => None,
        })
        .last()
}

/// The line as the extension writes it, without comment and newline.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.pid, self.functions)?;
        for (position, id) in self.unknown.iter().enumerate() {
            let comma = if position == 0 && self.functions.is_empty() { "" } else { "," };
            write!(f, "{comma}{id}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn people_may_write_loosely() {
        let file = b"# mine\r\n\n 4242 : 0 , 1\t# both\r\n4243:2,2,9\n4242:1";
        let plan = plan_for(file, 4242).unwrap();
        assert_eq!(plan.functions.to_string(), "1");
        let plan = plan_for(file, 4243).unwrap();
        assert_eq!(
            (plan.functions.to_string().as_str(), plan.unknown),
            ("2", vec![PrimitiveId(9)])
        );
        assert_eq!(plan_for(file, 1), None);
    }

    #[test]
    fn a_malformed_line_is_named_and_the_lines_around_it_hold() {
        let file = b"1:0\nx:1\n2:\n3\n4:1:2\n0:1\n5:1\n";
        let faults: Vec<_> = lines(file)
            .filter_map(|line| match line.kind {
                LineKind::Malformed(fault) => Some((line.number, fault)),
                _ => None,
            })
            .collect();
        assert_eq!(
            faults,
            [
                (2, ConfigFault::NotAPid),
                (3, ConfigFault::NotAFunctionList),
                (4, ConfigFault::NotOneColon),
                (5, ConfigFault::NotOneColon),
                (6, ConfigFault::NotAPid),
            ]
        );
        assert!(plan_for(file, 1).is_some() && plan_for(file, 5).is_some());
    }

    #[test]
    fn an_empty_file_lists_nobody() {
        assert_eq!(lines(b"").count(), 0);
        assert_eq!(lines(b"\n").count(), 1);
        assert_eq!(plan_for(b"", 1), None);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(pid in 1_u32.., bits in 0_u8..16, unknown in proptest::collection::hash_set(5_u32.., 0..4)) {
            let entry = Entry {
                pid,
                functions: FunctionSet::from_bits(bits),
                unknown: unknown.into_iter().map(PrimitiveId).collect(),
            };
            prop_assume!(!entry.functions.is_empty() || !entry.unknown.is_empty());
            prop_assert_eq!(plan_for(entry.to_string().as_bytes(), pid), Some(entry));
        }

        #[test]
        fn no_file_panics_and_no_byte_is_lost(file: Vec<u8>) {
            let text: usize = lines(&file).map(|line| line.text.len()).sum();
            let ends = file.iter().filter(|&&byte| byte == b'\n' || byte == b'\r').count();
            prop_assert!(text <= file.len() && text + ends >= file.len());
        }
    }
}
