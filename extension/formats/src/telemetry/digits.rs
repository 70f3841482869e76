//! Digits of all scripts, as Python's `str.isdigit` and `int` see them.

/// What a text of digits is as an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Digits {
    /// A letter is no digit, or there is none at all.
    No,
    /// All are digits, but at least one has no place in a decimal number, such as `²`.
    NotDecimal,
    /// A number beyond 128 bits.
    Huge,
    Is(i128),
}

/// Reads a text of digits, in whatever scripts.
pub(super) fn read(text: &str) -> Digits {
    let (mut value, mut decimal) = (Some(0_i128), true);
    for letter in text.chars() {
        match decimal_digit(letter) {
            Some(digit) => {
                let tens = value.and_then(|value| value.checked_mul(10));
                value = tens.and_then(|tens| tens.checked_add(digit.into()));
            }
            None if is_other_digit(letter) => decimal = false,
            None => return Digits::No,
        }
    }
    match value {
        _ if text.is_empty() => Digits::No,
        _ if !decimal => Digits::NotDecimal,
        Some(value) => Digits::Is(value),
        None => Digits::Huge,
    }
}

fn decimal_digit(letter: char) -> Option<u32> {
    let code = u32::from(letter);
    let place = ZEROS.partition_point(|zero| *zero <= code);
    let zero = place.checked_sub(1).and_then(|place| ZEROS.get(place))?;
    Some(code - zero).filter(|digit| *digit < 10)
}

fn is_other_digit(letter: char) -> bool {
    let code = u32::from(letter);
    OTHERS.iter().any(|(first, last)| (*first..=*last).contains(&code))
}

/// The zeros of Unicode 14's decimal digits (`Numeric_Type=Decimal`); nine more follow each.
#[rustfmt::skip]
const ZEROS: [u32; 66] = [
    0x0030, 0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6,
    0x0d66, 0x0de6, 0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80,
    0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0,
    0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0,
    0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0,
    0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];

/// Unicode 14's other digits (`Numeric_Type=Digit`), first and last of each range.
#[rustfmt::skip]
const OTHERS: [(u32, u32); 20] = [
    (0xb2, 0xb3), (0xb9, 0xb9), (0x1369, 0x1371), (0x19da, 0x19da), (0x2070, 0x2070),
    (0x2074, 0x2079), (0x2080, 0x2089), (0x2460, 0x2468), (0x2474, 0x247c), (0x2488, 0x2490),
    (0x24ea, 0x24ea), (0x24f5, 0x24fd), (0x24ff, 0x24ff), (0x2776, 0x277e), (0x2780, 0x2788),
    (0x278a, 0x2792), (0x10a40, 0x10a43), (0x10e60, 0x10e68), (0x11052, 0x1105a),
    (0x1f100, 0x1f10a),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_all_scripts_are_read() {
        for (text, digits) in [
            ("", Digits::No),
            ("0", Digits::Is(0)),
            ("01", Digits::Is(1)),
            ("-1", Digits::No),
            ("1 ", Digits::No),
            ("٣", Digits::Is(3)),
            ("1٣", Digits::Is(13)),
            ("９", Digits::Is(9)),
            ("\u{1d7ff}", Digits::Is(9)),
            ("²", Digits::NotDecimal),
            ("1①", Digits::NotDecimal),
            ("½", Digits::No),
            ("一", Digits::No),
            ("170141183460469231731687303715884105727", Digits::Is(i128::MAX)),
            ("170141183460469231731687303715884105728", Digits::Huge),
        ] {
            assert_eq!(read(text), digits, "{text}");
        }
    }

    #[test]
    fn the_digits_are_numeric_and_stand_in_order() {
        assert!(ZEROS.is_sorted_by(|one, next| one + 10 <= *next));
        for zero in ZEROS {
            assert!((zero..zero + 10).all(|code| char::from_u32(code).unwrap().is_numeric()));
        }
        for (first, last) in OTHERS {
            assert!((first..=last).all(|code| char::from_u32(code).unwrap().is_numeric()));
        }
    }
}
