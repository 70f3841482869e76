//! What an event was, in numbers that do not change.

/// What an event was. A producer's category that has no place here is `Custom`; the category itself
/// is kept beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventType {
    /// Nothing is known of it.
    #[default]
    Unknown = 0,
    /// A call that launches a kernel.
    KernelLaunch = 1,
    /// A kernel that ran.
    KernelComplete = 2,
    /// A copy from host to device.
    MemcpyH2D = 3,
    /// A copy from device to host.
    MemcpyD2H = 4,
    /// A copy from device to device.
    MemcpyD2D = 5,
    /// A fill of device memory.
    MemsetDevice = 6,
    /// Waiting for a stream.
    StreamSync = 7,
    /// Waiting for a device.
    DeviceSync = 8,
    /// An event was recorded.
    EventRecord = 9,
    /// Waiting for an event.
    EventSync = 10,
    /// A stream was created.
    StreamCreate = 11,
    /// A stream was destroyed.
    StreamDestroy = 12,
    /// A context was created.
    ContextCreate = 13,
    /// A context was destroyed.
    ContextDestroy = 14,
    /// A call that allocates memory.
    MemAlloc = 15,
    /// A call that frees memory.
    MemFree = 16,
    /// An instant that the program or the profiler marked.
    Marker = 17,
    /// A range began; its end is an event of its own.
    RangeStart = 18,
    /// A range ended.
    RangeEnd = 19,
    /// A collective operation began.
    NcclStart = 20,
    /// A collective operation that ran.
    NcclComplete = 21,
    /// Something that only its producer knows.
    Custom = 255,
}

/// A number that names no event type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} names no event type: 0 to 21 and 255 do")]
pub struct UnknownEventType(pub u8);

impl EventType {
    /// All, by their numbers.
    pub const ALL: [Self; 23] = [
        Self::Unknown,
        Self::KernelLaunch,
        Self::KernelComplete,
        Self::MemcpyH2D,
        Self::MemcpyD2H,
        Self::MemcpyD2D,
        Self::MemsetDevice,
        Self::StreamSync,
        Self::DeviceSync,
        Self::EventRecord,
        Self::EventSync,
        Self::StreamCreate,
        Self::StreamDestroy,
        Self::ContextCreate,
        Self::ContextDestroy,
        Self::MemAlloc,
        Self::MemFree,
        Self::Marker,
        Self::RangeStart,
        Self::RangeEnd,
        Self::NcclStart,
        Self::NcclComplete,
        Self::Custom,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::KernelLaunch => "KernelLaunch",
            Self::KernelComplete => "KernelComplete",
            Self::MemcpyH2D => "MemcpyH2D",
            Self::MemcpyD2H => "MemcpyD2H",
            Self::MemcpyD2D => "MemcpyD2D",
            Self::MemsetDevice => "MemsetDevice",
            Self::StreamSync => "StreamSync",
            Self::DeviceSync => "DeviceSync",
            Self::EventRecord => "EventRecord",
            Self::EventSync => "EventSync",
            Self::StreamCreate => "StreamCreate",
            Self::StreamDestroy => "StreamDestroy",
            Self::ContextCreate => "ContextCreate",
            Self::ContextDestroy => "ContextDestroy",
            Self::MemAlloc => "MemAlloc",
            Self::MemFree => "MemFree",
            Self::Marker => "Marker",
            Self::RangeStart => "RangeStart",
            Self::RangeEnd => "RangeEnd",
            Self::NcclStart => "NCCLStart",
            Self::NcclComplete => "NCCLComplete",
            Self::Custom => "Custom",
        }
    }

    /// The type of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl TryFrom<u8> for EventType {
    type Error = UnknownEventType;

    fn try_from(number: u8) -> Result<Self, UnknownEventType> {
        let known = Self::ALL.into_iter().find(|kind| kind.number() == number);
        known.ok_or(UnknownEventType(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_types_and_types_have_numbers() {
        for (place, kind) in EventType::ALL.into_iter().enumerate() {
            assert_eq!(EventType::try_from(kind.number()), Ok(kind));
            assert!(usize::from(kind.number()) == place || kind == EventType::Custom);
        }
        assert_eq!((EventType::NcclComplete.number(), EventType::Custom.number()), (21, 255));
        assert_eq!(EventType::try_from(22), Err(UnknownEventType(22)));
    }
}
