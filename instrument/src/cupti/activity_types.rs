//! CUPTI's activity records, in cudarc's words, and proof that their layout is the one of NVIDIA's
//! header (cupti_activity.h).
//!
//! Kernels are read as far as their name, copies as far as their correlation id. So far the records
//! are the same from CUDA 11.6 (`CUpti_ActivityKernel7`, `CUpti_ActivityMemcpy5`) to 13.4
//! (`CUpti_ActivityKernel13`, `CUpti_ActivityMemcpy7`): every new one has only grown at its end.
//! Fields are read one by one, as plain numbers; enumerations never as such.

use std::mem::offset_of;

use cudarc::cupti::sys as cupti;

pub use cudarc::cupti::sys::CUpti_ActivityKernel9 as KernelRecord;
pub use cudarc::cupti::sys::CUpti_ActivityMemcpy5 as CopyRecord;

use crate::events::row::SMALLEST_RECORD;

/// `CUPTI_ACTIVITY_KIND_MEMCPY`.
pub const COPY: u32 = 1;

/// `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`: kernels that run side by side stay so, which the older
/// `CUPTI_ACTIVITY_KIND_KERNEL` prevents.
pub const KERNEL: u32 = 10;

/// What is asked for: kernels first, which matter most.
pub const KINDS: [u32; 2] = [KERNEL, COPY];

/// Bytes of a kernel's record that are read: up to and including the name.
pub const KERNEL_BYTES: usize = offset_of!(KernelRecord, name) + size_of::<usize>();

/// Bytes of a copy's record that are read: up to and including the correlation id.
pub const COPY_BYTES: usize = offset_of!(CopyRecord, correlationId) + size_of::<u32>();

/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`: buffers with records that are not complete as well.
pub const FLUSH_FORCED: u32 = 1;

/// `CUPTI_ERROR_MAX_LIMIT_REACHED`: the buffer has no further record.
pub const NO_FURTHER_RECORD: u32 = 12;

/// What CUPTI asks of a buffer's address (`ACTIVITY_RECORD_ALIGNMENT`).
pub const ALIGNMENT: usize = 8;

/// Fails to compile where a field is at another place than in NVIDIA's header.
macro_rules! layout {
    ($type:ty, $($field:ident at $offset:literal),+) => {
        const _: () = {
            $(assert!(offset_of!($type, $field) == $offset);)+
        };
    };
}

macro_rules! kernel_layout {
    ($($type:ty),+) => {$(
        layout!(
            $type,
            kind at 0, registersPerThread at 6, start at 16, end at 24, completed at 32,
            deviceId at 40, contextId at 44, streamId at 48, gridX at 52, gridY at 56, gridZ at 60,
            blockX at 64, blockY at 68, blockZ at 72, staticSharedMemory at 76,
            dynamicSharedMemory at 80, localMemoryPerThread at 84, localMemoryTotal at 88,
            correlationId at 92, gridId at 96, name at 104
        );
    )+};
}

kernel_layout!(
    cupti::CUpti_ActivityKernel7,
    cupti::CUpti_ActivityKernel8,
    cupti::CUpti_ActivityKernel9,
    cupti::CUpti_ActivityKernel10
);

macro_rules! copy_layout {
    ($($type:ty),+) => {$(
        layout!(
            $type,
            kind at 0, copyKind at 4, srcKind at 5, dstKind at 6, flags at 7, bytes at 8,
            start at 16, end at 24, deviceId at 32, contextId at 36, streamId at 40,
            correlationId at 44
        );
    )+};
}

copy_layout!(cupti::CUpti_ActivityMemcpy5, cupti::CUpti_ActivityMemcpy6);

const _: () = {
    use cupti::{CUpti_ActivityFlag, CUpti_ActivityKind, CUptiResult};
    assert!(COPY == CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_MEMCPY as u32);
    assert!(KERNEL == CUpti_ActivityKind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL as u32);
    assert!(FLUSH_FORCED == CUpti_ActivityFlag::CUPTI_ACTIVITY_FLAG_FLUSH_FORCED as u32);
    assert!(NO_FURTHER_RECORD == CUptiResult::CUPTI_ERROR_MAX_LIMIT_REACHED as u32);
    // A row takes its record's place.
    assert!(size_of::<CopyRecord>() == SMALLEST_RECORD);
    assert!(size_of::<KernelRecord>() == 208);
    assert!(size_of::<cupti::CUpti_ActivityKernel10>() == 216);
    assert!(size_of::<cupti::CUpti_ActivityMemcpy6>() == 96);
};
