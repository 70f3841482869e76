//! The processes that use a device.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::device::{Handle, of};
use crate::result::{INSUFFICIENT_SIZE, INVALID_ARGUMENT, Result, Return, answer, code};
use crate::script::Device;

/// `nvmlProcessInfo_t` (nvml.h).
#[repr(C)]
struct ProcessInfo {
    pid: u32,
    used: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// `NVML_VALUE_NOT_AVAILABLE` (nvml.h) as a number of bytes.
const NOT_AVAILABLE: u64 = u64::MAX;

/// What stands for no instance.
const NO_INSTANCE: u32 = u32::MAX;

/// Of each device whose list grows, how often it has grown.
static GROWN: Mutex<BTreeMap<usize, u32>> = Mutex::new(BTreeMap::new());

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: Handle,
    count: *mut u32,
    out: *mut ProcessInfo,
) -> Return {
    let call = "nvmlDeviceGetComputeRunningProcesses_v3";
    // SAFETY: passed on from the caller.
    code(of(call, device).and_then(|found| unsafe { list(found, device, false, count, out) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    device: Handle,
    count: *mut u32,
    out: *mut ProcessInfo,
) -> Return {
    let call = "nvmlDeviceGetGraphicsRunningProcesses_v3";
    // SAFETY: passed on from the caller.
    code(of(call, device).and_then(|found| unsafe { list(found, device, true, count, out) }))
}

/// # Safety
/// `count` is null or may be read and written, `out` is null or has room for that many.
unsafe fn list(
    device: &Device,
    handle: Handle,
    graphics: bool,
    count: *mut u32,
    out: *mut ProcessInfo,
) -> Result<()> {
    if count.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    let of_kind = device.processes.iter().filter(|process| process.graphics == graphics);
    let mut processes: Vec<_> = of_kind.map(|process| (process.pid, process.used)).collect();
    let more = grown(device, handle);
    processes.extend((0..more).map(|place| (4_000_000 + place, Some(1))));
    // SAFETY: not null, and the caller promises that it may be read.
    let room = unsafe { count.read() };
    let needed = u32::try_from(processes.len()).unwrap_or(u32::MAX);
    // SAFETY: passed on from the caller.
    unsafe { answer(count, needed) }?;
    if room < needed {
        return Err(INSUFFICIENT_SIZE);
    }
    for (place, (pid, used)) in processes.into_iter().enumerate() {
        let used = used.unwrap_or(NOT_AVAILABLE);
        let (gpu_instance, compute_instance) = (NO_INSTANCE, NO_INSTANCE);
        let info = ProcessInfo { pid, used, gpu_instance, compute_instance };
        // SAFETY: the caller promises room for as many as there are, see above.
        let place = unsafe { out.add(place) };
        // SAFETY: as above.
        unsafe { answer(place, info) }?;
    }
    Ok(())
}

/// By how many processes the list has grown, with this call.
fn grown(device: &Device, handle: Handle) -> u32 {
    let mut grown = GROWN.lock().unwrap_or_else(PoisonError::into_inner);
    let times = grown.entry(handle.addr()).or_default();
    *times = device.grows.min(*times + 1);
    *times * device.grow
}
