//! The library's own log: few lines, never on the host's output unless asked for.
//!
//! ```text
//! 2026-09-16T10:00:00.123Z 4242 listed for occupancy: measuring through libcupti.so.13
//! ```
//!
//! A line is one `write` to a file opened for appending, so lines of several processes do not mix.
//! The file is opened for each line: a program that closes all descriptors when it becomes a daemon
//! would otherwise leave us with a number that soon means another file.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::libc;

use crate::descriptors::open_above_standard;

/// No line is longer, without its time and pid: paths and names come from elsewhere.
const MAX_LINE_CHARACTERS: usize = 1024;

/// Where the log ends: one last line says so.
const MAX_LOG_BYTES: u64 = 10 << 20;

/// Writes lines for the operator.
#[derive(Debug, Default)]
pub struct Log {
    file: Option<PathBuf>,
    console: bool,
    verbose: bool,
    full: bool,
}

impl Log {
    /// A log into `file`, and onto standard error if `console`.
    #[must_use]
    pub fn new(file: Option<PathBuf>, console: bool, verbose: bool) -> Self {
        Self { file, console, verbose, full: false }
    }

    /// Writes one line, whatever is in `what`: control characters are escaped, and what is too long
    /// ends in `...`.
    pub fn say(&mut self, what: impl Display) {
        let what = one_line(&what.to_string());
        let line = format!("{} {} {what}\n", timestamp(SystemTime::now()), std::process::id());
        if self.console {
            // Nobody is left to tell when standard error is closed.
            let _written = io::stderr().write_all(line.as_bytes());
        }
        // The same holds for the log itself.
        let _written = self.append(&line);
    }

    /// Writes one line if the operator asked for details.
    pub fn say_details(&mut self, what: impl Display) {
        if self.verbose {
            self.say(what);
        }
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        if self.full {
            return Ok(());
        }
        // Non-blocking, in case somebody put a pipe there.
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o644);
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        let file = open_above_standard(&options, path)?;
        if file.metadata()?.len() < MAX_LOG_BYTES {
            return (&*file).write_all(line.as_bytes());
        }
        self.full = true;
        let last = format!(
            "{} {} the log is full at {MAX_LOG_BYTES} bytes; this process writes no more\n",
            timestamp(SystemTime::now()),
            std::process::id()
        );
        (&*file).write_all(last.as_bytes())
    }
}

/// What a terminal shows as it is, on one line.
fn one_line(text: &str) -> String {
    let mut characters = text.chars();
    let mut line = String::with_capacity(text.len().min(MAX_LINE_CHARACTERS));
    for character in characters.by_ref().take(MAX_LINE_CHARACTERS) {
        if character.is_control() || is_direction_mark(character) {
            line.extend(character.escape_unicode());
        } else {
            line.push(character);
        }
    }
    if characters.next().is_some() {
        line.push_str("...");
    }
    line
}

/// Characters that make the ones around them appear in another order (Unicode, UAX 9, table 4).
fn is_direction_mark(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A point in time as people read it, in UTC with milliseconds.
fn timestamp(time: SystemTime) -> String {
    const SECONDS_PER_DAY: u64 = 86_400;
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, second) =
        (since_epoch.as_secs() / SECONDS_PER_DAY, since_epoch.as_secs() % SECONDS_PER_DAY);
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let millisecond = since_epoch.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar. Years are
/// counted from March, so that the leap day is the last of its year (Hinnant, "chrono-compatible
/// low-level date algorithms", `civil_from_days`).
fn civil_date(days: u64) -> (u64, u64, u64) {
    const DAYS_FROM_YEAR_0_MARCH: u64 = 719_468;
    const DAYS_PER_ERA: u64 = 146_097;
    let days = days + DAYS_FROM_YEAR_0_MARCH;
    let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_line_is_one_line_of_bounded_length_that_no_terminal_obeys() {
        assert_eq!(one_line("a\u{1b}[2Jb\nc\u{202e}é"), "a\\u{1b}[2Jb\\u{a}c\\u{202e}é");
        let long = one_line(&"é".repeat(1 << 20));
        assert_eq!(long.chars().count(), MAX_LINE_CHARACTERS + 3);
        assert!(long.ends_with("é..."));
    }

    #[test]
    fn days_become_dates_across_leap_years() {
        assert_eq!(civil_date(0), (1970, 1, 1));
        assert_eq!(civil_date(11_016), (2000, 2, 29));
        assert_eq!(civil_date(20_712), (2026, 9, 16));
        let noon = UNIX_EPOCH + Duration::from_millis(20_712 * 86_400_000 + 43_200_007);
        assert_eq!(timestamp(noon), "2026-09-16T12:00:00.007Z");
    }

    #[test]
    fn a_full_log_says_so_once_and_then_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        File::create(&path).unwrap().set_len(MAX_LOG_BYTES).unwrap();
        let mut log = Log::new(Some(path.clone()), false, false);
        log.say("one");
        log.say("two");
        let text = std::fs::read(&path).unwrap();
        let added = String::from_utf8(text[MAX_LOG_BYTES as usize..].to_vec()).unwrap();
        assert_eq!(added.lines().count(), 1);
        assert!(added.contains("the log is full"), "{added}");
    }

    #[test]
    fn details_are_for_those_who_ask() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        Log::new(Some(path.clone()), false, false).say_details("hidden");
        assert!(!path.exists());
        Log::new(Some(path.clone()), false, true).say_details("shown");
        assert!(std::fs::read_to_string(&path).unwrap().ends_with(" shown\n"));
    }
}
