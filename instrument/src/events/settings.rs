//! What the start-up settings say about the event log.

use std::path::PathBuf;
use std::time::Duration;

use crate::events::files::Limits;

/// The format of an event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per event, in one file.
    Gpumon,
    /// Columnar batches with interned texts, in three files.
    GpuFlight,
}

impl Format {
    /// The format of a setting's value; `None` inside for no log.
    ///
    /// # Errors
    /// What the value should be.
    pub fn of_setting(value: &str) -> Result<Option<Self>, String> {
        match value {
            "gpumon" => Ok(Some(Self::Gpumon)),
            "gpu-flight" => Ok(Some(Self::GpuFlight)),
            "off" => Ok(None),
            _ => Err(format!("expected gpumon, gpu-flight or off, found {value:?}")),
        }
    }
}

/// Settings of the event log.
#[derive(Debug, Clone, PartialEq)]
pub struct EventSettings {
    /// The format; none for no log.
    pub format: Option<Format>,
    /// Where the log goes.
    pub folder: PathBuf,
    /// Whether CUPTI traces kernels and copies; no window measures anything then.
    pub activity: bool,
    /// The shortest time between two readings of a device's memory inside scopes; 0 for none.
    pub memory_interval: Duration,
    /// How large files may grow and how many are kept.
    pub limits: Limits,
}

impl Default for EventSettings {
    fn default() -> Self {
        Self {
            format: None,
            folder: "/var/lib/warpgauge/events".into(),
            activity: true,
            memory_interval: Duration::from_millis(100),
            limits: Limits { file_bytes: 64 << 20, files: 8 },
        }
    }
}
