//! What the ids of one session mean.

use std::collections::HashMap;

use super::budget::{Budget, Spent};
use crate::interner::{Handle, Interner};

/// The six dictionaries, by the key under which a `dictionary_update` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

/// An id at most so far behind the others is found by its place; ids that skip more cost memory for
/// what they skip, and are looked up instead.
const GAP: usize = 64;

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
    /// The session's dictionaries are full.
    Full(crate::interner::Full),
    /// All sessions together are.
    Spent(Spent),
}

impl Default for Dictionaries {
    fn default() -> Self {
        Self { texts: Interner::with_limit(LIMIT), tables: Default::default() }
    }
}

impl Dictionaries {
    /// Gives `id` its text.
    pub(super) fn define(
        &mut self,
        kind: Kind,
        id: i64,
        text: &str,
        budget: &mut Budget,
    ) -> Result<(), Refused> {
        if id < 1 {
            return Err(Refused::NotAnId);
        }
        if let Some(known) = self.text(kind, id) {
            return if known == text { Ok(()) } else { Err(Refused::Redefined(known.to_owned())) };
        }
        budget.take(text).map_err(Refused::Spent)?;
        let (handle, _) = self.texts.intern(text).map_err(Refused::Full)?;
        let Some(table) = self.tables.get_mut(kind as usize) else { return Ok(()) };
        match usize::try_from(id) {
            Ok(place) if place <= table.dense.len() + GAP => {
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
        let dense =
            usize::try_from(id).ok().and_then(|place| table.dense.get(place)).copied().flatten();
        let handle = dense.or_else(|| table.sparse.get(&id).copied())?;
        Some(self.texts.text(handle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_its_first_text() {
        let (mut dictionaries, mut budget) = (Dictionaries::default(), Budget::default());
        let mut define = |kind, id, text| {
            let defined = dictionaries.define(kind, id, text, &mut budget);
            (defined, dictionaries.text(kind, id).map(str::to_owned))
        };
        for id in [1, 1_000_000] {
            let gemm = Some("gemm".to_owned());
            assert_eq!(define(Kind::Kernel, id, "gemm"), (Ok(()), gemm.clone()));
            assert_eq!(define(Kind::Kernel, id, "gemm"), (Ok(()), gemm.clone()));
            let redefined = Err(Refused::Redefined("gemm".to_owned()));
            assert_eq!(define(Kind::Kernel, id, "relu"), (redefined, gemm));
        }
        assert_eq!(define(Kind::Kernel, 0, "none"), (Err(Refused::NotAnId), None));
        for id in [-1, 2, 1_000_001] {
            assert_eq!(dictionaries.text(Kind::Kernel, id), None);
        }
        assert_eq!(dictionaries.text(Kind::Metric, 1), None);
    }

    #[test]
    fn an_id_far_ahead_is_still_known_when_the_others_have_come_up_to_it() {
        let (mut dictionaries, mut budget) = (Dictionaries::default(), Budget::default());
        for id in [500].into_iter().chain(1..1000) {
            assert_eq!(dictionaries.define(Kind::Kernel, id, &id.to_string(), &mut budget), Ok(()));
        }
        assert!((1..1000).all(|id| dictionaries.text(Kind::Kernel, id) == Some(&*id.to_string())));
    }
}
