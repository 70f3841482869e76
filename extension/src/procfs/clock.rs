//! From ticks since boot to nanoseconds since the epoch, in integers.

/// When the machine booted, and how long a tick is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootClock {
    /// Seconds since the epoch (`/proc/stat`, `btime`). The kernel derives it from the wall clock,
    /// so it moves when somebody sets that clock: good for showing, not for telling processes
    /// apart.
    pub boot_seconds: u64,
    /// Ticks in a second (`sysconf(_SC_CLK_TCK)`), at least 1.
    pub ticks_per_second: u64,
}

impl BootClock {
    /// Nanoseconds since the epoch at `ticks` after boot: `btime * 1e9 + ticks * 1e9 / CLK_TCK`.
    /// Saturates in the year 2554.
    pub fn unix_nanoseconds(&self, ticks: u64) -> u64 {
        const NANOSECONDS: u128 = 1_000_000_000;
        // In 64 bits `ticks * 1e9` overflows after less than six years of uptime.
        let since_boot = u128::from(ticks) * NANOSECONDS / u128::from(self.ticks_per_second.max(1));
        let total = u128::from(self.boot_seconds) * NANOSECONDS + since_boot;
        u64::try_from(total).unwrap_or(u64::MAX)
    }
}

/// The number behind `btime` in the text of `/proc/stat`.
pub(super) fn parse_boot_seconds(text: &[u8]) -> Option<u64> {
    let digits = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"btime "))?;
    std::str::from_utf8(digits).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds_without_a_float() {
        let clock = BootClock { boot_seconds: 1_789_550_000, ticks_per_second: 100 };
        assert_eq!(clock.unix_nanoseconds(0), 1_789_550_000_000_000_000);
        assert_eq!(clock.unix_nanoseconds(12_345), 1_789_550_123_450_000_000);
    }

    #[test]
    fn ten_years_of_uptime_do_not_overflow() {
        let clock = BootClock { boot_seconds: 1_000_000_000, ticks_per_second: 100 };
        let ten_years_in_ticks = 10 * 365 * 86_400 * 100;
        assert_eq!(clock.unix_nanoseconds(ten_years_in_ticks), 1_315_360_000_000_000_000);
        assert_eq!(clock.unix_nanoseconds(u64::MAX), u64::MAX);
    }

    #[test]
    fn the_boot_time_is_found_among_the_other_lines() {
        let text = b"cpu  1 2 3\nintr 9 9\nctxt 12\nbtime 1789550000\nprocesses 4\n";
        assert_eq!(parse_boot_seconds(text), Some(1_789_550_000));
        assert_eq!(parse_boot_seconds(b"cpu 1\nxbtime 4\n"), None);
        assert_eq!(parse_boot_seconds(b"btime soon\n"), None);
    }
}
