//! The formats by name, and how to tell them by what they contain.

use std::borrow::Cow;
use std::fmt;

use clap::ValueEnum;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Lines that are looked at to tell a format.
const LINES: usize = 200;

/// A format of event logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// gpumon's lines, one event each
    Gpumon,
    /// GPU Flight's columnar batches
    GpuFlight,
    /// GPU Flight's older lines, one wide event each
    GpuFlightFat,
    /// Parquet tables, a folder for each session
    Parquet,
}

impl Format {
    /// The format of a log that begins with `head`; `None` where no line tells.
    ///
    /// GPU Flight names a session in each line and gpumon never does. Lines that cannot be read are
    /// passed over, the last one because it may be cut off.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        head.split(|byte| *byte == b'\n').take(LINES).find_map(of_line)
    }

    /// Whether logs of the other are read by the same reader.
    #[must_use]
    pub fn reads_like(self, other: Self) -> bool {
        let is_flight = |format| matches!(format, Self::GpuFlight | Self::GpuFlightFat);
        self == other || (is_flight(self) && is_flight(other))
    }
}

/// What of a line tells its format.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    session_id: Option<IgnoredAny>,
}

fn of_line(line: &[u8]) -> Option<Format> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let Head { kind, session_id } = serde_json::from_slice(line).ok()?;
    let kind = kind?;
    let columnar = ["dictionary_update", "kernel_detail", "job_start"];
    Some(match session_id {
        None => Format::Gpumon,
        Some(_) if kind.ends_with("_batch") || columnar.contains(&kind.as_ref()) => {
            Format::GpuFlight
        }
        Some(_) => Format::GpuFlightFat,
    })
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Gpumon => "gpumon",
            Self::GpuFlight => "gpu-flight",
            Self::GpuFlightFat => "gpu-flight-fat",
            Self::Parquet => "parquet",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_told_by_the_first_line_that_can_be_read() {
        let of = |text: &str| Format::of(text.as_bytes());
        assert_eq!(of("\u{feff}{\"type\":\"init\",\"pid\":1}\n"), Some(Format::Gpumon));
        assert_eq!(
            of("torn\n\n{\"session_id\":\"s\",\"type\":\"init\"}"),
            Some(Format::GpuFlightFat)
        );
        let batch = "{\"session_id\":\"s\",\"type\":\"kernel_event_batch\",\"rows\":[]}";
        assert_eq!(of(batch), Some(Format::GpuFlight));
        assert_eq!(of(""), None);
        assert_eq!(of("[1]\n{\"pid\":1}\n\u{1}PAR1"), None);
    }
}
