//! `[devices]` and `[telemetry]`: what the devices say of themselves, and where it is written.

use std::path::PathBuf;
use std::time::Duration;

use super::document::Section;
use super::quantity::{parse_duration, parse_size};

/// The section `[devices]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Devices {
    /// `enabled`: whether a pass asks NVIDIA's management library (NVML) at all.
    pub enabled: bool,
    /// `library`: NVML's file; without it the loader looks for `libnvidia-ml.so.1`.
    pub library: Option<PathBuf>,
    /// `timeout`: how long a pass waits for the library, counted from the pass's beginning.
    pub timeout: Duration,
}

impl Default for Devices {
    fn default() -> Self {
        Self { enabled: true, library: None, timeout: Duration::from_secs(5) }
    }
}

/// The section `[telemetry]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telemetry {
    /// `output`: the file that each pass appends its TelemetryEvent v2 records to; without it none
    /// are written.
    pub output: Option<PathBuf>,
    /// `max_size`, in bytes: a file that would grow beyond it takes `.1` behind its name, in place of
    /// the one that has it, and a new one begins.
    pub max_bytes: u64,
}

impl Telemetry {
    /// The smallest `max_size`.
    pub const LEAST_BYTES: u64 = 64 << 10;
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { output: None, max_bytes: 64 << 20 }
    }
}

pub(super) fn read(section: &mut Section<'_, '_>) -> Devices {
    let default = Devices::default();
    let in_bounds = |text: String| match parse_duration(&text)? {
        time if time < Duration::from_millis(100) || time > Duration::from_secs(20) => {
            Err(format!("`{text}` is not between \"100ms\" and \"20s\""))
        }
        time => Ok(time),
    };
    Devices {
        enabled: section.take("enabled").unwrap_or(default.enabled),
        library: section.take_checked("library", absolute),
        timeout: section.take_checked("timeout", in_bounds).unwrap_or(default.timeout),
    }
}

pub(super) fn read_telemetry(section: &mut Section<'_, '_>, devices: &Devices) -> Telemetry {
    let output = section.take_checked("output", absolute);
    if output.is_some() && !devices.enabled {
        section.note(
            Some("output"),
            "gets its records from the devices, and devices.enabled is false; switch them on",
        );
    }
    let max_bytes = section.take_checked("max_size", |text: String| match parse_size(&text)? {
        bytes if bytes < Telemetry::LEAST_BYTES => {
            Err(format!("`{text}` is too little; use at least \"64KiB\""))
        }
        bytes => Ok(bytes),
    });
    Telemetry { output, max_bytes: max_bytes.unwrap_or(Telemetry::default().max_bytes) }
}

fn absolute(path: PathBuf) -> Result<PathBuf, String> {
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(format!("`{}` is relative; write the whole path", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn records_need_devices_and_a_whole_path() {
        let (config, faults) = Config::parse("[telemetry]\noutput = \"/t.ndjson\"\n");
        assert_eq!(faults, []);
        assert_eq!(config.telemetry.output.unwrap().to_str(), Some("/t.ndjson"));
        for wrong in [
            "[devices]\nenabled = false\n[telemetry]\noutput = \"/t.ndjson\"\n",
            "[telemetry]\noutput = \"t.ndjson\"\n",
            "[telemetry]\nmax_size = \"1KiB\"\n",
            "[devices]\ntimeout = \"1h\"\n",
            "[devices]\nlibrary = \"libnvidia-ml.so.1\"\n",
            "[telemetry]\noutput = \"/var/lib/warpgauge/measurements/t.ndjson\"\n",
            "[telemetry]\noutput = \"/var/lib/warpgauge/containers/a/t.ndjson\"\n",
        ] {
            assert_eq!(Config::parse(wrong).1.len(), 1, "{wrong}");
        }
    }
}
