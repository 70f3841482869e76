//! Durations and sizes as people write them: `"15s"`, `"64MiB"`.

use std::time::Duration;

const DURATION_UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZE_UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// A whole number and a unit: ms, s, m, h or d.
///
/// # Errors
/// Words that say what was expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    parse(text, &DURATION_UNITS).map(Duration::from_millis).ok_or_else(|| {
        format!("`{text}` is no duration: expected a whole number and a unit (ms, s, m, h, d), such as \"15s\"")
    })
}

/// A whole number and a unit, in bytes: B, KiB, MiB, GiB, kB, MB or GB.
///
/// # Errors
/// Words that say what was expected.
pub fn parse_size(text: &str) -> Result<u64, String> {
    parse(text, &SIZE_UNITS).ok_or_else(|| {
        format!("`{text}` is no size: expected a whole number and a unit (B, KiB, MiB, GiB), such as \"64MiB\"")
    })
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_a_whole_number_and_a_unit() {
        assert_eq!(parse_duration("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(parse_duration("250 ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        for wrong in ["", "15", "s", "1.5s", "-1s", "15 sec", "99999999999999999999s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
