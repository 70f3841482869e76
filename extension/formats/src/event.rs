//! The model that all event logs have in common.
//!
//! An [`Event`] is one thing that happened, as one line or one row of a batch tells it. What a
//! format does not say is `None`: nothing is filled in. Texts borrow from the line or from the
//! session's dictionary and live as long as the call that hands the event on; `into_owned` keeps
//! one for longer.

mod details;
mod json;
mod owned;
mod state;

use std::borrow::Cow;

pub use details::KernelDetails;
pub use state::{Device, Host, StaticDevice};

use crate::time::{Span, Timestamp};

/// A text that borrows where it can.
pub type Text<'a> = Cow<'a, str>;

/// One thing that happened, and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Event<'a> {
    /// The process or session that wrote it.
    pub source: Source<'a>,
    /// What happened.
    pub what: What<'a>,
}

/// Who wrote an event. gpumon names a process in each line; a GPU Flight batch names a session, and
/// the session's first line the process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Source<'a> {
    /// The session's id; none in gpumon.
    pub session: Option<Text<'a>>,
    /// The process, as its own pid namespace counts.
    pub pid: Option<i64>,
    /// The program's name for itself.
    pub app: Option<Text<'a>>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "handed on by reference and seldom kept")]
pub enum What<'a> {
    /// A session or a process began to write.
    Start(Start<'a>),
    /// It wrote its last.
    End(Timestamp),
    /// The sampling of host and devices began or stopped.
    Sampling(Sampling<'a>),
    /// A kernel ran.
    Kernel(Kernel<'a>),
    /// More about a kernel, which the correlation id names; told apart from it.
    KernelDetails(KernelDetails<'a>),
    /// Memory was copied.
    Copy(Copy<'a>),
    /// A scope began, ended, or was sampled.
    Scope(Scope<'a>),
    /// A sample of a kernel's instructions.
    Profile(Profile<'a>),
    /// A sample of the host's and the devices' state.
    System(System<'a>),
}

/// A session began.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Start<'a> {
    /// When.
    pub time: Timestamp,
    /// Path or prefix of the log.
    pub log_path: Option<Text<'a>>,
    /// Milliseconds between samples within a scope.
    pub scope_rate_ms: Option<i64>,
    /// Milliseconds between samples of the system.
    pub system_rate_ms: Option<i64>,
    /// The host's state at that moment.
    pub host: Option<Host>,
    /// The devices' state at that moment.
    pub devices: Vec<Device<'a>>,
    /// What does not change about the devices.
    pub static_devices: Vec<StaticDevice<'a>>,
}

/// The sampling of the system began (`system_start`) or stopped (`system_stop`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampling<'a> {
    /// When.
    pub time: Timestamp,
    /// Whether it began.
    pub began: bool,
    /// The sampling's name.
    pub name: Option<Text<'a>>,
    /// The host's state at that moment.
    pub host: Option<Host>,
    /// The devices' state at that moment.
    pub devices: Vec<Device<'a>>,
}

/// Extents in x, y and z.
pub type Dim3 = [i64; 3];

/// A kernel ran.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Kernel<'a> {
    /// When it began to run; in gpumon when it was launched.
    pub start: Timestamp,
    /// How long it ran.
    pub duration: Span,
    /// Its symbol, mangled or not as the producer wrote it.
    pub name: Text<'a>,
    /// CUDA ordinal of the device.
    pub device: Option<i64>,
    /// CUPTI's number of the stream.
    pub stream: Option<i64>,
    /// Joins the kernel with the call that launched it, its details and its samples. The nodes of a
    /// graph launch share one.
    pub correlation: Option<i64>,
    /// Shared memory asked for at launch, bytes a block.
    pub dynamic_shared_bytes: Option<i64>,
    /// Registers a thread.
    pub registers: Option<i64>,
    /// Blocks of the grid.
    pub grid: Option<Dim3>,
    /// Threads of a block.
    pub block: Option<Dim3>,
    /// Whether the log tells more about it. The details may stand in another line.
    pub has_details: Option<bool>,
    /// What more is told in the same line.
    pub details: Option<KernelDetails<'a>>,
    /// When the launching call was entered.
    pub call_start: Option<Timestamp>,
    /// When the launching call returned.
    pub call_end: Option<Timestamp>,
    /// CUPTI's kind of the id that the program set (`CUpti_ExternalCorrelationKind`); 0 for none.
    pub external_kind: Option<i64>,
    /// The id that the program set.
    pub external: Option<i64>,
    /// `CUDA`, `HIP`.
    pub platform: Option<Text<'a>>,
    /// The runtime's word for the launch's success or failure.
    pub error: Option<Text<'a>>,
    /// The program's word for the launch.
    pub tag: Option<Text<'a>>,
}

/// Memory was copied.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Copy<'a> {
    /// When the copy began.
    pub start: Timestamp,
    /// How long it took.
    pub duration: Span,
    /// Bytes that were copied.
    pub bytes: i64,
    /// From where to where.
    pub kind: CopyKind,
    /// CUPTI's number of the stream.
    pub stream: Option<i64>,
    /// Joins the copy with the call that asked for it.
    pub correlation: Option<i64>,
    /// CUDA ordinal of the device.
    pub device: Option<i64>,
    /// When the call was entered.
    pub call_start: Option<Timestamp>,
    /// When the call returned.
    pub call_end: Option<Timestamp>,
    /// `CUDA`, `HIP`.
    pub platform: Option<Text<'a>>,
    /// The operation's name.
    pub name: Option<Text<'a>>,
    /// Memory kind of the source.
    pub source: Option<Text<'a>>,
    /// Memory kind of the destination.
    pub destination: Option<Text<'a>>,
    /// Names of the open scopes, outermost first, with `|` between.
    pub scope_path: Option<Text<'a>>,
    /// How many scopes were open.
    pub scope_depth: Option<i64>,
    /// Names of the calling functions, outermost first, with `|` between.
    pub stack: Option<Text<'a>>,
}

/// `CUpti_ActivityMemcpyKind` (cupti_activity.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct CopyKind(pub i64);

/// The kinds and the names that logs give them.
const COPY_KINDS: [(i64, &str); 11] = [
    (0, "Unknown"),
    (1, "HtoD"),
    (2, "DtoH"),
    (3, "HtoA"),
    (4, "AtoH"),
    (5, "AtoA"),
    (6, "AtoD"),
    (7, "DtoA"),
    (8, "DtoD"),
    (9, "HtoH"),
    (10, "PtoP"),
];

impl CopyKind {
    /// The short name (`HtoD`), where the number has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        COPY_KINDS.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }

    /// The kind of that short name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        COPY_KINDS.iter().find(|(_, known)| *known == name).map(|(number, _)| Self(*number))
    }
}

/// What an event says of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Phase {
    /// It began.
    #[default]
    Begin,
    /// It ended.
    End,
    /// A later window of a long scope opened.
    Continue,
    /// A window of a long scope closed, and the scope goes on.
    Suspend,
    /// It was open and its memory was read.
    Sample,
}

/// A scope began, ended, or was sampled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scope<'a> {
    /// What happened to it.
    pub phase: Phase,
    /// When.
    pub time: Timestamp,
    /// The scope's name.
    pub name: Text<'a>,
    /// Tells one run of a scope from the next of the same name.
    pub instance: Option<i64>,
    /// How many scopes were open around it.
    pub depth: Option<i64>,
    /// When the scope began, where its end says so.
    pub began: Option<Timestamp>,
    /// How long the scope was open, where its end says so.
    pub duration: Option<Span>,
    /// The program's word for it; some producers write an empty one.
    pub tag: Option<Text<'a>>,
    /// Names of the open scopes, outermost first, with `|` between.
    pub path: Option<Text<'a>>,
    /// How many times the scope's body is repeated.
    pub repeat: Option<i64>,
    /// How many of these are not measured.
    pub warmup: Option<i64>,
    /// When the scope's first window opened.
    pub original_start: Option<Timestamp>,
    /// The host's state at that moment.
    pub host: Option<Host>,
    /// The devices' state at that moment.
    pub devices: Vec<Device<'a>>,
}

