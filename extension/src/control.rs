//! The runtime configuration file: read, merge with what people wrote, write atomically.
//!
//! ```text
//! #: header, rewritten each time
//! 4242:0,1 #= trainer        the extension's own line: "#=" and the group
//! # why I look into 5151     a person's comment, goes with the line below it
//! 5151:0                     a person's line: anything without "#="
//! #off 5152:1                a person's line while instrumentation is switched off
//! ```
//!
//! Own lines come first, so that a person's line for the same pid wins.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use warpgauge_wire::limits::MAX_RUNTIME_CONFIG_BYTES;
use warpgauge_wire::runtime_config::{LineKind, lines, parse_line};
use warpgauge_wire::{ConfigFault, Entry, FunctionSet};

use crate::atomic_file::{self, Durability};

const HEADER: &str = "\
#: warpgauge runtime configuration: which processes are measured, as <pid>:<function ids>.
#: 0 instructions, 1 occupancy, 2 global memory coalescence, 3 branch divergence.
#: Lines with \"#=\" are written by each pass of warpgauge; do not edit them.
#: Every other line is yours: it wins over warpgauge's and stays until its process has ended.
#: `warpgauge control set PID FUNCTIONS` adds one safely.
";

/// Behind an own line, before the group's name.
const OWN_MARK: &str = "#=";
/// Before a person's line that rests while instrumentation is switched off.
const OFF_MARK: &[u8] = b"#off ";
/// Before a line of the header.
const HEADER_MARK: &[u8] = b"#:";

/// A line that the extension writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnLine {
    /// The process, as itself numbers it.
    pub pid: u32,
    /// What to measure.
    pub functions: FunctionSet,
    /// Its group.
    pub group: String,
}

/// A line that a person wrote, and the comments right above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManualLine {
    /// From 1, in the file as it was read.
    pub number: usize,
    /// What it asks for.
    pub entry: Entry,
    text: Vec<u8>,
    comments: Vec<Vec<u8>>,
}

/// A line that nobody can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedLine {
    /// From 1.
    pub number: usize,
    /// What is wrong with it.
    pub fault: ConfigFault,
    text: Vec<u8>,
}

impl MalformedLine {
    /// The line for people: control characters and foreign bytes escaped.
    #[must_use]
    pub fn shown(&self) -> String {
        self.text.escape_ascii().to_string()
    }
}

/// The file, taken apart by who wrote what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    /// The extension's own entries.
    pub own: Vec<(Entry, String)>,
    /// The persons' entries, in order.
    pub manual: Vec<ManualLine>,
    /// Lines that are skipped by every reader; a rewrite keeps them, since somebody may be in the
    /// middle of typing.
    pub malformed: Vec<MalformedLine>,
    /// Comments that belong to no entry.
    loose: Vec<Vec<u8>>,
}

