//! The health file: what the library is doing in this process, for people to read.
//!
//! One JSON object beside the measurements; its keys are in docs/communication.md, "Health file".

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use warpgauge_wire::FunctionSet;

use crate::events::EventCounts;
use crate::lifecycle::State;
use crate::publisher::{PublishError, replace};

/// What a health file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The state.
    pub state: State,
    /// Why it is disabled, or what stands in the way.
    pub reason: Option<String>,
    /// The functions that are listed and can be measured.
    pub functions: FunctionSet,
    /// Launches since the process was first listed.
    pub launches_seen: u64,
    /// The part of them whose shape was measured, 0 to 1, where that was asked for.
    pub launches_measured_share: Option<f64>,
    /// Launches whose shape found no room.
    pub launches_dropped: u64,
    /// Windows that gave a measurement.
    pub windows: u64,
    /// Windows that were opened in vain.
    pub windows_discarded: u64,
    /// How long threads were held up, in nanoseconds.
    pub window_time_ns: u64,
    /// Memory that the library costs, in bytes, where the system says it.
    pub resident_bytes: Option<u64>,
    /// Events in the event log, and those that are not.
    pub events: EventCounts,
    /// Launches by device ordinal.
    pub devices: Vec<(u32, u64)>,
}

/// Keeps a process's health file.
#[derive(Debug)]
pub struct Health {
    path: PathBuf,
    state: Option<State>,
    since_ns: u128,
    written: bool,
}

impl Health {
    /// A file in the folder of the measurements; nothing is written yet.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        let path = folder.join(format!(".{}.health", std::process::id()));
        Self { path, state: None, since_ns: 0, written: false }
    }

    /// Whether the file was ever written.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.written
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// What the file system says; the next report is written as if nothing had happened.
    pub fn write(&mut self, report: &Report) -> Result<(), PublishError> {
        let now = nanoseconds_since_epoch();
        if self.state != Some(report.state) {
            self.state = Some(report.state);
            self.since_ns = now;
        }
        let line = json(report, self.since_ns, now);
        replace(&self.path, line.as_bytes())?;
        self.written = true;
        Ok(())
    }

    /// Removes the file; the process exits.
    pub fn remove(&mut self) {
        if self.written {
            // What cannot be removed is told from a living one by its pid and time.
            let _removed = fs::remove_file(&self.path);
        }
    }
}

fn nanoseconds_since_epoch() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos())
}

fn json(report: &Report, since_ns: u128, now_ns: u128) -> String {
    let state = match report.state {
        State::Off => "off",
        State::Armed => "armed",
        State::Measuring => "measuring",
        State::Disabled => "disabled",
    };
    let reason = report.reason.as_deref().map_or_else(|| "null".to_owned(), quoted);
    let functions: Vec<String> =
        report.functions.iter().map(|function| quoted(function.name())).collect();
    let share =
        report.launches_measured_share.map_or_else(|| "null".to_owned(), |share| share.to_string());
    let resident =
        report.resident_bytes.map_or_else(|| "null".to_owned(), |bytes| bytes.to_string());
    let devices: Vec<String> = report
        .devices
        .iter()
        .map(|(ordinal, launches)| format!(r#"{{"ordinal":{ordinal},"launches":{launches}}}"#))
        .collect();
    let (functions, devices) = (functions.join(","), devices.join(","));
    let Report { launches_seen, launches_dropped, windows, windows_discarded, .. } = report;
    let (pid, window_time_ns) = (std::process::id(), report.window_time_ns);
    let EventCounts { written, lost } = report.events;
    format!(
        "{{\"version\":1,\"pid\":{pid},\"state\":\"{state}\",\"reason\":{reason},\
         \"since_ns\":{since_ns},\"updated_ns\":{now_ns},\"functions\":[{functions}],\
         \"launches_seen\":{launches_seen},\"launches_measured_share\":{share},\
         \"launches_dropped\":{launches_dropped},\"windows\":{windows},\
         \"windows_discarded\":{windows_discarded},\"window_time_ns\":{window_time_ns},\
         \"resident_bytes\":{resident},\"events_written\":{written},\"events_lost\":{lost},\
         \"devices\":[{devices}]}}\n"
    )
}

/// A JSON string (RFC 8259, section 7).
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if u32::from(control) < 0x20 => {
                // Writing to a string does not fail.
                let _written = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use warpgauge_wire::Function;

    use super::*;

    fn report() -> Report {
        Report {
            state: State::Measuring,
            reason: None,
            functions: [Function::Instructions, Function::Occupancy].into_iter().collect(),
            launches_seen: 120_000,
            launches_measured_share: Some(0.98),
            launches_dropped: 0,
            windows: 7,
            windows_discarded: 1,
            window_time_ns: 41_000_000,
            resident_bytes: Some(118_000_000),
            events: EventCounts { written: 120_000, lost: 3 },
            devices: vec![(0, 100_000), (1, 20_000)],
        }
    }

    #[test]
    fn it_is_the_object_that_the_contract_shows() {
        let pid = std::process::id();
        let expected = format!(
            "{{\"version\":1,\"pid\":{pid},\"state\":\"measuring\",\"reason\":null,\"since_ns\":5,\
             \"updated_ns\":6,\"functions\":[\"instructions\",\"occupancy\"],\
             \"launches_seen\":120000,\"launches_measured_share\":0.98,\"launches_dropped\":0,\
             \"windows\":7,\"windows_discarded\":1,\"window_time_ns\":41000000,\
             \"resident_bytes\":118000000,\"events_written\":120000,\"events_lost\":3,\
             \"devices\":[{{\"ordinal\":0,\"launches\":100000}},\
             {{\"ordinal\":1,\"launches\":20000}}]}}\n"
        );
        assert_eq!(json(&report(), 5, 6), expected);
    }

    #[test]
    fn a_reason_may_hold_any_character() {
        assert_eq!(quoted("a \"b\"\\\n\u{1}é"), r#""a \"b\"\\\u000a\u0001é""#);
    }

    #[test]
    fn the_time_of_a_state_is_when_it_began() {
        let folder = tempfile::tempdir().unwrap();
        let mut health = Health::new(folder.path());
        health.remove();
        health.write(&report()).unwrap();
        let since = health.since_ns;
        health.write(&report()).unwrap();
        assert_eq!(health.since_ns, since);
        health.write(&Report { state: State::Disabled, ..report() }).unwrap();
        assert!(health.since_ns > since);
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing but the file");
        health.remove();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
