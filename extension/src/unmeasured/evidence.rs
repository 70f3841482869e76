//! What was read, before anything is made of it.

use std::path::PathBuf;

use warpgauge_wire::FunctionSet;

use super::startup::{Settings, Startup};
use crate::groups::{GroupOutcome, Subject};
use crate::instrument_health::HealthReport;
use crate::instrument_health::file::HealthFault;
use crate::procfs::{MappedFile, Unread};

/// Everything that is known of one process.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The pid that was asked about.
    pub pid: u32,
    /// When the evidence was gathered, nanoseconds since the epoch.
    pub now_ns: u64,
    /// The user who asks.
    pub asked_by: u32,
    /// What the pid stands for.
    pub subject: Subject,
    /// When a process that was listed under this pid had started, if that was another one: in
    /// clock ticks since boot.
    pub listed_before: Option<u64>,
    /// Every monitored group and what it says of the process.
    pub groups: Vec<(String, GroupOutcome)>,
    /// What the extension is configured for.
    pub ours: Ours,
    /// What a running program shows of itself.
    pub inside: Option<Inside>,
}

/// What the extension is configured for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ours {
    /// Its configuration file.
    pub file: PathBuf,
    /// `paths.runtime_config`
    pub runtime_config: PathBuf,
    /// `paths.measurements`
    pub measurements: PathBuf,
    /// `instrumentation_enabled`
    pub enabled: bool,
    /// `functions`
    pub functions: FunctionSet,
}

/// What a running program shows of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Inside {
    /// The libraries that it has mapped.
    pub libraries: Result<Vec<MappedFile>, Unread>,
    /// Whether it has one of `/dev/nvidia*` open.
    pub device_open: Result<bool, Unread>,
    /// How it was started.
    pub startup: Result<Startup, Unread>,
    /// The file that `CUDA_INJECTION64_PATH` names, as the process sees it.
    pub injected: Presence,
    /// What the library was told; the defaults where its environment cannot be read.
    pub settings: Settings,
    /// The settings file that `WARPGAUGE_CONF_FILE` names, as the process sees it.
    pub settings_file: Presence,
    /// The runtime configuration that the library looks at.
    pub runtime_config: SeenConfig,
    /// The folder that the library writes to.
    pub folder: SeenFolder,
    /// What the library says of itself.
    pub health: Result<Option<HealthReport>, HealthFault>,
}

/// Whether a process sees a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It does.
    There,
    /// It does not.
    Missing,
    /// What it sees cannot be told.
    Unknown(Unread),
}

/// The runtime configuration as a process sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeenConfig {
    /// There is none at that path.
    Missing,
    /// It could not be read.
    Unreadable(Unread),
    /// It was read.
    Read {
        /// Whether it is the very file that the extension writes.
        is_ours: bool,
        /// The lines for the process.
        line: SeenLine,
        /// When it was last changed, nanoseconds since the epoch.
        modified_ns: u64,
    },
}

/// What a runtime configuration says of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeenLine {
    /// Nothing.
    None,
    /// It is to be measured.
    Listed {
        /// By these functions.
        functions: FunctionSet,
        /// Whether a person wrote the line that wins.
        by_hand: bool,
    },
    /// A person's line that rests while instrumentation is switched off.
    Resting,
}

/// The folder that the library writes to, as the process sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenFolder {
    /// There is none at that path.
    Missing,
    /// It is no folder.
    NotAFolder,
    /// It could not be looked at.
    Unreadable(Unread),
    /// It was looked at.
    There {
        /// Whether it is the very folder that the extension reads.
        is_ours: bool,
        /// Its owner.
        owner: u32,
        /// Its permission bits.
        mode: u32,
    },
}
