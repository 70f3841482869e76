//! Lists of `name=value` in environment variables: `OTEL_RESOURCE_ATTRIBUTES`,
//! `OTEL_EXPORTER_OTLP_HEADERS` (W3C Baggage, without its `;` properties; both sides
//! percent-encoded).

use percent_encoding::percent_decode_str;

/// Why a list was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "entry {number} is not `name=value`; write `name=value,name=value`, with `%2C` for a comma in a value"
)]
pub struct ListFault {
    /// Which entry, from 1.
    pub number: usize,
}

/// Reads a list; blank entries are passed over.
///
/// # Errors
/// [`ListFault`] of the first entry that does not fit: half a list would mislabel what it labels.
pub fn parse(list: &str) -> Result<Vec<(String, String)>, ListFault> {
    list.split(',')
        .enumerate()
        .filter(|(_, item)| !item.trim().is_empty())
        .map(|(index, item)| parse_item(item).ok_or(ListFault { number: index + 1 }))
        .collect()
}

/// Reads one `name=value`.
#[must_use]
pub fn parse_item(item: &str) -> Option<(String, String)> {
    let (name, value) = item.split_once('=')?;
    let decode = |text: &str| {
        percent_decode_str(text.trim()).decode_utf8().ok().map(std::borrow::Cow::into_owned)
    };
    let (name, value) = (decode(name)?, decode(value)?);
    (!name.is_empty()).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_decoded_and_a_broken_entry_is_named() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(parse("a=1, b = x%2Cy ,,"), Ok(vec![pair("a", "1"), pair("b", "x,y")]));
        assert_eq!(parse("a=1,b"), Err(ListFault { number: 2 }));
        assert_eq!(parse("=1"), Err(ListFault { number: 1 }));
        assert_eq!(parse("a=%ff"), Err(ListFault { number: 1 }));
        assert_eq!(parse(""), Ok(Vec::new()));
    }
}
