//! `[forward]`: event logs, line by line, to a backend. Plain data; its files are read by
//! `forward::settings`.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::document::Section;
use super::export::Compression;
use super::quantity::{parse_duration, parse_size};

/// What the body of a request is (`forward.form`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// The line as it stands in the log, to `${backend_url}/${type}`.
    #[default]
    Raw,
    /// `{agentSendingTime, data, type, hostname, ipAddr}` with the line as text in `data`, to
    /// `${backend_url}/api/v1/events/${type}`.
    Wrapped,
}

/// The section `[forward]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// `backend_url`: where the lines go; without it none goes anywhere.
    pub backend_url: Option<String>,
    /// `logs`: patterns of the logs whose lines go there.
    pub logs: Vec<String>,
    /// `form`
    pub form: Form,
    /// `token`, sent as `Authorization: Bearer`; a value `file:/path` is read from that file at
    /// each pass and never printed.
    pub token: Option<String>,
    /// `batch_size`, in bytes before compression: lines of one type that follow each other travel
    /// as one NDJSON body up to this size. `None`: a line a request.
    pub batch_bytes: Option<u64>,
    /// `compression`
    pub compression: Compression,
    /// `timeout`: of one request.
    pub timeout: Duration,
    /// `budget`: of all forwarding in one pass.
    pub budget: Duration,
    /// `max_rate`, in bytes of request bodies a second.
    pub max_rate: u64,
    /// `max_size`, in bytes of request bodies a pass.
    pub max_bytes: u64,
    /// `max_dead_letters`, in bytes on the disk.
    pub max_dead_letter_bytes: u64,
    /// `ca_file`: PEM certificates to trust instead of the built-in roots.
    pub ca_file: Option<PathBuf>,
    /// `client_certificate_file`: PEM chain that identifies this client.
    pub client_certificate_file: Option<PathBuf>,
    /// `client_key_file`: PEM private key of that certificate.
    pub client_key_file: Option<PathBuf>,
}

impl Default for Forward {
    fn default() -> Self {
        Self {
            backend_url: None,
            logs: Vec::new(),
            form: Form::default(),
            token: None,
            batch_bytes: None,
            compression: Compression::None,
            timeout: Duration::from_secs(10),
            budget: Duration::from_secs(10),
            max_rate: 4 << 20,
            max_bytes: 32 << 20,
            max_dead_letter_bytes: 64 << 20,
            ca_file: None,
            client_certificate_file: None,
            client_key_file: None,
        }
    }
}

pub(super) fn read(section: &mut Section<'_, '_>) -> Forward {
    let default = Forward::default();
    let long_enough = |text: String| match parse_duration(&text)? {
        duration if duration < Duration::from_millis(100) => {
            Err(format!("`{text}` is too short to send anything; use at least \"100ms\""))
        }
        duration => Ok(duration),
    };
    let at_least = |least: u64, shown: &'static str| {
        move |text: String| match parse_size(&text)? {
            bytes if bytes < least => {
                Err(format!("`{text}` is too little; use at least \"{shown}\""))
            }
            bytes => Ok(bytes),
        }
    };
    Forward {
        backend_url: section.take("backend_url"),
        logs: section.take("logs").unwrap_or_default(),
        form: section.take("form").unwrap_or_default(),
        token: section.take("token"),
        batch_bytes: section.take_checked("batch_size", at_least(1, "1B")),
        compression: section.take("compression").unwrap_or(default.compression),
        timeout: section.take_checked("timeout", long_enough).unwrap_or(default.timeout),
        budget: section.take_checked("budget", long_enough).unwrap_or(default.budget),
        max_rate: section
            .take_checked("max_rate", at_least(1 << 10, "1KiB"))
            .unwrap_or(default.max_rate),
        max_bytes: section
            .take_checked("max_size", at_least(1 << 10, "1KiB"))
            .unwrap_or(default.max_bytes),
        max_dead_letter_bytes: section
            .take_checked("max_dead_letters", at_least(1 << 20, "1MiB"))
            .unwrap_or(default.max_dead_letter_bytes),
        ca_file: section.take("ca_file"),
        client_certificate_file: section.take("client_certificate_file"),
        client_key_file: section.take("client_key_file"),
    }
}
