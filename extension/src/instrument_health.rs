//! What the instrument says of itself in a process: the health file.
//!
//! ```text
//! {"version":1,"pid":4242,"state":"measuring","reason":null, ... ,"devices":[...]}
//! ```
//!
//! Its keys are in docs/communication.md, "Health file". Everybody may write to the folder that it
//! lies in, so nothing is believed but what a user of the process wrote ([`mod@file`]), and nothing is
//! computed from it: it is shown to people.

pub mod file;
pub mod leftovers;

use serde::Deserialize;

/// The largest health file that is read, in bytes; real ones have some hundred.
pub const MAX_BYTES: u64 = 64 << 10;

/// The version that this reader knows.
const VERSION: u64 = 1;

/// What the instrument is doing in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Before the injection, in a forked child, or while the process exits.
    Off,
    /// Polling, and measuring nothing.
    Armed,
    /// Counting launches.
    Measuring,
    /// Silent for the life of the process.
    Disabled,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

impl State {
    /// The word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Armed => "armed",
            Self::Measuring => "measuring",
            Self::Disabled => "disabled",
            Self::Unknown => "unknown",
        }
    }
}

/// The launches of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Device {
    /// Its CUDA ordinal in the process.
    pub ordinal: u32,
    /// Launches on it.
    pub launches: u64,
}

/// What a health file says. A key that is missing counts as nothing; one that is unknown is
/// ignored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct HealthReport {
    /// The process, as its own pid namespace counts.
    pub pid: u32,
    /// What the instrument is doing.
    pub state: State,
    /// Why it is disabled, or what stands in the way.
    #[serde(default)]
    pub reason: Option<String>,
    /// When the state began, nanoseconds since the epoch.
    #[serde(default)]
    pub since_ns: u64,
    /// When the file was written, nanoseconds since the epoch.
    pub updated_ns: u64,
    /// The functions that are listed and can be measured, by name.
    #[serde(default)]
    pub functions: Vec<String>,
    /// Launches since the process was first listed.
    #[serde(default)]
    pub launches_seen: u64,
    /// The part of them whose shape was measured by a window, 0 to 1; `None` where no function
    /// asks for windows.
    #[serde(default)]
    pub launches_measured_share: Option<f64>,
    /// Launches that are counted but have no shape.
    #[serde(default)]
    pub launches_dropped: u64,
    /// Windows that gave a measurement.
    #[serde(default)]
    pub windows: u64,
    /// Windows whose measurement was thrown away.
    #[serde(default)]
    pub windows_discarded: u64,
    /// How long windows held threads up, in nanoseconds.
    #[serde(default)]
    pub window_time_ns: u64,
    /// Resident memory of the instrument and of the libraries that it brought, in bytes; `None`
    /// where it is not known.
    #[serde(default)]
    pub resident_bytes: Option<u64>,
    /// By device.
    #[serde(default)]
    pub devices: Vec<Device>,
}

/// Why the text of a health file is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportFault {
    /// It is no JSON object, or a key has another type.
    #[error("it is no health report: {0}")]
    Malformed(String),
    /// It is of another version.
    #[error("it has version {0}; this warpgauge knows version 1: upgrade the older half")]
    OtherVersion(u64),
    /// The share is no part of a whole.
    #[error("launches_measured_share is not between 0 and 1")]
    ShareOutOfRange,
}

impl HealthReport {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`ReportFault`]
    pub fn parse(text: &[u8]) -> Result<Self, ReportFault> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u64,
        }
        let malformed = |fault: serde_json::Error| ReportFault::Malformed(fault.to_string());
        // First of all: what another version says may have another shape.
        let Versioned { version } = serde_json::from_slice(text).map_err(malformed)?;
        if version != VERSION {
            return Err(ReportFault::OtherVersion(version));
        }
        let report: Self = serde_json::from_slice(text).map_err(malformed)?;
        match report.launches_measured_share {
            Some(share) if !(0.0..=1.0).contains(&share) => Err(ReportFault::ShareOutOfRange),
            _ => Ok(report),
        }
    }

    /// How long ago it was written, in nanoseconds; nothing when that is yet to come.
    #[must_use]
    pub fn age_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.updated_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXAMPLE: &str = r#"{"version":1,"pid":4242,"state":"measuring","reason":null,
        "since_ns":1789552800000000000,"updated_ns":1789552810000000000,
        "functions":["instructions","occupancy"],"launches_seen":120000,
        "launches_measured_share":0.98,"launches_dropped":0,"windows":7,"windows_discarded":1,
        "window_time_ns":41000000,"resident_bytes":118000000,
        "devices":[{"ordinal":0,"launches":120000}]}"#;

    #[test]
    fn the_documented_example_is_read() {
        let report = HealthReport::parse(EXAMPLE.as_bytes()).unwrap();
        assert_eq!((report.pid, report.state, report.windows), (4242, State::Measuring, 7));
        assert_eq!(report.launches_measured_share, Some(0.98));
        assert_eq!(report.devices, [Device { ordinal: 0, launches: 120_000 }]);
        assert_eq!(report.resident_bytes, Some(118_000_000));
        assert_eq!(report.age_ns(1_789_552_815_000_000_000), 5_000_000_000);
    }

    #[test]
    fn keys_of_later_writers_are_ignored_and_those_of_earlier_ones_missed() {
        let text = br#"{"version":1,"pid":1,"state":"dreaming","updated_ns":5,"mood":[{}]}"#;
        let report = HealthReport::parse(text).unwrap();
        assert_eq!((report.state, report.launches_seen), (State::Unknown, 0));
        assert_eq!(report.resident_bytes, None);
    }

    #[test]
    fn what_is_no_report_of_this_version_is_refused_with_a_reason() {
        let refused = |text: &str| HealthReport::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(refused("").contains("no health report"));
        assert!(refused("[]").contains("no health report"));
        assert!(refused(r#"{"version":1,"pid":-1}"#).contains("no health report"));
        assert!(refused(&EXAMPLE.replace(":1,", ":2,")).contains("version 2"));
        assert!(refused(&EXAMPLE.replace("0.98", "1.5")).contains("between 0 and 1"));
        assert!(refused(&EXAMPLE.replace("0.98", "1e999")).contains("no health report"));
        let deep = format!(r#"{{"version":1,"x":{}"#, "[".repeat(60_000));
        assert!(refused(&deep).contains("no health report"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = HealthReport::parse(&bytes);
        }

        #[test]
        fn a_damaged_report_is_refused_or_read_and_never_worse(
            place in 0usize..500, byte in any::<u8>(), end in 0usize..500,
        ) {
            let mut text = EXAMPLE.as_bytes().to_vec();
            let place = place % text.len();
            text[place] = byte;
            text.truncate(end.max(1));
            if let Ok(report) = HealthReport::parse(&text) {
                prop_assert!(report.launches_measured_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
            }
        }
    }
}
