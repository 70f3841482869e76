//! A kernel or a copy, as it is taken from CUPTI's record and as the writer needs it.

use crate::names::NameId;

/// What ran on a device. Smaller than any record of CUPTI's that it is made of, so that rows take
/// their records' place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Row {
    /// When it began, in nanoseconds of CUPTI's clock.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Bytes copied; 0 for a kernel.
    pub bytes: u64,
    /// A kernel's name.
    pub name: NameId,
    /// CUPTI's number of the device.
    pub device: u32,
    /// CUPTI's number of the stream.
    pub stream: u32,
    /// Joins it with the call that asked for it.
    pub correlation: u32,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Shared memory asked for at launch, bytes per block.
    pub dynamic_shared: u32,
    /// Shared memory that the kernel declares, bytes per block.
    pub static_shared: u32,
    /// Local memory, bytes per thread.
    pub local_per_thread: u32,
    /// Threads of a block along x, y and z; 1,024 at most.
    pub block: [u16; 3],
    /// Registers per thread.
    pub registers: u16,
    /// `CUpti_ActivityMemcpyKind`; meaningless for a kernel.
    pub copy_kind: u8,
    /// Whether it is a copy.
    pub is_copy: bool,
}

/// The smallest record that a row is made of (`CUpti_ActivityMemcpy5`).
pub const SMALLEST_RECORD: usize = 88;

const _: () = assert!(size_of::<Row>() <= SMALLEST_RECORD);
