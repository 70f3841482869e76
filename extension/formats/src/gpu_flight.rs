//! GPU Flight's event log: columnar batches whose texts are interned.
//!
//! ```text
//! {"type":"dictionary_update","session_id":"s","kernel_dict":{"1":"gemm"}}
//! {"type":"kernel_event_batch","session_id":"s","batch_id":1,"base_time_ns":1000,
//!  "columns":["dt_ns","kernel_id",...],"rows":[[0,1,...],[-20,1,...]]}
//! ```
//!
//! (Broken here for reading; in a log each is one line.) A session writes three channels, each a
//! file: device, scope and system. `dt_ns` is signed and counts from `base_time_ns`; ids count from
//! 1 and 0 is none; columns are found by their names. The older form, one wide object per event, is
//! read beside it, and both can be written. `docs/formats/gpu-flight.md` tells it all.

mod batch;
mod budget;
mod columnar;
mod columnar_batch;
mod columnar_session;
mod dictionary;
mod entries;
mod fat;
mod fat_line;
mod reader;
mod rows;
mod seen;
mod session;
mod session_lines;
mod waiting;

pub use columnar::{Channels, Columnar, Details};
pub use fat_line::Fat;
pub use reader::{Batches, Reader};

/// The files of a session: `<prefix>.<channel>.log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// Kernels and copies.
    Device,
    /// Scopes and profile samples.
    Scope,
    /// The state of host and devices.
    System,
}

impl Channel {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Device, Self::Scope, Self::System];

    /// The channel's place in [`Channel::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The channel's part of a file's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Scope => "scope",
            Self::System => "system",
        }
    }
}
