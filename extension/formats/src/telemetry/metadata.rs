//! The free part of an event: an object whose values nobody looks into.

use std::borrow::Cow;
use std::collections::HashMap;

use super::value::Value;
use crate::json::{self, Reader, write};

/// The members of an event's `metadata`, in their order.
///
/// Values are kept as JSON text, so that their numbers stay as they were written; only blanks
/// between their parts are gone. Of a key that comes twice the last value counts, at the place of
/// the first, as in Python.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata<'a> {
    members: Vec<Member<'a>>,
}

/// A key, and its value as JSON text.
pub(super) type Member<'a> = (Cow<'a, str>, Cow<'a, str>);

impl<'a> Metadata<'a> {
    /// Reads the object that `text` is.
    ///
    /// # Errors
    /// Where it is none.
    pub fn from_json(text: &'a str) -> json::Result<Self> {
        let mut reader = Reader::new(text);
        let metadata = Self::read(&mut reader)?;
        reader.end().map(|()| metadata)
    }

    pub(super) fn read(reader: &mut Reader<'a>) -> json::Result<Self> {
        let mut members = vec![];
        reader.enter_object()?;
        while let Some(key) = reader.next_key()? {
            members.push((key, compact(reader.skip()?)));
        }
        Ok(Self::of(members))
    }

    /// Members of which a later one replaces an earlier one with the same key.
    pub(super) fn of(mut members: Vec<Member<'a>>) -> Self {
        if has_a_key_twice(&members) {
            let mut places = HashMap::new();
            let mut last: Vec<Member<'a>> = vec![];
            for (key, value) in members {
                let place = *places.entry(key.clone()).or_insert(last.len());
                match last.get_mut(place) {
                    Some(member) => member.1 = value,
                    None => last.push((key, value)),
                }
            }
            members = last;
        }
        Self { members }
    }

    /// The members with `others`, which replace those with their keys.
    pub(super) fn folded(self, others: impl IntoIterator<Item = Member<'a>>) -> Self {
        let mut members = self.members;
        members.extend(others);
        Self::of(members)
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.members.retain(|(key, _)| keep(key));
    }

    /// The value under a key, as JSON text.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    pub(super) fn value(&self, key: &str) -> Option<Value<'_>> {
        self.get(key).and_then(|text| Value::read(&mut Reader::new(text)).ok())
    }

    /// The keys and their values as JSON text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members.iter().map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Appends the object as JSON text on one line.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (place, (key, value)) in self.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            write::text(out, key);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
        out.push(b'}');
    }

    /// The same, borrowing from nothing.
    #[must_use]
    pub fn into_owned(self) -> Metadata<'static> {
        Metadata { members: self.members.into_iter().map(owned).collect() }
    }
}

pub(super) fn owned((key, value): Member<'_>) -> Member<'static> {
    (key.into_owned().into(), value.into_owned().into())
}

fn has_a_key_twice(members: &[Member<'_>]) -> bool {
    // Comparing each with each is quicker for the few members that events have.
    const FEW: usize = 12;
    if members.len() > FEW {
        let mut keys: Vec<_> = members.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        return keys.windows(2).any(|pair| pair.first() == pair.last());
    }
    let mut rest = members.iter();
    while let Some((key, _)) = rest.next() {
        if rest.clone().any(|(other, _)| other == key) {
            return true;
        }
    }
    false
}

/// A right JSON value without the blanks between its parts, and with the integer 0 for -0, which the
/// reference does not tell from it.
pub(super) fn compact(text: &str) -> Cow<'_, str> {
    if !text.starts_with(['{', '[']) {
        return if text == "-0" { "0".into() } else { text.into() };
    }
    let (mut quoted, mut escaped) = (false, false);
    let mut shorter = String::with_capacity(text.len());
    let mut letters = text.chars();
    let mut last = ' ';
    while let Some(letter) = letters.next() {
        // Not of an exponent, and not where a fraction or an exponent follows.
        let is_sign = !quoted && letter == '-' && !matches!(last, 'e' | 'E');
        if is_sign && is_zero(letters.clone()) {
            continue;
        }
        if quoted || !letter.is_ascii_whitespace() {
            shorter.push(letter);
        }
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
        last = letter;
    }
    if shorter.len() == text.len() { text.into() } else { shorter.into() }
}

/// Whether the digits that follow are those of the integer 0.
fn is_zero(mut rest: impl Iterator<Item = char>) -> bool {
    rest.next() == Some('0') && !matches!(rest.next(), Some('.' | 'e' | 'E'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value as Tree;

    #[test]
    fn of_a_key_that_comes_twice_the_last_value_counts_at_the_place_of_the_first() {
        for more in [0, 40] {
            let more: String = (0..more).map(|key| format!(",\"{key}\":0")).collect();
            let text = format!(r#"{{"a":1,"b":[2],"a":3{more}}}"#);
            let metadata = Metadata::from_json(&text).unwrap();
            let first: Vec<_> = metadata.iter().take(2).collect();
            assert_eq!(first, [("a", "3"), ("b", "[2]")]);
        }
    }

    #[test]
    fn the_integer_zero_has_no_sign_and_other_numbers_keep_theirs() {
        let text = r#"{"a":-0,"b":[ -0.0, -0e1,1e-0,-5,"-0",-0 ]}"#;
        assert_eq!(compact(text), r#"{"a":0,"b":[-0.0,-0e1,1e-0,-5,"-0",0]}"#);
        assert_eq!((compact("-0"), compact("-0.0")), ("0".into(), "-0.0".into()));
    }

    proptest! {
        #[test]
        fn a_value_loses_its_blanks_and_nothing_else(
            texts in prop::collection::vec("[ab \\n\"\\\\{]{0,8}", 0..5), number in any::<i64>(),
        ) {
            let tree = serde_json::json!({"x y": texts, "n": [number, {"z": null}]});
            let pretty = serde_json::to_string_pretty(&tree).unwrap();
            let compact = compact(&pretty);
            prop_assert_eq!(compact.as_ref(), tree.to_string());
            prop_assert_eq!(serde_json::from_str::<Tree>(&compact).unwrap(), tree);
        }
    }
}