/// A sample of a kernel's instructions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile<'a> {
    /// When.
    pub time: Timestamp,
    /// The kernel's correlation id.
    pub correlation: Option<i64>,
    /// CUDA ordinal of the device.
    pub device: Option<i64>,
    /// `function@file`.
    pub function: Option<Text<'a>>,
    /// Bytes from the function's first instruction.
    pub pc_offset: Option<i64>,
    /// The metric's name; none for samples of the program counter.
    pub metric: Option<Text<'a>>,
    /// The metric's value, or the number of samples.
    pub value: Option<i64>,
    /// CUPTI's number of the reason why the warp stalled.
    pub stall_reason: Option<i64>,
    /// That reason's name.
    pub stall_name: Option<Text<'a>>,
    /// 0 a sampled program counter, 1 a SASS metric, 2 of later producers.
    pub kind: Option<i64>,
    /// The innermost scope.
    pub scope: Option<Text<'a>>,
    /// Whether that scope had ended by then.
    pub scope_ended: bool,
    /// The source file.
    pub source_file: Option<Text<'a>>,
    /// The line in it, from 1; 0 for none.
    pub source_line: Option<i64>,
}

/// A sample of the host's and the devices' state.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct System<'a> {
    /// When.
    pub time: Timestamp,
    /// The sampling's name, or the scope's that was open.
    pub name: Option<Text<'a>>,
    /// The host's state.
    pub host: Option<Host>,
    /// The devices' state.
    pub devices: Vec<Device<'a>>,
}

impl Profile<'_> {
    /// Whether the function's name, `function@file`, tells this file already.
    #[must_use]
    pub fn is_in_function(&self, file: &str) -> bool {
        let function = self.function.as_deref().unwrap_or_default();
        function.strip_suffix(file).is_some_and(|rest| rest.ends_with('@'))
    }
}