/// Why the runtime configuration could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Reading failed.
    #[error("{path}: cannot read the runtime configuration: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Writing failed; the old content stands.
    #[error(
        "{path}: cannot write the runtime configuration: {source}; its folder must exist and be writable"
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl RuntimeConfig {
    /// Reads the file and takes it apart; a missing one is empty.
    ///
    /// # Errors
    /// [`ControlError::Read`], also for a file beyond the protocol's size.
    pub fn load(path: &Path) -> Result<(Self, Vec<u8>), ControlError> {
        let read = |mut file: File| {
            let mut content = Vec::new();
            file.by_ref().take(MAX_RUNTIME_CONFIG_BYTES + 1).read_to_end(&mut content)?;
            if content.len() as u64 > MAX_RUNTIME_CONFIG_BYTES {
                return Err(io::Error::other(
                    "larger than 16 MiB; this is no runtime configuration",
                ));
            }
            Ok(content)
        };
        let content = match File::open(path).and_then(read) {
            Ok(content) => content,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(ControlError::Read { path: path.to_owned(), source }),
        };
        Ok((Self::parse(&content), content))
    }

    /// Takes the content of a file apart.
    #[must_use]
    pub fn parse(content: &[u8]) -> Self {
        let mut config = Self::default();
        let mut comments = Vec::new();
        for line in lines(content) {
            if line.text.starts_with(HEADER_MARK) {
                continue;
            }
            let (text, kind) =
                match line.text.strip_prefix(OFF_MARK).map(|text| (text, parse_line(text))) {
                    Some((text, kind @ LineKind::Entry(_))) => (text, kind),
                    // A comment that merely begins with the same letters.
                    _ => (line.text, line.kind),
                };
            // Written back with one line end each, however many it came with.
            let text = without_end(text);
            match kind {
                LineKind::Blank => config.loose.append(&mut comments),
                LineKind::Comment => comments.push(text.to_vec()),
                LineKind::Entry(entry) => match own_group(text) {
                    Some(group) => config.own.push((entry, group)),
                    None => config.manual.push(ManualLine {
                        number: line.number,
                        entry,
                        text: text.to_vec(),
                        comments: std::mem::take(&mut comments),
                    }),
                },
                LineKind::Malformed(fault) => config.malformed.push(MalformedLine {
                    number: line.number,
                    fault,
                    text: text.to_vec(),
                }),
            }
        }
        config.loose.append(&mut comments);
        config
    }

    /// The entry that holds for each pid, by rising pid: the last line wins.
    #[must_use]
    pub fn effective(&self) -> Vec<(&Entry, Option<&str>)> {
        let own = self.own.iter().map(|(entry, group)| (entry, Some(group.as_str())));
        let manual = self.manual.iter().map(|line| (&line.entry, None));
        let by_pid: std::collections::BTreeMap<_, _> =
            own.chain(manual).map(|entry| (entry.0.pid, entry)).collect();
        by_pid.into_values().collect()
    }

    /// The extension's own lines, to be written again as they are; one that somebody has edited
    /// into asking for nothing known is left out.
    pub fn own_lines(&self) -> impl Iterator<Item = OwnLine> {
        let lines = self.own.iter().filter(|(entry, _)| !entry.functions.is_empty());
        lines.map(|(entry, group)| OwnLine {
            pid: entry.pid,
            functions: entry.functions,
            group: group.clone(),
        })
    }

    /// Replaces a person's lines for a pid by one.
    pub fn set(&mut self, entry: Entry) {
        self.unset(entry.pid);
        let text = entry.to_string().into_bytes();
        self.manual.push(ManualLine { number: 0, entry, text, comments: Vec::new() });
    }

    /// Removes a person's lines for a pid; returns how many there were.
    pub fn unset(&mut self, pid: u32) -> usize {
        let before = self.manual.len();
        self.manual.retain(|line| line.entry.pid != pid);
        before - self.manual.len()
    }

    /// The file as it should be. `enabled = false` leaves no entry standing: persons' lines rest
    /// as comments until instrumentation is switched on again.
    #[must_use]
    pub fn render(&self, own: &[OwnLine], enabled: bool) -> Vec<u8> {
        let mut out = HEADER.to_owned();
        if enabled {
            let mut own: Vec<_> = own.iter().collect();
            own.sort_by_key(|line| line.pid);
            for OwnLine { pid, functions, group } in own {
                let group = on_one_line(group);
                // Writing to a String does not fail.
                let _ = writeln!(out, "{pid}:{functions} {OWN_MARK} {group}");
            }
        } else {
            out.push_str("#: Instrumentation is switched off (instrumentation_enabled = false).\n");
        }
        let mut out = out.into_bytes();
        let mut push = |prefix: &[u8], line: &[u8]| {
            out.extend_from_slice(prefix);
            out.extend_from_slice(line);
            out.push(b'\n');
        };
        for comment in &self.loose {
            push(b"", comment);
        }
        if !self.loose.is_empty() {
            push(b"", b"");
        }
        for line in &self.manual {
            for comment in &line.comments {
                push(b"", comment);
            }
            push(if enabled { b"" } else { OFF_MARK }, &line.text);
        }
        for line in &self.malformed {
            push(b"", &line.text);
        }
        out
    }
}

/// What became of the runtime configuration in one pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeConfigOutcome {
    /// Processes in it.
    pub listed: usize,
    /// Whether it was written, or would be by a preview.
    pub changed: bool,
    /// What is wrong with persons' lines, and which were dropped since their process has ended.
    pub remarks: Vec<String>,
    /// Why it could not be written; the old one then stands.
    pub failure: Option<String>,
}

/// Writes the file unless it already says so; returns whether it was written.
///
/// # Errors
/// [`ControlError::Write`].
pub fn write_if_changed(path: &Path, old: &[u8], new: &[u8]) -> Result<bool, ControlError> {
    if old == new && path.exists() {
        return Ok(false);
    }
    atomic_file::replace(path, new, 0o644, Durability::PowerCut)
        .map(|()| true)
        .map_err(|source| ControlError::Write { path: path.to_owned(), source })
}

/// A line without the blanks at its end, of which a carriage return is one to every reader. No other
/// byte is: without it, a malformed line could become an entry.
fn without_end(mut line: &[u8]) -> &[u8] {
    while let [rest @ .., b' ' | b'\t' | b'\r'] = line {
        line = rest;
    }
    line
}

/// A line break in a group's name must not end the line.
fn on_one_line(group: &str) -> String {
    let printable: String = group.chars().filter(|letter| !letter.is_control()).collect();
    printable.trim().to_owned()
}

