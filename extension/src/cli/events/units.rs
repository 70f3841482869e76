//! Numbers for people.

use std::time::{Duration, UNIX_EPOCH};

use warpgauge_formats::time::{Span, Timestamp};

/// Nanoseconds in the unit that gives one to three digits before the point.
pub(super) fn time(nanoseconds: i128) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let (unit, name) = match nanoseconds.unsigned_abs() {
        0..1_000 => return format!("{nanoseconds} ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        1_000_000_000..60_000_000_000 => (1_000_000_000, "s"),
        minutes => {
            let seconds = minutes / 1_000_000_000;
            let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
            return match hours {
                0 => format!("{sign}{minutes}m {seconds}s"),
                _ => format!("{sign}{hours}h {minutes}m {seconds}s"),
            };
        }
    };
    let thousandths = nanoseconds.unsigned_abs() * 1_000 / unit;
    format!("{sign}{}.{:03} {name}", thousandths / 1_000, thousandths % 1_000)
}

/// Bytes in the unit that gives one to four digits before the point.
pub(super) fn bytes(bytes: i128) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let sign = if bytes < 0 { "-" } else { "" };
    let (mut tenths, mut unit) = (bytes.unsigned_abs() * 10, "B");
    for larger in UNITS {
        if tenths < 10_240 {
            break;
        }
        (tenths, unit) = (tenths / 1_024, larger);
    }
    match unit {
        "B" => format!("{bytes} B"),
        _ => format!("{sign}{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

/// A part of a whole in percent, with one digit.
pub(super) fn share(part: i128, whole: i128) -> String {
    if whole <= 0 {
        return "-".to_owned();
    }
    let thousandths = (part * 1_000 + whole / 2) / whole;
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

/// An instant of the wall clock in UTC; of another clock its seconds.
pub(super) fn instant(time: Timestamp) -> String {
    let since_epoch = u64::try_from(time.0).map(Duration::from_nanos);
    match since_epoch {
        Ok(since_epoch) if time.is_wall_clock() => {
            humantime::format_rfc3339_nanos(UNIX_EPOCH + since_epoch).to_string()
        }
        _ => {
            let sign = if time.0 < 0 { "-" } else { "" };
            let nanoseconds = time.0.unsigned_abs();
            format!("{sign}{}.{:09} s", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
        }
    }
}

/// What is to be known of a log whose times are no wall clock's, and of what makes them one.
pub(super) fn offset(offset: Option<Span>) -> String {
    let told = "its times count from no epoch";
    match offset {
        Some(Span(offset)) => format!(
            "{told}; if the file was last changed at its last event, adding {offset} ns makes them Unix time"
        ),
        None => format!("{told}, and nothing tells when that clock began"),
    }
}

/// How many of a thing: `1 line`, `2 lines`.
pub(super) fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_that_fits() {
        for (nanoseconds, shown) in [
            (0, "0 ns"),
            (-999, "-999 ns"),
            (1_500, "1.500 us"),
            (999_999, "999.999 us"),
            (-2_000_000, "-2.000 ms"),
            (59_999_999_999, "59.999 s"),
            (3_600_000_000_000, "1h 0m 0s"),
        ] {
            assert_eq!(time(nanoseconds), shown);
        }
        for (count, shown) in
            [(0, "0 B"), (1_023, "1023 B"), (1_536, "1.5 KiB"), (5 << 30, "5.0 GiB")]
        {
            assert_eq!(bytes(count), shown);
        }
        assert_eq!(share(1, 3), "33.3 %");
        assert_eq!(share(1, 0), "-");
        assert_eq!(instant(Timestamp(1_706_800_122_000_000_001)), "2024-02-01T15:08:42.000000001Z");
        assert_eq!(instant(Timestamp(191_093_942_715_200)), "191093.942715200 s");
    }
}
