//! What the ids of one session mean.

use std::collections::HashMap;

use crate::interner::{Handle, Interner};

/// The six dictionaries, by the key under which a `dictionary_update` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Kernel,
    ScopeName,
    Function,
    Metric,
    SourceFile,
    FunctionSymbol,
}

impl Kind {
    pub(super) const ALL: [Self; 6] = [
        Self::Kernel,
        Self::ScopeName,
        Self::Function,
        Self::Metric,
        Self::SourceFile,
        Self::FunctionSymbol,
    ];

    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Kernel => "kernel_dict",
            Self::ScopeName => "scope_name_dict",
            Self::Function => "function_dict",
            Self::Metric => "metric_dict",
            Self::SourceFile => "source_file_dict",
            Self::FunctionSymbol => "func_symbol_dict",
        }
    }
}

/// Names a text of a session's dictionaries.
#[derive(Debug)]
pub(super) struct Entry;

/// Bytes of distinct texts that the dictionaries of one session may hold.
const LIMIT: usize = 8 << 20;

/// Ids below this are found by their place.
const DENSE: i64 = 65_536;

/// The dictionaries of one session.
#[derive(Debug)]
pub(super) struct Dictionaries {
    texts: Interner<Entry>,
    tables: [Table; Kind::ALL.len()],
}

#[derive(Debug, Default)]
struct Table {
    dense: Vec<Option<Handle<Entry>>>,
    sparse: HashMap<i64, Handle<Entry>>,
}

/// Why an id did not get its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It has another text, which it keeps.
    Redefined(String),
    /// Ids count from 1.
    NotAnId,
    /// The dictionaries are full.
    Full(crate::interner::Full),
}

impl Default for Dictionaries {
    fn default() -> Self {
        Self { texts: Interner::with_limit(LIMIT), tables: Default::default() }
    }
}

impl Dictionaries {
    /// Gives `id` its text.
    pub(super) fn define(&mut self, kind: Kind, id: i64, text: &str) -> Result<(), Refused> {
        if id < 1 {
            return Err(Refused::NotAnId);
        }
        if let Some(known) = self.text(kind, id) {
            return if known == text { Ok(()) } else { Err(Refused::Redefined(known.to_owned())) };
        }
        let (handle, _) = self.texts.intern(text).map_err(Refused::Full)?;
        let Some(table) = self.tables.get_mut(kind as usize) else { return Ok(()) };
        match usize::try_from(id) {
            Ok(place) if id < DENSE => {
                if table.dense.len() <= place {
                    table.dense.resize(place + 1, None);
                }
                if let Some(slot) = table.dense.get_mut(place) {
                    *slot = Some(handle);
                }
            }
            _ => drop(table.sparse.insert(id, handle)),
        }
        Ok(())
    }

    /// The text of `id`, if it has one.
    pub(super) fn text(&self, kind: Kind, id: i64) -> Option<&str> {
        let table = self.tables.get(kind as usize)?;
        let dense = usize::try_from(id).ok().and_then(|place| table.dense.get(place)).copied();
        let handle = match dense {
            Some(handle) => handle?,
            None => *table.sparse.get(&id)?,
        };
        Some(self.texts.text(handle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_its_first_text() {
        let mut dictionaries = Dictionaries::default();
        for id in [1, DENSE + 5] {
            assert_eq!(dictionaries.define(Kind::Kernel, id, "gemm"), Ok(()));
            assert_eq!(dictionaries.define(Kind::Kernel, id, "gemm"), Ok(()));
            let redefined = dictionaries.define(Kind::Kernel, id, "relu");
            assert_eq!(redefined, Err(Refused::Redefined("gemm".to_owned())));
            assert_eq!(dictionaries.text(Kind::Kernel, id), Some("gemm"));
            assert_eq!(dictionaries.text(Kind::Metric, id), None);
        }
        assert_eq!(dictionaries.define(Kind::Kernel, 0, "none"), Err(Refused::NotAnId));
        assert_eq!(dictionaries.text(Kind::Kernel, 2), None);
        assert_eq!(dictionaries.text(Kind::Kernel, -1), None);
    }
}
