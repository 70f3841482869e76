//! The keys of a record that mean something.

macro_rules! keys {
    ($($variant:ident = $name:literal,)*) => {
        /// A top-level key: those of the schema in its order, then those that name a process of a
        /// distributed run, then those that only legacy records have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Key {
            $($variant,)*
        }

        impl Key {
            /// All of them, each at its own number.
            pub(super) const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The key as it is spelled.
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The key with that spelling.
            pub(super) fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

keys! {
    SchemaVersion = "schema_version",
    TimestampNs = "timestamp_ns",
    EventType = "event_type",
    Collector = "collector",
    SamplingIntervalMs = "sampling_interval_ms",
    Pid = "pid",
    Host = "host",
    DeviceId = "device_id",
    AllocatorAllocatedBytes = "allocator_allocated_bytes",
    AllocatorReservedBytes = "allocator_reserved_bytes",
    AllocatorActiveBytes = "allocator_active_bytes",
    AllocatorInactiveBytes = "allocator_inactive_bytes",
    AllocatorChangeBytes = "allocator_change_bytes",
    DeviceUsedBytes = "device_used_bytes",
    DeviceFreeBytes = "device_free_bytes",
    DeviceTotalBytes = "device_total_bytes",
    Context = "context",
    Metadata = "metadata",

    JobId = "job_id",
    Rank = "rank",
    LocalRank = "local_rank",
    WorldSize = "world_size",

    Timestamp = "timestamp",
    Type = "type",
    Device = "device",
    Message = "message",
    Backend = "backend",
    MemoryAllocated = "memory_allocated",
    MemoryReserved = "memory_reserved",
    MemoryChange = "memory_change",
    MemoryMb = "memory_mb",
    TotalMemory = "total_memory",
    DeviceTotal = "device_total",
    TotalBytes = "total_bytes",
}

impl Key {
    /// Whether every version 2 record has the key.
    pub(super) fn is_required(self) -> bool {
        self <= Self::Metadata
    }

    /// Whether the key names a process of a distributed run, as later producers write it.
    pub(super) fn is_distributed(self) -> bool {
        (Self::JobId..=Self::WorldSize).contains(&self)
    }

    /// Whether an object with this key is meant as an event.
    pub(super) fn tells_an_event(self) -> bool {
        matches!(
            self,
            Self::SchemaVersion
                | Self::EventType
                | Self::Type
                | Self::MemoryAllocated
                | Self::MemoryMb
                | Self::Timestamp
                | Self::TimestampNs
        )
    }
}
