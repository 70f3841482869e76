//! What a slice of a trace means for the figures: work of a device, a wait, or a call of the host.

use warpgauge_formats::trace::{EventType, TraceEvent};

/// What runs on a device. The numbers are bits, so that what runs at once is a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Work {
    /// A kernel that computes.
    Compute = 1,
    /// A kernel of NCCL or RCCL.
    Communication = 2,
    /// A copy or a fill.
    Memory = 4,
    /// A stream that waits or records an event. Nothing works.
    Wait = 8,
    /// A stretch that is annotated as a collective operation. Its work is in kernels of their own.
    Annotated = 16,
}

impl Work {
    /// All, in the order of their bits.
    pub(super) const ALL: [Self; 5] =
        [Self::Compute, Self::Communication, Self::Memory, Self::Wait, Self::Annotated];

    /// How many sets there are.
    pub(super) const SETS: usize = 1 << Self::ALL.len();

    /// The set that holds only this.
    pub(super) fn bit(self) -> usize {
        usize::from(self as u8)
    }

    /// Whether the device does something: neither a wait nor a word on what others do.
    pub(super) fn is_busy(self) -> bool {
        matches!(self, Self::Compute | Self::Communication | Self::Memory)
    }
}

/// What an event counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Something on a device.
    Work(Work),
    /// A call of the host that may ask for work.
    Call,
    /// Nothing of the two.
    Other,
}

impl Role {
    pub(super) fn of(event: &TraceEvent<'_>) -> Self {
        if event.duration.is_none() {
            return Self::Other;
        }
        let name = &*event.name;
        let category = event.category.as_deref().unwrap_or("");
        match category {
            "kernel" | "Kernel" | "mtia_ccp_events" | "hpu_op" => Self::Work(kernel(name)),
            "gpu_memcpy" | "gpu_memset" | "Memcpy" | "Memset" => Self::Work(Work::Memory),
            "cuda_sync" | "cuda_event" | "xpu_sync" => match event.stream {
                Some(0..) => Self::Work(Work::Wait),
                // A wait of the host for a whole device is drawn on stream -1.
                _ => Self::Other,
            },
            "gpu_user_annotation" if is_collective(name) => Self::Work(Work::Annotated),
            "collective_comm" if event.device.is_some() || event.stream.is_some() => {
                Self::Work(Work::Annotated)
            }
            "cuda_runtime"
            | "cuda_driver"
            | "Runtime"
            | "xpu_runtime"
            | "xpu_driver"
            | "mtia_runtime"
            | "privateuse1_runtime"
            | "privateuse1_driver" => call(event.event_type),
            "" => by_type(event),
            _ => Self::Other,
        }
    }
}

/// What a producer's event is that has a type and no category.
fn by_type(event: &TraceEvent<'_>) -> Role {
    match event.event_type {
        EventType::KernelComplete => Role::Work(kernel(&event.name)),
        EventType::NcclComplete => Role::Work(Work::Communication),
        EventType::MemcpyH2D
        | EventType::MemcpyD2H
        | EventType::MemcpyD2D
        | EventType::MemsetDevice => Role::Work(Work::Memory),
        EventType::KernelLaunch => Role::Call,
        _ => Role::Other,
    }
}

/// Names of kernels: those of the collective libraries, those that only move bytes
/// (HolisticTraceAnalysis 0.5.0, `utils.py`: `^nccl.*Kernel`, `(^Memcpy)|(^Memset)|(^dma)`), and
/// all others.
fn kernel(name: &str) -> Work {
    if is_collective(name) {
        return Work::Communication;
    }
    let only_moves = ["Memcpy", "Memset", "dma"].iter().any(|prefix| name.starts_with(prefix));
    if only_moves { Work::Memory } else { Work::Compute }
}

/// `ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)`, `ncclKernel_...`, `rccl...`; and annotations:
/// `nccl:all_reduce`.
fn is_collective(name: &str) -> bool {
    name.starts_with("nccl") || name.starts_with("rccl")
}

/// Calls that ask for no work on a device are not remembered.
fn call(event_type: EventType) -> Role {
    match event_type {
        EventType::StreamSync
        | EventType::DeviceSync
        | EventType::EventRecord
        | EventType::EventSync
        | EventType::StreamCreate
        | EventType::StreamDestroy
        | EventType::ContextCreate
        | EventType::ContextDestroy
        | EventType::MemAlloc
        | EventType::MemFree => Role::Other,
        _ => Role::Call,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_formats::time::Span;

    fn role(category: &'static str, name: &'static str, stream: Option<i64>) -> Role {
        let event = TraceEvent {
            category: Some(category.into()),
            name: name.into(),
            duration: Some(Span(1)),
            stream,
            ..TraceEvent::default()
        };
        Role::of(&event)
    }

    #[test]
    fn kernels_are_told_apart_by_their_names() {
        for (name, work) in [
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", Work::Communication),
            ("rcclGenericKernel", Work::Communication),
            ("volta_sgemm_128x64_nn", Work::Compute),
            ("Memset (Device)", Work::Memory),
        ] {
            assert_eq!(role("kernel", name, Some(7)), Role::Work(work), "{name}");
        }
        assert_eq!(role("gpu_memcpy", "x", Some(7)), Role::Work(Work::Memory));
    }

    #[test]
    fn a_slice_of_the_host_is_no_work_even_if_it_names_a_stream() {
        assert_eq!(role("cpu_op", "triton_poi_fused_0", Some(0)), Role::Other);
        assert_eq!(role("cuda_runtime", "cudaLaunchKernel", Some(0)), Role::Call);
    }

    #[test]
    fn a_wait_belongs_to_a_stream_or_to_nobody() {
        assert_eq!(role("cuda_sync", "Stream Sync", Some(7)), Role::Work(Work::Wait));
        assert_eq!(role("cuda_sync", "Context Sync", Some(-1)), Role::Other);
        assert_eq!(
            role("gpu_user_annotation", "nccl:all_reduce", None),
            Role::Work(Work::Annotated)
        );
        assert_eq!(role("gpu_user_annotation", "Optimizer.step", None), Role::Other);
    }
}
