//! Changes of memory.

use super::{Metadata, Track};
use crate::event::Text;
use crate::time::Timestamp;

/// What happened to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MemoryOperation {
    /// It was allocated.
    #[default]
    Allocation,
    /// It was freed.
    Free,
}

/// What memory is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub enum MemoryCategory {
    /// Nobody said.
    #[default]
    Unknown,
    /// Results between layers.
    Activation,
    /// Gradients.
    Gradient,
    /// A model's parameters.
    Parameter,
    /// Room to work in.
    Temporary,
    /// Held by an allocator for later.
    Cached,
}

impl MemoryCategory {
    /// All.
    pub const ALL: [Self; 6] = [
        Self::Unknown,
        Self::Activation,
        Self::Gradient,
        Self::Parameter,
        Self::Temporary,
        Self::Cached,
    ];

    /// Its name in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Activation => "activation",
            Self::Gradient => "gradient",
            Self::Parameter => "parameter",
            Self::Temporary => "temporary",
            Self::Cached => "cached",
        }
    }

    /// The category of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.as_str() == name)
    }
}

/// Memory was allocated or freed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MemoryEvent<'a> {
    /// When.
    pub timestamp: Timestamp,
    /// Where it is drawn: process and thread.
    pub track: Track<'a>,
    /// Kind of the device, as `c10::DeviceType` numbers them: 0 the host, 1 CUDA.
    pub device_type: Option<i64>,
    /// Ordinal of the device; -1 for the host.
    pub device: Option<i64>,
    /// The thread that asked for it.
    pub thread: Option<i64>,
    /// Allocated or freed.
    pub operation: MemoryOperation,
    /// How many bytes.
    pub bytes: u64,
    /// Where the memory begins.
    pub address: Option<u64>,
    /// Bytes that are allocated after the event.
    pub total_allocated: Option<i64>,
    /// Bytes that the allocator holds after the event.
    pub total_reserved: Option<i64>,
    /// The allocator's name.
    pub allocator: Option<Text<'a>>,
    /// What the memory is used for.
    pub category: MemoryCategory,
    /// All else, in the producer's order.
    pub metadata: Metadata<'a>,
}
