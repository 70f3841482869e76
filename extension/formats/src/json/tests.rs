use super::*;
use proptest::prelude::*;
use serde_json::Value;

/// Reads a whole text into the tree of another library, for comparison.
fn tree(text: &str) -> Result<Value> {
    fn value(reader: &mut Reader<'_>) -> Result<Value> {
        Ok(match reader.peek()? {
            Kind::Object => {
                let mut map = serde_json::Map::new();
                reader.enter_object()?;
                while let Some(key) = reader.next_key()? {
                    map.insert(key.into_owned(), value(reader)?);
                }
                Value::Object(map)
            }
            Kind::Array => {
                let mut list = vec![];
                reader.enter_array()?;
                while reader.next_item()? {
                    list.push(value(reader)?);
                }
                Value::Array(list)
            }
            Kind::Text => Value::String(reader.text()?.into_owned()),
            Kind::Number => {
                let number = reader.number()?;
                match number.whole::<i64>().filter(|_| !number.as_str().contains(['.', 'e', 'E'])) {
                    Some(whole) => Value::from(whole),
                    None => Value::from(number.as_f64()),
                }
            }
            Kind::Boolean => Value::Bool(reader.boolean()?),
            Kind::Null => reader.null().map(|()| Value::Null)?,
        })
    }
    let mut reader = Reader::new(text);
    let value = value(&mut reader)?;
    reader.end()?;
    Ok(value)
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn reads_what_another_library_writes(value in any_value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        prop_assert_eq!(tree(&text.unwrap()), Ok(value));
    }

    #[test]
    fn agrees_with_another_library_on_mutated_texts(
        value in any_value(), at in any::<prop::sample::Index>(), with in "[\\[\\]{},:\"\\\\0-9eE.+ntfu -]",
    ) {
        let mut letters: Vec<_> = value.to_string().chars().collect();
        let at = at.index(letters.len());
        letters.splice(at..=at, with.chars());
        let text: String = letters.into_iter().collect();
        // A double out of range is an error there and infinite here, where only digits are kept.
        if let Ok(theirs) = serde_json::from_str::<Value>(&text) {
            if let Ok(ours) = tree(&text) {
                prop_assert_eq!(!ours.to_string().is_empty(), !theirs.to_string().is_empty());
            } else {
                prop_assert!(false, "refused here, accepted there: {}", text);
            }
        } else if let Ok(ours) = tree(&text) {
            prop_assert!(text.contains(['e', 'E']), "accepted here, refused there: {} {}", text, ours);
        }
    }

    #[test]
    fn whatever_the_text_reading_ends(text in any::<String>()) {
        let _ = tree(&text);
    }

    #[test]
    fn a_text_is_written_so_that_it_reads_back(text in any::<String>()) {
        let mut out = vec![];
        write::text(&mut out, &text);
        let out = String::from_utf8(out).unwrap();
        prop_assert_eq!(Reader::new(&out).text().unwrap(), text.as_str());
        prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }

    #[test]
    fn a_float_is_written_so_that_it_reads_back(value in prop::num::f64::NORMAL | prop::num::f64::ZERO) {
        let mut out = vec![];
        write::float(&mut out, value);
        let out = String::from_utf8(out).unwrap();
        prop_assert_eq!(Reader::new(&out).number().unwrap().as_f64(), value);
    }

    #[test]
    fn a_prefix_of_a_right_text_is_torn_and_nothing_else(value in any_value(), at in any::<prop::sample::Index>()) {
        let text = Value::Array(vec![value]).to_string();
        let at = at.index(text.len());
        prop_assume!(text.is_char_boundary(at));
        let fault = tree(&text[..at]).unwrap_err();
        prop_assert!(fault.torn, "{:?} in {}", fault, &text[..at]);
    }

    #[test]
    fn a_number_with_few_digits_is_scaled_like_one_with_many(
        digits in "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,12})?", shift in -4..20_i64,
    ) {
        // The same value, but too long for the short way.
        let (point, zeros) = (if digits.contains('.') { "" } else { "." }, "0".repeat(25));
        let long = format!("{digits}{point}{zeros}");
        let scaled = |text: &str| Reader::new(text).number().unwrap().scaled(shift);
        prop_assert_eq!(scaled(&digits), scaled(&long));
    }

    #[test]
    fn a_decimal_is_scaled_exactly(whole in 0..1_000_000_000_000_000_i64, fraction in 0..1000_i64) {
        let text = format!("{whole}.{fraction:03}");
        let number = Reader::new(&text).number().unwrap();
        prop_assert_eq!(number.scaled(3), Some(i128::from(whole) * 1000 + i128::from(fraction)));
        prop_assert_eq!(number.is_whole(), fraction == 0);
    }
}

#[test]
fn a_whole_number_is_one_in_every_spelling() {
    let whole = |text: &'static str| Reader::new(text).number().unwrap();
    for (text, value) in [
        ("1.0", 1),
        ("10e-1", 1),
        ("1e3", 1000),
        ("0.5e1", 5),
        ("-0", 0),
        ("0e99999999999", 0),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("1500E-2", 15),
    ] {
        assert_eq!(whole(text).whole::<i64>(), Some(value), "{text}");
        assert!(whole(text).is_whole(), "{text}");
    }
    for text in ["1.5", "15e-1", "1e-1", "1.23e1"] {
        assert_eq!(whole(text).whole::<i64>(), None, "{text}");
        assert!(!whole(text).is_whole(), "{text}");
    }
    assert!(whole("1e400").is_whole());
    assert_eq!(whole("1e400").whole::<i64>(), None);
    assert_eq!(whole("9223372036854775808").whole::<i64>(), None);
    assert_eq!(whole("9223372036854775808").whole::<u64>(), Some(1 << 63));
}

#[test]
fn a_plain_integer_is_taken_only_where_it_fits() {
    let take = |text: &'static str| Reader::new(text).plain_integer();
    assert_eq!(take("1706800123000000000,"), Some(1_706_800_123_000_000_000));
    assert_eq!(take("-7]"), Some(-7));
    for text in ["9999999999999999999", "1.0", "1e3", "01", "-", "\"1\"", ""] {
        assert_eq!(take(text), None, "{text}");
    }
}

#[test]
fn a_fault_names_its_byte() {
    let fault = |text: &str| tree(text).unwrap_err();
    assert_eq!(fault("{\"a\":01}").offset, 6);
    assert_eq!(fault("{\"a\":1,}").offset, 7);
    assert_eq!(fault("[1 2]").offset, 3);
    assert_eq!(fault("[NaN]").offset, 1);
    assert_eq!(fault("[\"a\u{1}\"]").offset, 3);
    assert_eq!(fault("[\"\\ud800\"]").what, "half of a surrogate pair is no character");
    assert_eq!(fault("[] x").what, "something stands behind the value");
    let deep = "[".repeat(200);
    assert_eq!(fault(&deep).what, "nested more than 128 deep");
}
