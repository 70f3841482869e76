//! Reads a TOML document key by key, so that every fault is found in one go.
//!
//! A derive on the whole document would stop at the first fault. Here each value is deserialised on
//! its own: a bad one is noted with its key and line, and reading goes on with the next.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// One thing that is wrong with a configuration, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line it stands on, from 1; `None` where no line says it (a missing key, the
    /// environment).
    pub line: Option<usize>,
    /// The full key, such as `export.headers.Authorization`; empty for the document as a whole.
    pub key: String,
    /// What is wrong, what was expected, what to do.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// Where each key of a document stands.
pub type KeyLines = BTreeMap<String, usize>;

/// A document being read: its text, and what was found so far.
pub struct Document<'i> {
    text: &'i str,
    faults: RefCell<Vec<Fault>>,
    lines: RefCell<KeyLines>,
}

impl<'i> Document<'i> {
    /// A document of this text.
    #[must_use]
    pub fn new(text: &'i str) -> Self {
        Self { text, faults: RefCell::default(), lines: RefCell::default() }
    }

    /// Its top level. Every fault of the TOML syntax is noted; what could be read is returned.
    pub fn root(&self) -> Section<'_, 'i> {
        let (root, syntax_faults) = DeTable::parse_recoverable(self.text);
        for fault in syntax_faults {
            let line = fault.span().map(|span| self.line_at(span.start));
            self.note(line, String::new(), format!("not valid TOML: {}", fault.message()));
        }
        Section::new(self, String::new(), None, root.into_inner())
    }

    /// Notes a fault at a key.
    pub fn note(&self, line: Option<usize>, key: String, message: String) {
        self.faults.borrow_mut().push(Fault { line, key, message });
    }

    /// All faults in the order of their lines, and where each key stands.
    #[must_use]
    pub fn finish(self) -> (Vec<Fault>, KeyLines) {
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|fault| fault.line.unwrap_or(usize::MAX));
        (faults, self.lines.into_inner())
    }

    fn line_at(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
    }
}

/// A table of the document; dropping it notes every key that nobody asked for.
pub struct Section<'d, 'i> {
    document: &'d Document<'i>,
    path: String,
    line: Option<usize>,
    table: DeTable<'i>,
    asked: Vec<&'static str>,
}

impl<'d, 'i> Section<'d, 'i> {
    fn new(
        document: &'d Document<'i>,
        path: String,
        line: Option<usize>,
        table: DeTable<'i>,
    ) -> Self {
        Self { document, path, line, table, asked: Vec::new() }
    }

    /// The value of a key. `None` when it is missing, or is of the wrong type (which is noted).
    pub fn take<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<T> {
        self.take_checked(key, Ok)
    }

    /// The value of a key after a check, whose words are noted when it fails.
    pub fn take_checked<T: DeserializeOwned, U>(
        &mut self,
        key: &'static str,
        check: impl FnOnce(T) -> Result<U, String>,
    ) -> Option<U> {
        let (line, path, value) = self.remove(key)?;
        let checked = match T::deserialize(ValueDeserializer::from(value)) {
            Ok(value) => check(value),
            Err(fault) => Err(fault.message().to_owned()),
        };
        checked.map_err(|message| self.document.note(Some(line), path, message)).ok()
    }

    /// Whether a key is there and nobody has taken it yet.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The table of a key; an absent one reads as empty.
    pub fn section(&mut self, key: &'static str) -> Section<'d, 'i> {
        let path = self.path_of(key);
        match self.remove(key) {
            None => Section::new(self.document, path, self.line, DeTable::new()),
            Some((line, path, value)) => self.expect_table(line, path, value),
        }
    }

    /// The tables of a key that holds a list of them, each with its own path `key[n]`.
    pub fn sections(&mut self, key: &'static str) -> Vec<Section<'d, 'i>> {
        let Some((line, path, value)) = self.remove(key) else { return Vec::new() };
        let DeValue::Array(items) = value.into_inner() else {
            self.document.note(Some(line), path, "expected a list of tables".to_owned());
            return Vec::new();
        };
        items
            .into_iter()
            .enumerate()
            .map(|(index, item)| {
                let line = self.document.line_at(item.span().start);
                let path = format!("{path}[{index}]");
                self.document.lines.borrow_mut().insert(path.clone(), line);
                self.expect_table(line, path, item)
            })
            .collect()
    }

    /// Everything in this table as name and text, for tables whose keys are the user's.
    pub fn into_strings(mut self) -> BTreeMap<String, String> {
        let mut strings = BTreeMap::new();
        for (key, value) in std::mem::take(&mut self.table) {
            let path = format!("{}.{}", self.path, key.get_ref());
            let line = self.document.line_at(key.span().start);
            self.document.lines.borrow_mut().insert(path.clone(), line);
            match value.into_inner() {
                DeValue::String(text) => {
                    strings.insert(key.into_inner().into_owned(), text.into_owned());
                }
                other => self.document.note(
                    Some(line),
                    path,
                    format!("expected a string, found {}", other.type_str()),
                ),
            }
        }
        strings
    }

    /// Notes a fault of this table as a whole, or of one of its keys that is missing.
    pub fn note(&self, key: Option<&str>, message: impl Into<String>) {
        let path = key.map_or_else(|| self.path.clone(), |key| self.path_of(key));
        let line = self.document.lines.borrow().get(&path).copied().or(self.line);
        self.document.note(line, path, message.into());
    }

    fn expect_table(
        &self,
        line: usize,
        path: String,
        value: Spanned<DeValue<'i>>,
    ) -> Section<'d, 'i> {
        let table = match value.into_inner() {
            DeValue::Table(table) => table,
            other => {
                let message = format!("expected a table, found {}", other.type_str());
                self.document.note(Some(line), path.clone(), message);
                DeTable::new()
            }
        };
        Section::new(self.document, path, Some(line), table)
    }

    fn remove(&mut self, key: &'static str) -> Option<(usize, String, Spanned<DeValue<'i>>)> {
        self.asked.push(key);
        let (name, value) = self.table.remove_entry(key)?;
        let line = self.document.line_at(name.span().start);
        let path = self.path_of(key);
        self.document.lines.borrow_mut().insert(path.clone(), line);
        Some((line, path, value))
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

impl Drop for Section<'_, '_> {
    fn drop(&mut self) {
        for (name, _) in std::mem::take(&mut self.table) {
            let line = self.document.line_at(name.span().start);
            let message = unknown_key(name.get_ref(), &self.asked);
            self.document.note(Some(line), self.path_of(name.get_ref()), message);
        }
    }
}

fn unknown_key(name: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .min()
        .filter(|(distance, _)| *distance <= 1 + name.len() / 4);
    match nearest {
        Some((_, nearest)) => format!("unknown key; did you mean `{nearest}`?"),
        None => format!("unknown key; known here: {}", known.join(", ")),
    }
}
