//! `[[events]]`: which event logs a pass follows. Plain data; the pattern is compiled by `setup`.

use serde::Deserialize;

/// Kernels and scopes that have series of their own, unless `kernels` says otherwise.
pub const DEFAULT_KERNELS: usize = 20;

/// One table `[[events]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventLog {
    /// `pattern`: glob over the files' paths.
    pub pattern: String,
    /// `format`
    pub format: EventFormat,
    /// `group`: whose the logs are; `service.name` of what is exported.
    pub group: Option<String>,
    /// `kernels`: for each process, how many kernels, by the time that they took in a pass, have
    /// series of their own, and how many scopes; the others share `_OTHER`.
    pub kernels: usize,
    /// `start`: where reading begins in the files that stand there when the pattern is new.
    pub start: EventStart,
}

/// Where reading begins in files that stand there already; files that come later are read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventStart {
    /// At their beginning.
    #[default]
    Start,
    /// At their end.
    End,
}

/// What a log is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventFormat {
    /// gpumon's NDJSON.
    Gpumon,
    /// GPU Flight's batches, and its older lines.
    GpuFlight,
}
