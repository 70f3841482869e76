//! The formats by name, and how to tell them by what they contain.

use std::borrow::Cow;
use std::fmt;

use clap::ValueEnum;
use serde::Deserialize;
use serde::de::IgnoredAny;
use warpgauge_formats::json::{Kind, Reader};

/// Lines that are looked at to tell a format.
const LINES: usize = 200;

/// A format of event logs or of traces.
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
    /// PyTorch's traces
    Kineto,
    /// Chrome's JSON, which holds all that a trace can say
    Chrome,
    /// Perfetto's protobuf packets; written only
    Perfetto,
}

impl Format {
    /// The format of a log that begins with `head`; `None` where no line tells.
    ///
    /// A trace is one JSON document, told by its first keys, or Perfetto's packets. GPU Flight names a
    /// session in each line and gpumon never does. Lines that cannot be read are passed over, the last
    /// one because it may be cut off.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        of_document(head)
            .or_else(|| head.split(|byte| *byte == b'\n').take(LINES).find_map(of_line))
    }

    /// Whether files of the format are traces: one document of slices, arrows and counters rather
    /// than lines of events.
    #[must_use]
    pub fn is_trace(self) -> bool {
        matches!(self, Self::Kineto | Self::Chrome | Self::Perfetto)
    }

    /// Whether files of the other are read by the same reader.
    #[must_use]
    pub fn reads_like(self, other: Self) -> bool {
        let is_flight = |format| matches!(format, Self::GpuFlight | Self::GpuFlightFat);
        let is_json = |format| matches!(format, Self::Kineto | Self::Chrome);
        self == other || is_flight(self) && is_flight(other) || is_json(self) && is_json(other)
    }
}

/// Keys of which a trace has at least one. No event log has a line with any of them.
const KEYS_OF_TRACES: [&str; 8] = [
    "traceEvents",
    "schemaVersion",
    "baseTimeNanoseconds",
    "deviceProperties",
    "displayTimeUnit",
    "distributedInfo",
    "traceName",
    "otherData",
];

/// Bytes by which every trace of Perfetto begins: field 1, of variable length
/// (`protos/perfetto/trace/trace.proto`). Logs are text, and
/// these packets are not.
const PACKET: u8 = 0x0a;

/// The format of a file that is one document.
fn of_document(head: &[u8]) -> Option<Format> {
    if let [PACKET, next, after, ..] = head
        && !next.is_ascii_whitespace()
        && [*next, *after] != *b"{\""
        && std::str::from_utf8(head).map_or_else(|fault| fault.error_len().is_some(), |_| false)
    {
        return Some(Format::Perfetto);
    }
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let whole = head.utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default();
    let mut reader = Reader::new(whole);
    let is_array = reader.peek().ok()? == Kind::Array;
    if is_array {
        reader.enter_array().ok()?;
        if !reader.next_item().ok()? {
            return Some(Format::Chrome);
        }
    }
    reader.enter_object().ok()?;
    // What is no JSON any more, or is cut off, ends the search.
    while let Ok(Some(key)) = reader.next_key() {
        match is_array {
            true if key == "ph" => return Some(Format::Chrome),
            false if KEYS_OF_TRACES.contains(&key.as_ref()) => return Some(Format::Kineto),
            _ => {}
        }
        reader.skip().ok()?;
    }
    None
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
            Self::Kineto => "kineto",
            Self::Chrome => "chrome",
            Self::Perfetto => "perfetto",
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

    #[test]
    fn a_trace_is_told_by_its_keys() {
        let of = |text: &str| Format::of(text.as_bytes());
        for trace in [
            "{\"traceEvents\":[]}",
            " {\n \"schemaVersion\": 1,\n \"note\": \"say /\"hi/\"\",",
            "{\"args\":{\"type\":\"x\"},\"traceEvents\":[{\"na",
        ] {
            assert_eq!(of(trace), Some(Format::Kineto), "{trace}");
        }
        for array in ["\u{feff}[{\"name\":\"a\",\"ph\":\"X\"}", "[]"] {
            assert_eq!(of(array), Some(Format::Chrome), "{array}");
        }
        assert_eq!(of("{\"type\":\"init\",\"pid\":1}\n{\"type\":"), Some(Format::Gpumon));
        assert_eq!(of("{}"), None);
        assert_eq!(of("\n{\"type\":\"init\",\"pid\":1}\n"), Some(Format::Gpumon));
        assert_eq!(Format::of(&[0x0a, 0x05, 0x50, 0x80, 0xff, 0x90, 0x01]), Some(Format::Perfetto));
    }
}
