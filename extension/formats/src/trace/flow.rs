//! Arrows between events.

use super::{Metadata, Track};
use crate::event::Text;
use crate::time::Timestamp;

/// What an arrow means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
#[repr(u8)]
pub enum FlowType {
    /// Nothing.
    #[default]
    None = 0,
    /// From an operator to its backward operator (`fwdbwd`).
    ForwardBackward = 1,
    /// From a call on the host to the work on the device (`ac2g`).
    AsyncCpuToGpu = 2,
    /// What only its producer knows.
    Custom = 255,
}

impl FlowType {
    /// Its number.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Its name: the category that Kineto writes for it, and `none`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            other => other.category(),
        }
    }

    /// The type of that name; `fwd_bwd` is another name of [`FlowType::ForwardBackward`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name == "fwd_bwd" {
            return Some(Self::ForwardBackward);
        }
        let all = [Self::None, Self::ForwardBackward, Self::AsyncCpuToGpu, Self::Custom];
        all.into_iter().find(|flow_type| flow_type.name() == name)
    }

    /// What the producers' category means: `fwdbwd`, `ac2g`, and `async` of 2021.
    #[must_use]
    pub fn of_category(category: &str) -> Self {
        match category {
            "" => Self::None,
            "fwdbwd" => Self::ForwardBackward,
            "ac2g" | "async" => Self::AsyncCpuToGpu,
            _ => Self::Custom,
        }
    }

    /// The category that Kineto writes for it.
    #[must_use]
    pub fn category(self) -> &'static str {
        match self {
            Self::None => "",
            Self::ForwardBackward => "fwdbwd",
            Self::AsyncCpuToGpu => "ac2g",
            Self::Custom => "custom",
        }
    }
}

/// One end of an arrow. Starts without an end and ends without a start are normal: the other lies
/// outside of what was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flow {
    /// Joins the two ends, together with the category.
    pub id: i64,
    /// What the arrow means.
    pub flow_type: FlowType,
    /// Whether this is the end where the arrow starts.
    pub start: bool,
}

impl Flow {
    /// A number for the arrow within the whole trace, where `id` counts within its category: equal
    /// ids of two categories stay apart.
    pub(crate) fn number(self, category: &str) -> u64 {
        // FNV-1a over the category.
        let seed = category.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        seed ^ self.id.cast_unsigned()
    }
}

/// One end of an arrow that is fastened to the event on the track that runs at that time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlowPoint<'a> {
    /// The arrow's end.
    pub flow: Flow,
    /// A moment within the event.
    pub timestamp: Timestamp,
    /// Where the event is drawn.
    pub track: Track<'a>,
    /// The producer's category.
    pub category: Text<'a>,
    /// The arrow's name.
    pub name: Text<'a>,
    /// Whether an end is fastened to the event around it rather than to the next one (`"bp":"e"`).
    pub enclosing: bool,
    /// Other members of the record.
    pub extra: Metadata<'a>,
}
