//! How long a process has been running, for people.

/// The two largest units of the time between two moments in nanoseconds, such as `2h 13m`. A
/// start in the future, where the clock was set back, is `0s`.
pub(super) fn age(start: u64, now: u64) -> String {
    let seconds = now.saturating_sub(start) / 1_000_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {}m", minutes % 60),
        (_, _, _) => format!("{days}d {}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_largest_units_are_shown() {
        let shown = |seconds: u64| age(5, 5 + seconds * 1_000_000_000);
        assert_eq!(shown(0), "0s");
        assert_eq!(shown(59), "59s");
        assert_eq!(shown(60), "1m 0s");
        assert_eq!(shown(3_599), "59m 59s");
        assert_eq!(shown(3_600 * 2 + 60 * 13 + 9), "2h 13m");
        assert_eq!(shown(86_400 * 400 + 3_600), "400d 1h");
        assert_eq!(age(9_000_000_000, 1), "0s");
    }
}
