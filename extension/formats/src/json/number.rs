//! Numbers as they are written, and as whole numbers without a detour through a float.

/// A number that follows JSON's grammar, as its digits stand in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number<'a> {
    digits: &'a str,
}

impl<'a> Number<'a> {
    pub(super) fn scanned(digits: &'a str) -> Self {
        Self { digits }
    }

    /// The number as it was written.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        self.digits
    }

    /// The nearest double; infinite beyond its range.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        // The grammar of JSON is within that of `f64::from_str`.
        self.digits.parse().unwrap_or(f64::NAN)
    }

    /// Whether the value is a whole number, in whatever spelling: `1`, `1.0`, `10e-1`.
    #[must_use]
    pub fn is_whole(self) -> bool {
        let Parts { whole, fraction, exponent, .. } = self.parts();
        let zero = |text: &str| text.bytes().all(|digit| digit == b'0');
        if zero(whole) && zero(fraction) {
            return true;
        }
        // Digits behind the decimal point once it has been moved by the exponent.
        let behind = fraction.trim_end_matches('0').len();
        let trailing =
            if behind == 0 { whole.len() - whole.trim_end_matches('0').len() } else { 0 };
        i64::try_from(behind).is_ok_and(|behind| behind <= exponent)
            || exponent < 0
                && i64::try_from(trailing).is_ok_and(|zeros| behind == 0 && zeros >= -exponent)
    }

    /// Whether a minus stands before a value that is not zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        let Parts { negative, whole, fraction, .. } = self.parts();
        negative && whole.bytes().chain(fraction.bytes()).any(|digit| digit != b'0')
    }

    /// The value times 10^`shift`, where that is a whole number within the range of `i128`.
    ///
    /// `shift` 0 gives whole numbers, 3 turns decimal microseconds into nanoseconds: exactly, or not
    /// at all.
    #[must_use]
    pub fn scaled(self, shift: i64) -> Option<i128> {
        if let Some(value) = self.short(shift) {
            return Some(i128::from(value));
        }
        let Parts { negative, whole, fraction, exponent } = self.parts();
        let fraction = fraction.trim_end_matches('0');
        let mut value: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            value = value.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
        }
        if value == 0 {
            return Some(0);
        }
        let move_by =
            exponent.checked_add(shift)?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        let tens = 10_i128.checked_pow(u32::try_from(move_by.unsigned_abs()).ok()?)?;
        let value = match move_by {
            0.. => value.checked_mul(tens)?,
            _ if value % tens == 0 => value / tens,
            _ => return None,
        };
        Some(if negative { -value } else { value })
    }

    /// What [`scaled`](Self::scaled) gives, for the numbers that logs are full of: few digits and no
    /// exponent. `None` says nothing of the others.
    fn short(self, shift: i64) -> Option<i64> {
        const MOST_DIGITS: usize = 18;
        let (negative, digits) = match self.digits.as_bytes() {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        if digits.len() > MOST_DIGITS {
            return None;
        }
        let (mut value, mut behind_point) = (0_i64, None);
        for byte in digits {
            match byte {
                b'0'..=b'9' => {
                    value = value * 10 + i64::from(byte - b'0');
                    behind_point = behind_point.map(|count| count + 1);
                }
                b'.' => behind_point = Some(0),
                _ => return None,
            }
        }
        let tens = u32::try_from(shift - behind_point.unwrap_or(0)).ok()?;
        let value = value.checked_mul(10_i64.checked_pow(tens)?)?;
        Some(if negative { -value } else { value })
    }

    /// The value as an integer of the wanted type, where it is one.
    #[must_use]
    pub fn whole<T: TryFrom<i128>>(self) -> Option<T> {
        self.scaled(0).and_then(|value| T::try_from(value).ok())
    }

    fn parts(self) -> Parts<'a> {
        let (negative, rest) = match self.digits.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, self.digits),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, clamped_exponent(exponent)),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Parts { negative, whole, fraction, exponent }
    }
}

struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
}

/// An exponent of any length; beyond a billion all are alike.
fn clamped_exponent(text: &str) -> i64 {
    const LIMIT: i64 = 1_000_000_000;
    let magnitude = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let magnitude = match magnitude.len() {
        0 => 0,
        1..=9 => magnitude.parse().unwrap_or(LIMIT),
        _ => LIMIT,
    };
    if text.starts_with('-') { -magnitude } else { magnitude }
}

/// The length of the number that `bytes` begin with, or what is wrong and behind how many bytes.
#[inline]
pub(super) fn scan(bytes: &[u8]) -> Result<usize, (&'static str, usize)> {
    let behind_digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let start = usize::from(bytes.first() == Some(&b'-'));
    let mut at = behind_digits(start);
    if at == start {
        return Err(("a number was expected", at));
    }
    if at > start + 1 && bytes.get(start) == Some(&b'0') {
        return Err(("a number does not begin with 0 and another digit", start + 1));
    }
    if bytes.get(at) == Some(&b'.') {
        let fraction = at + 1;
        at = behind_digits(fraction);
        if at == fraction {
            return Err(("a digit was expected behind the point", at));
        }
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let exponent = at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        at = behind_digits(exponent);
        if at == exponent {
            return Err(("a digit was expected in the exponent", at));
        }
    }
    Ok(at)
}

/// An integer of up to 18 digits that nothing but the end of a value follows, and its length.
#[inline]
pub(super) fn plain_integer(bytes: &[u8]) -> Option<(i64, usize)> {
    let negative = bytes.first() == Some(&b'-');
    let start = usize::from(negative);
    let mut value = 0_i64;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    let count = at - start;
    // 19 digits may overflow, and `i64::MAX` has 19: those up to 9.2e18 are told by their first digit.
    let fits = count <= 18 || count == 19 && bytes.get(start).is_some_and(|first| *first < b'9');
    let leading_zero = count > 1 && bytes.get(start) == Some(&b'0');
    if count == 0 || !fits || leading_zero || matches!(bytes.get(at), Some(b'.' | b'e' | b'E')) {
        return None;
    }
    Some((if negative { -value } else { value }, at))
}
