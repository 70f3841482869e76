//! Why something could not be read from the management library.

use nvml_wrapper::error::NvmlError;

/// Each is a `reason` of `warpgauge.devices.faults`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The device has no such figure. Normal: products differ.
    NotSupported,
    /// The library is older than the figure. Normal.
    FunctionMissing,
    /// The kernel's driver is not loaded. Normal where the library came with a container's image.
    DriverNotLoaded,
    /// The device fell off the bus.
    GpuLost,
    /// The device has to be reset before it can be used again.
    ResetRequired,
    /// The user of the pass may not ask.
    NoPermission,
    /// A list was longer at each attempt than it had just said.
    InsufficientSize,
    /// Library and kernel driver are of different versions: the driver was updated under way.
    DriverLibraryMismatch,
    /// The library says that nobody initialised it.
    Uninitialized,
    /// The device is in use in a way that excludes the question.
    InUse,
    /// The library is there, but cannot be loaded.
    LibraryUnusable,
    /// No answer came until the deadline.
    NoAnswer,
    /// The figure cannot be true, such as more memory used than there is.
    Implausible,
    /// There are more devices than are read.
    TooManyDevices,
    /// Anything else.
    Unexpected,
}

impl Fault {
    /// Every one of them.
    pub const ALL: [Self; 15] = [
        Self::NotSupported,
        Self::FunctionMissing,
        Self::DriverNotLoaded,
        Self::GpuLost,
        Self::ResetRequired,
        Self::NoPermission,
        Self::InsufficientSize,
        Self::DriverLibraryMismatch,
        Self::Uninitialized,
        Self::InUse,
        Self::LibraryUnusable,
        Self::NoAnswer,
        Self::Implausible,
        Self::TooManyDevices,
        Self::Unexpected,
    ];

    /// The metric's attribute.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotSupported => "not_supported",
            Self::FunctionMissing => "function_missing",
            Self::DriverNotLoaded => "driver_not_loaded",
            Self::GpuLost => "gpu_lost",
            Self::ResetRequired => "reset_required",
            Self::NoPermission => "no_permission",
            Self::InsufficientSize => "insufficient_size",
            Self::DriverLibraryMismatch => "driver_library_mismatch",
            Self::Uninitialized => "uninitialized",
            Self::InUse => "in_use",
            Self::LibraryUnusable => "library_unusable",
            Self::NoAnswer => "no_answer",
            Self::Implausible => "implausible",
            Self::TooManyDevices => "too_many_devices",
            Self::Unexpected => "unexpected",
        }
    }

    /// Whether this is how some machines are, so that nobody has to hear of it at every pass.
    #[must_use]
    pub fn is_normal(self) -> bool {
        matches!(self, Self::NotSupported | Self::FunctionMissing | Self::DriverNotLoaded)
    }

    /// Whether the reason of a count is one of those that are normal.
    #[must_use]
    pub fn is_normal_reason(reason: &str) -> bool {
        Self::ALL.into_iter().any(|fault| fault.is_normal() && fault.reason() == reason)
    }

    /// Whether nothing more can be had of a device that answered so.
    pub(super) fn is_the_end_of_a_device(self) -> bool {
        matches!(self, Self::GpuLost | Self::ResetRequired | Self::Uninitialized)
    }
}

impl From<&NvmlError> for Fault {
    fn from(fault: &NvmlError) -> Self {
        match fault {
            NvmlError::NotSupported => Self::NotSupported,
            NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => Self::FunctionMissing,
            NvmlError::DriverNotLoaded => Self::DriverNotLoaded,
            NvmlError::GpuLost => Self::GpuLost,
            NvmlError::ResetRequired => Self::ResetRequired,
            NvmlError::NoPermission | NvmlError::OperatingSystem => Self::NoPermission,
            NvmlError::InsufficientSize(_) => Self::InsufficientSize,
            NvmlError::LibRmVersionMismatch => Self::DriverLibraryMismatch,
            NvmlError::Uninitialized => Self::Uninitialized,
            NvmlError::InUse => Self::InUse,
            NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => Self::LibraryUnusable,
            _ => Self::Unexpected,
        }
    }
}
