//! What a device says of itself.

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::result::{INVALID_ARGUMENT, NOT_SUPPORTED, Result, Return, answer, answer_text, code};
use crate::script::Device;
use crate::system::ready;

/// `nvmlDevice_t` (nvml.h): here a number that says which device, and which MIG instance of it.
pub(crate) type Handle = *mut c_void;

/// Room for the MIG instances of one device; a GPU has seven at most.
const INSTANCES: usize = 256;

/// `nvmlMemory_v2_t` (nvml.h).
#[repr(C)]
struct Memory {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `nvmlUtilization_t` (nvml.h), in percent.
#[repr(C)]
struct Utilization {
    gpu: u32,
    memory: u32,
}

/// The handle of a device, or of one of its MIG instances, both counted from 0.
pub(crate) fn handle(device: usize, instance: Option<usize>) -> Handle {
    ptr::without_provenance_mut((device + 1) * INSTANCES + instance.map_or(0, |place| place + 1))
}

/// Which device and which of its MIG instances a handle means.
pub(crate) fn place(handle: Handle) -> Result<(usize, Option<usize>)> {
    let device = (handle.addr() / INSTANCES).checked_sub(1).ok_or(INVALID_ARGUMENT)?;
    Ok((device, (handle.addr() % INSTANCES).checked_sub(1)))
}

/// The device or MIG instance of a handle, unless a fault is played instead.
pub(crate) fn of(call: &str, handle: Handle) -> Result<&'static Device> {
    let (device, instance) = place(handle)?;
    let device = ready(call, Some(device))?.devices.get(device).ok_or(INVALID_ARGUMENT)?;
    match instance {
        None => Ok(device),
        Some(instance) => device.instances.get(instance).ok_or(INVALID_ARGUMENT),
    }
}

/// Of what a whole device has and a MIG instance has not.
fn whole(call: &str, handle: Handle) -> Result<&'static Device> {
    let device = of(call, handle)?;
    if place(handle)?.1.is_some() { Err(NOT_SUPPORTED) } else { Ok(device) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: u32, out: *mut Handle) -> Return {
    let index = index as usize;
    code(ready("nvmlDeviceGetHandleByIndex_v2", Some(index)).and_then(|script| {
        script.devices.get(index).ok_or(INVALID_ARGUMENT)?;
        // SAFETY: the caller passes a pointer to be written, as the C interface asks.
        unsafe { answer(out, handle(index, None)) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetUUID(device: Handle, out: *mut c_char, length: u32) -> Return {
    code(of("nvmlDeviceGetUUID", device).and_then(|device| {
        // SAFETY: the caller passes room of that length, as the C interface asks.
        unsafe { answer_text(out, length, &device.uuid) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetName(device: Handle, out: *mut c_char, length: u32) -> Return {
    code(of("nvmlDeviceGetName", device).and_then(|device| {
        // SAFETY: the caller passes room of that length, as the C interface asks.
        unsafe { answer_text(out, length, &device.name) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Handle, out: *mut Memory) -> Return {
    code(of("nvmlDeviceGetMemoryInfo_v2", device).and_then(|device| {
        let Device { total, reserved, used, .. } = *device;
        let free = total.saturating_sub(reserved).saturating_sub(used);
        // NVML_STRUCT_VERSION(Memory, 2) (nvml.h)
        let version = u32::try_from(size_of::<Memory>()).unwrap_or(0) | 2 << 24;
        // SAFETY: the caller passes a pointer to be read and written, as the C interface asks.
        if out.is_null() || unsafe { (*out).version } != version {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: as above.
        unsafe { answer(out, Memory { version, total, reserved, free, used }) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetUtilizationRates(
    device: Handle,
    out: *mut Utilization,
) -> Return {
    code(whole("nvmlDeviceGetUtilizationRates", device).and_then(|device| {
        // As NVIDIA's driver, which has no such figure of a device that is divided.
        if !device.instances.is_empty() {
            return Err(NOT_SUPPORTED);
        }
        // SAFETY: the caller passes a pointer to be written, as the C interface asks.
        unsafe { answer(out, Utilization { gpu: device.gpu, memory: device.memory }) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTemperature(
    device: Handle,
    sensor: u32,
    out: *mut u32,
) -> Return {
    code(whole("nvmlDeviceGetTemperature", device).and_then(|device| {
        // NVML_TEMPERATURE_GPU (nvml.h)
        if sensor != 0 {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: the caller passes a pointer to be written, as the C interface asks.
        unsafe { answer(out, device.temperature) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetPowerUsage(device: Handle, out: *mut u32) -> Return {
    code(whole("nvmlDeviceGetPowerUsage", device).and_then(|device| {
        // SAFETY: the caller passes a pointer to be written, as the C interface asks.
        unsafe { answer(out, device.power) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(
    device: Handle,
    out: *mut u64,
) -> Return {
    code(whole("nvmlDeviceGetCurrentClocksThrottleReasons", device).and_then(|device| {
        // SAFETY: the caller passes a pointer to be written, as the C interface asks.
        unsafe { answer(out, device.throttling) }
    }))
}
