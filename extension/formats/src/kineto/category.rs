//! What Kineto's categories, and the names under them, mean.

use crate::trace::EventType;

/// Whether a category is one that Kineto writes today or wrote in 2021.
pub(super) fn is_known(category: &str) -> bool {
    is_device(category)
        || matches!(
            category,
            "cpu_op"
                | "user_annotation"
                | "external_correlation"
                | "cuda_runtime"
                | "cuda_driver"
                | "cpu_instant_event"
                | "python_function"
                | "overhead"
                | "mtia_runtime"
                | "mtia_insight"
                | "mtia_counters"
                | "glow_runtime"
                | "cuda_profiler_range"
                | "xpu_runtime"
                | "xpu_driver"
                | "collective_comm"
                | "privateuse1_runtime"
                | "privateuse1_driver"
                | "xpu_scope_profiler"
                | "hardware_counters"
                | "Trace"
                | "Operator"
                | "Runtime"
                // Of our own timelines.
                | "profile_sample"
                | "session"
        )
}

/// Whether events of the category run on a device, so that their row is a stream and no thread.
pub(super) fn is_device(category: &str) -> bool {
    matches!(
        category,
        "kernel"
            | "gpu_memcpy"
            | "gpu_memset"
            | "gpu_user_annotation"
            | "cuda_sync"
            | "cuda_event"
            | "mtia_ccp_events"
            | "hpu_op"
            | "xpu_sync"
            | "Kernel"
            | "Memcpy"
            | "Memset"
    )
}

/// What an event of that category and name was.
pub(super) fn event_type(category: &str, name: &str) -> EventType {
    match category {
        "kernel" | "Kernel" if name.starts_with("nccl") => EventType::NcclComplete,
        "collective_comm" => EventType::NcclComplete,
        "kernel" | "Kernel" => EventType::KernelComplete,
        "gpu_memset" | "Memset" => EventType::MemsetDevice,
        "gpu_memcpy" | "Memcpy" => copy(name),
        "cuda_runtime" | "cuda_driver" | "Runtime" => call(name),
        "cuda_sync" => wait(name),
        "cuda_event" => EventType::EventRecord,
        "" => EventType::Unknown,
        _ => EventType::Custom,
    }
}

/// `Memcpy HtoD (Pinned -> Device)`
fn copy(name: &str) -> EventType {
    match name.split(' ').nth(1) {
        Some("HtoD") => EventType::MemcpyH2D,
        Some("DtoH") => EventType::MemcpyD2H,
        Some("DtoD" | "PtoP") => EventType::MemcpyD2D,
        _ => EventType::Custom,
    }
}

fn wait(name: &str) -> EventType {
    match name {
        "Stream Sync" => EventType::StreamSync,
        "Context Sync" => EventType::DeviceSync,
        "Event Sync" | "Stream Wait Event" => EventType::EventSync,
        _ => EventType::Custom,
    }
}

/// An API function, by its name without the API's own prefix and the version's suffix.
fn call(name: &str) -> EventType {
    let bare = ["cuda", "cu", "hip"].iter().find_map(|prefix| name.strip_prefix(prefix));
    match bare.unwrap_or(name) {
        call if call.starts_with("Launch") || call == "GraphLaunch" => EventType::KernelLaunch,
        call if call.starts_with("ExtModuleLaunchKernel") => EventType::KernelLaunch,
        call if call.starts_with("ModuleLaunchKernel") => EventType::KernelLaunch,
        "StreamSynchronize" => EventType::StreamSync,
        "DeviceSynchronize" | "CtxSynchronize" => EventType::DeviceSync,
        call if call.starts_with("EventRecord") => EventType::EventRecord,
        "EventSynchronize" | "StreamWaitEvent" => EventType::EventSync,
        call if call.starts_with("StreamCreate") => EventType::StreamCreate,
        call if call.starts_with("StreamDestroy") => EventType::StreamDestroy,
        call if call.starts_with("CtxCreate") => EventType::ContextCreate,
        call if call.starts_with("CtxDestroy") => EventType::ContextDestroy,
        call if call.starts_with("Malloc") || call.starts_with("MemAlloc") => EventType::MemAlloc,
        call if call.starts_with("Free") || call.starts_with("MemFree") => EventType::MemFree,
        _ => EventType::Custom,
    }
}

/// The category under which Kineto files an event of that type; none where it has none.
pub(super) fn of_event_type(event_type: EventType) -> Option<&'static str> {
    Some(match event_type {
        EventType::Unknown | EventType::Marker | EventType::Custom => return None,
        EventType::KernelComplete => "kernel",
        EventType::MemcpyH2D | EventType::MemcpyD2H | EventType::MemcpyD2D => "gpu_memcpy",
        EventType::MemsetDevice => "gpu_memset",
        EventType::RangeStart | EventType::RangeEnd => "user_annotation",
        EventType::NcclStart | EventType::NcclComplete => "collective_comm",
        _ => "cuda_runtime",
    })
}