/// The group behind the mark of an own line.
fn own_group(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let comment = text.get(text.find('#')?..)?;
    Some(on_one_line(comment.strip_prefix(OWN_MARK)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpgauge_wire::{Function, plan_for};

    use super::*;

    fn own(pid: u32) -> OwnLine {
        let functions = [Function::Instructions, Function::Occupancy].into_iter().collect();
        OwnLine { pid, functions, group: "trainer".into() }
    }

    #[test]
    fn a_persons_line_survives_a_rewrite_with_its_comment_and_wins() {
        let by_hand = b"# looking into it\n4242 : 2,77 # mine\n\n# a thought\n";
        let config = RuntimeConfig::parse(by_hand);
        let written = config.render(&[own(4242), own(17)], true);
        assert_eq!(plan_for(&written, 4242).unwrap().to_string(), "4242:2,77");
        let text = String::from_utf8(written.clone()).unwrap();
        assert!(text.contains("# looking into it\n4242 : 2,77 # mine\n"), "{text}");
        assert!(text.contains("# a thought\n"), "{text}");
        assert_eq!(RuntimeConfig::parse(&written).render(&[own(4242), own(17)], true), written);
    }

    #[test]
    fn own_lines_are_replaced_by_the_next_rewrite() {
        let first = RuntimeConfig::default().render(&[own(1), own(2)], true);
        let second = RuntimeConfig::parse(&first).render(&[own(2), own(3)], true);
        assert_eq!(plan_for(&second, 1), None);
        assert!(plan_for(&second, 3).is_some());
        assert_eq!(RuntimeConfig::parse(&second).own.len(), 2);
    }

    #[test]
    fn switched_off_no_entry_stands_and_switched_on_the_persons_lines_are_back() {
        let config = RuntimeConfig::parse(b"# why\n5151:0 # mine\n");
        let off = config.render(&[own(1)], false);
        assert!(lines(&off).all(|line| matches!(line.kind, LineKind::Comment)));
        let on = RuntimeConfig::parse(&off).render(&[own(1)], true);
        assert_eq!(on, config.render(&[own(1)], true));
        assert!(plan_for(&on, 5151).is_some());
    }

    #[test]
    fn a_comment_that_begins_like_a_resting_line_stays_a_comment() {
        let config = RuntimeConfig::parse(b"#off for the weekend\n#off\n#off # 7:1\n5:0\n");
        assert_eq!(config.malformed, []);
        let text = String::from_utf8(config.render(&[], true)).unwrap();
        assert!(text.ends_with("#off for the weekend\n#off\n#off # 7:1\n5:0\n"), "{text}");
    }

    #[test]
    fn a_malformed_line_is_reported_and_kept() {
        let config = RuntimeConfig::parse(b"1:0\n51:\n");
        assert_eq!(config.malformed[0].number, 2);
        let written = config.render(&[], true);
        assert_eq!(RuntimeConfig::parse(&written).malformed[0].shown(), "51:");
    }

    #[test]
    fn foreign_bytes_and_line_ends_survive_a_rewrite_without_growing() {
        let config = RuntimeConfig::parse(b"\n\xff\r\r\r\n# \xfe\r\r\n");
        let written = config.render(&[], true);
        assert!(written.windows(1).any(|byte| byte == b"\xff"));
        assert_eq!(RuntimeConfig::parse(&written).render(&[], true), written);
    }

    #[test]
    fn a_malformed_line_never_becomes_an_entry() {
        let config = RuntimeConfig::parse(b"7:1\x0c\n7:2\x0b\r\n");
        assert_eq!(config.malformed.len(), 2);
        let written = config.render(&[], true);
        assert_eq!(plan_for(&written, 7), None);
    }

    #[test]
    fn an_unchanged_file_is_not_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runtime.conf");
        let (config, old) = RuntimeConfig::load(&path).unwrap();
        let new = config.render(&[own(1)], true);
        assert!(write_if_changed(&path, &old, &new).unwrap());
        let (config, old) = RuntimeConfig::load(&path).unwrap();
        assert!(!write_if_changed(&path, &old, &config.render(&[own(1)], true)).unwrap());
    }

    proptest! {
        #[test]
        fn a_rewrite_is_stable_and_keeps_every_persons_entry(
            file in "([1-9][0-9]{0,3}:[0-9](,[0-9])?( #=? ?x)?\r{0,2}\n|#( c|off x|off)?\r?\n| ?\n|#off 7:1\n|bad ?\n){0,12}",
            enabled: bool,
        ) {
            let config = RuntimeConfig::parse(file.as_bytes());
            let written = config.render(&[own(9_999)], enabled);
            let again = RuntimeConfig::parse(&written);
            prop_assert_eq!(again.render(&[own(9_999)], enabled), written);
            let entries = |config: &RuntimeConfig| config.manual.iter().map(|line| line.entry.clone()).collect::<Vec<_>>();
            prop_assert_eq!(entries(&again), entries(&config));
            prop_assert_eq!(again.malformed.len(), config.malformed.len());
        }
    }
}
