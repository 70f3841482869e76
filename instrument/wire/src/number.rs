//! Numbers as the files spell them: `17`, `1.5`, `1.23457e+06`.
//!
//! The quick way covers what modules write; everything else goes through the standard library's
//! parser, so both agree by construction (and by the property test below).

/// Bytes without the blanks, tabs and carriage returns around them.
#[must_use]
pub fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t' | b'\r'] = bytes {
        bytes = rest;
    }
    bytes
}

/// A decimal integer of digits alone.
#[must_use]
pub fn parse_integer(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Powers of ten that an f64 holds exactly and that fit the quick way.
const EXACT_POWERS_OF_TEN: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// A number in integer, decimal or exponent notation, correctly rounded. Names such as `nan` and
/// `inf` are returned as the values that they name, for the caller to refuse with the right words.
#[must_use]
pub fn parse_float(text: &[u8]) -> Option<f64> {
    parse_short_decimal(text).or_else(|| std::str::from_utf8(text).ok()?.parse().ok())
}

/// Up to 15 significant digits with at most one point: mantissa and power of ten are both exact in
/// an f64, so one division rounds correctly (Clinger, "How to read floating point numbers
/// accurately", 1990).
pub(crate) fn parse_short_decimal(text: &[u8]) -> Option<f64> {
    if text.len() > 16 {
        return None;
    }
    let mut mantissa: u64 = 0;
    let mut digits = 0_usize;
    let mut point_after: Option<usize> = None;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = mantissa * 10 + u64::from(digit);
            digits += 1;
        } else if byte == b'.' && point_after.is_none() {
            point_after = Some(digits);
        } else {
            return None;
        }
    }
    if digits == 0 || digits > 15 {
        return None;
    }
    let decimals = digits - point_after.unwrap_or(digits);
    #[expect(clippy::cast_precision_loss, reason = "at most 15 digits: exact")]
    let mantissa = mantissa as f64;
    EXACT_POWERS_OF_TEN.get(decimals).map(|power| mantissa / power)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_quick_way_and_the_standard_parser_agree(text in "[0-9]{0,9}\\.?[0-9]{0,9}(e[+-]?[0-9]{1,2})?") {
            prop_assert_eq!(parse_float(text.as_bytes()), text.parse::<f64>().ok());
        }

        #[test]
        fn integers_read_back(value: u64) {
            prop_assert_eq!(parse_integer(value.to_string().as_bytes()), Some(value));
        }
    }

    #[test]
    fn an_integer_beyond_64_bits_is_none() {
        assert_eq!(parse_integer(b"18446744073709551616"), None);
        assert_eq!(parse_integer(b""), None);
        assert_eq!(parse_integer(b"+1"), None);
    }
}
