//! Times as people write them, exact to the nanosecond.

use std::str::FromStr;
use std::time::UNIX_EPOCH;

/// A length of time: a number with `ns`, `us`, `ms` or `s` behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length(pub i64);

/// A moment of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds behind the trace's first event.
    Relative(i64),
    /// Nanoseconds since the Unix epoch.
    Epoch(i64),
}

/// From one moment, which belongs to it, to another, which does not; open where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Where it begins.
    pub from: Option<Moment>,
    /// Where it ends.
    pub to: Option<Moment>,
}

/// Why a time is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeFault {
    /// It has no unit, or none that is known.
    #[error("expected a number with ns, us, ms or s behind it (1.5ms), found {0:?}")]
    Length(String),
    /// It is finer than a nanosecond, or beyond all traces.
    #[error("{0:?} is no whole number of nanoseconds in 64 bits")]
    Range(String),
    /// It is neither a length nor an instant.
    #[error(
        "expected 1.5ms behind the trace's first event, 2026-01-31T12:00:00.5Z, or @ and nanoseconds since the epoch, found {0:?}"
    )]
    Moment(String),
    /// It has no `..`.
    #[error("expected START..END, either of which may be left out, found {0:?}")]
    Window(String),
    /// It ends before it begins.
    #[error("{0:?} ends before it begins")]
    Empty(String),
}

impl FromStr for Length {
    type Err = TimeFault;

    fn from_str(text: &str) -> Result<Self, TimeFault> {
        let fault = || TimeFault::Length(text.to_owned());
        let digits = text.trim_end_matches(|letter: char| letter.is_alphabetic());
        let (number, unit) = text.split_at(digits.len());
        let decimals = match unit {
            "ns" => 0,
            "us" | "µs" => 3,
            "ms" => 6,
            "s" => 9,
            _ => return Err(fault()),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
            return Err(fault());
        }
        let fraction = fraction.trim_end_matches('0');
        let range = || TimeFault::Range(text.to_owned());
        let zeros = decimals - i64::try_from(fraction.len()).map_err(|_| range())?;
        let zeros = usize::try_from(zeros).map_err(|_| range())?;
        let all = format!("{whole}{fraction}{}", "0".repeat(zeros));
        all.parse().map(Self).map_err(|_| range())
    }
}

impl FromStr for Moment {
    type Err = TimeFault;

    fn from_str(text: &str) -> Result<Self, TimeFault> {
        if let Some(nanoseconds) = text.strip_prefix('@') {
            let nanoseconds = nanoseconds.parse();
            return nanoseconds.map(Self::Epoch).map_err(|_| TimeFault::Moment(text.to_owned()));
        }
        if text.contains('T') {
            let instant = humantime::parse_rfc3339(text);
            let instant = instant.map_err(|_| TimeFault::Moment(text.to_owned()))?;
            let since = instant.duration_since(UNIX_EPOCH).ok();
            let since = since.and_then(|since| i64::try_from(since.as_nanos()).ok());
            return since.map(Self::Epoch).ok_or_else(|| TimeFault::Range(text.to_owned()));
        }
        match text.parse() {
            Ok(Length(nanoseconds)) => Ok(Self::Relative(nanoseconds)),
            Err(TimeFault::Length(text)) => Err(TimeFault::Moment(text)),
            Err(fault) => Err(fault),
        }
    }
}

impl FromStr for Window {
    type Err = TimeFault;

    fn from_str(text: &str) -> Result<Self, TimeFault> {
        let (from, to) = text.split_once("..").ok_or_else(|| TimeFault::Window(text.to_owned()))?;
        let moment = |text: &str| match text {
            "" => Ok(None),
            text => text.parse().map(Some),
        };
        let window = Self { from: moment(from)?, to: moment(to)? };
        let is_empty = match (window.from, window.to) {
            (Some(Moment::Relative(from)), Some(Moment::Relative(to)))
            | (Some(Moment::Epoch(from)), Some(Moment::Epoch(to))) => to <= from,
            _ => false,
        };
        if is_empty { Err(TimeFault::Empty(text.to_owned())) } else { Ok(window) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_exact() {
        for (text, nanoseconds) in [
            ("0ns", 0),
            ("1.5ms", 1_500_000),
            ("0.000000001s", 1),
            ("2.50us", 2_500),
            ("9µs", 9_000),
            ("9223372036.854775807s", i64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Length(nanoseconds)), "{text}");
        }
        for text in ["1", "ms", ".5s", "-1s", "1.5.0s", "1 s", "1m", "1e3ns"] {
            assert!(matches!(text.parse::<Length>(), Err(TimeFault::Length(_))), "{text}");
        }
        for text in ["0.5ns", "9223372036.854775808s", "0.0000000001s"] {
            assert!(matches!(text.parse::<Length>(), Err(TimeFault::Range(_))), "{text}");
        }
    }

    #[test]
    fn windows_may_be_open_and_may_name_instants() {
        let of = |text: &str| text.parse::<Window>();
        let window = |from, to| Ok(Window { from, to });
        assert_eq!(
            of("1us..2us"),
            window(Some(Moment::Relative(1_000)), Some(Moment::Relative(2_000)))
        );
        assert_eq!(of("1us.."), window(Some(Moment::Relative(1_000)), None));
        assert_eq!(
            of("..2024-02-01T15:08:42.000000001Z"),
            window(None, Some(Moment::Epoch(1_706_800_122_000_000_001)))
        );
        assert_eq!(of("@-5..@7"), window(Some(Moment::Epoch(-5)), Some(Moment::Epoch(7))));
        assert_eq!(of("2us..1us"), Err(TimeFault::Empty("2us..1us".to_owned())));
        assert_eq!(of("1us"), Err(TimeFault::Window("1us".to_owned())));
        assert_eq!(of("soon.."), Err(TimeFault::Moment("soon".to_owned())));
    }
}
