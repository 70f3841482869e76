//! The SASS metrics: counters of what the stand-in driver executes, between Enable and Disable.
//!
//! The order of calls is checked as strictly as the documentation states it; a call out of order
//! fails and is logged, so that a test sees it.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::libc;

use crate::event::announce_end_of_context;
use crate::fault::{end_process, fault, log};
use crate::interface::Execution;
use crate::result::{
    CUptiResult, INVALID_CONTEXT, INVALID_OPERATION, INVALID_PARAMETER, NOT_INITIALIZED, SUCCESS,
};

/// Metrics by number; their id is [`FIRST_ID`] plus it.
const METRICS: [&CStr; 7] = [
    c"smsp__sass_inst_executed",
    c"smsp__sass_inst_executed_op_global",
    c"smsp__sass_l1tex_tags_mem_global",
    c"smsp__sass_branch_targets",
    c"smsp__sass_branch_targets_threads_divergent",
    c"smsp__sass_thread_inst_executed",
    c"smsp__sass_thread_inst_executed_pred_on",
];
const FIRST_ID: u64 = 0x2_0000_0001;

/// Each kernel counts at two places, so that whoever reads has to add up.
const RECORDS_PER_KERNEL: usize = 2;

/// What each parameter structure begins with.
#[repr(C)]
struct Head {
    size: usize,
    private: *mut c_void,
}

#[repr(C)]
struct DeviceSupported {
    head: Head,
    device: i32,
    supported: u32,
    reasons: [u32; 6],
    api: u32,
}

#[repr(C)]
struct ChipName {
    head: Head,
    device: usize,
    name: *const c_char,
}

#[repr(C)]
struct Properties {
    head: Head,
    chip: *const c_char,
    name: *const c_char,
    id: u64,
    own_name: *const c_char,
    description: *const c_char,
}

#[repr(C)]
struct MetricConfig {
    id: u64,
    granularity: u8,
}

#[repr(C)]
struct SetConfig {
    head: Head,
    count: usize,
    configs: *const MetricConfig,
    device: u32,
}

#[repr(C)]
struct UnsetConfig {
    head: Head,
    device: u32,
}

#[repr(C)]
struct Enable {
    head: Head,
    context: usize,
    lazily: u8,
}

#[repr(C)]
struct Disable {
    head: Head,
    context: usize,
    dropped: usize,
}

#[repr(C)]
struct DataProperties {
    head: Head,
    context: usize,
    records: usize,
    instances: usize,
}

#[repr(C)]
struct FlushData {
    properties: DataProperties,
    data: *mut Record,
}

#[repr(C)]
struct Record {
    head: Head,
    cubin: u32,
    function: u32,
    name: *const c_char,
    offset: u32,
    values: *mut InstanceValue,
}

#[repr(C)]
struct InstanceValue {
    id: u64,
    value: u64,
}

const _: () = {
    assert!(size_of::<DeviceSupported>() == 56);
    assert!(size_of::<SetConfig>() == 40);
    assert!(size_of::<Enable>() == 32);
    assert!(size_of::<FlushData>() == 48);
    assert!(size_of::<Record>() == 48);
};

#[derive(Default)]
struct State {
    initialized: bool,
    /// The one configuration that there is at a time, and its device.
    config: Option<(u32, Vec<u64>)>,
    /// Counters of the contexts that are enabled: by kernel, in the order of [`METRICS`].
    enabled: BTreeMap<usize, Enabled>,
}

struct Enabled {
    counts_nothing: bool,
    kernels: BTreeMap<CString, [u64; METRICS.len()]>,
}

static STATE: Mutex<State> =
    Mutex::new(State { initialized: false, config: None, enabled: BTreeMap::new() });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A kernel has run in a context.
pub(crate) fn executed(context: usize, execution: &Execution) {
    let mut state = state();
    let Some(enabled) = state.enabled.get_mut(&context) else { return };
    // SAFETY: the stand-in driver passes a C string.
    let name = unsafe { CStr::from_ptr(execution.name) };
    let counters = enabled.kernels.entry(name.to_owned()).or_default();
    if enabled.counts_nothing {
        return;
    }
    let Execution { instructions, global, lines, branches, divergent, .. } = *execution;
    let threads = 32 * instructions;
    let done = [instructions, global, lines, branches, divergent, threads, threads / 2];
    for (counter, done) in counters.iter_mut().zip(done) {
        *counter += done;
    }
}

/// A context goes, and its counters with it.
pub(crate) fn context_destroyed(context: usize) {
    state().enabled.remove(&context);
}

/// Makes a call: fails as requested, or with the parameters wrong, or out of order.
///
/// # Safety
/// `params` is null or valid.
unsafe fn call<P>(
    name: &str,
    params: *mut P,
    size: usize,
    body: impl FnOnce(&mut P, &mut State) -> Result<(), CUptiResult>,
) -> CUptiResult {
    if let Some(error) = fault(name) {
        return error;
    }
    if params.is_null() {
        return INVALID_PARAMETER;
    }
    // SAFETY: not null, and every structure begins with its size.
    if unsafe { params.cast::<usize>().read() } != size {
        log(&format!("{name}: wrong structSize"));
        return INVALID_PARAMETER;
    }
    // SAFETY: not null, and the caller promises the structure.
    let params = unsafe { &mut *params };
    let mut state = state();
    if !state.initialized && name != "profiler-initialize" {
        return NOT_INITIALIZED;
    }
    match body(params, &mut state) {
        Ok(()) => SUCCESS,
        Err(error) => {
            if error == INVALID_OPERATION {
                log(&format!("{name}: out of order"));
            }
            error
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiProfilerInitialize(params: *mut c_void) -> CUptiResult {
    // SAFETY: the C interface asks for this structure.
    unsafe {
        call("profiler-initialize", params.cast::<Head>(), 16, |_, state| {
            state.initialized = true;
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiProfilerDeviceSupported(params: *mut c_void) -> CUptiResult {
    // SAFETY: the C interface asks for this structure.
    unsafe {
        call("device-supported", params.cast::<DeviceSupported>(), 52, |params, _| {
            let supported = if fault("unsupported").is_some() { 1 } else { 3 };
            params.supported = if params.api == 2 { supported } else { 1 };
            params.reasons = [params.supported; 6];
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiDeviceGetChipName(params: *mut c_void) -> CUptiResult {
    // SAFETY: the C interface asks for this structure.
    unsafe {
        call("chip-name", params.cast::<ChipName>(), 32, |params, _| {
            params.name = c"GH100".as_ptr();
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiSassMetricsGetProperties(params: *mut c_void) -> CUptiResult {
    let body = |params: &mut Properties, _: &mut State| {
        if params.chip.is_null() || params.name.is_null() {
            return Err(INVALID_PARAMETER);
        }
        // SAFETY: not null, and the caller passes a C string.
        let chip = unsafe { CStr::from_ptr(params.chip) };
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(params.name) };
        let number = METRICS.iter().position(|metric| *metric == name);
        let number = number.filter(|_| chip == c"GH100").ok_or(INVALID_PARAMETER)?;
        if fault("lacks").is_some_and(|lacking| lacking as usize == number) {
            return Err(INVALID_PARAMETER);
        }
        params.id = FIRST_ID + number as u64;
        Ok(())
    };
    // SAFETY: the C interface asks for this structure.
    unsafe { call("properties", params.cast(), 56, body) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiSassMetricsSetConfig(params: *mut c_void) -> CUptiResult {
    let body = |params: &mut SetConfig, state: &mut State| {
        if state.config.is_some() {
            return Err(INVALID_OPERATION);
        }
        let fits = fault("fits").map_or(METRICS.len(), |most| most as usize);
        if params.configs.is_null() || params.count == 0 || params.count > fits {
            return Err(INVALID_PARAMETER);
        }
        // SAFETY: not null, and the caller says how many there are.
        let configs = unsafe { std::slice::from_raw_parts(params.configs, params.count) };
        let known = FIRST_ID..FIRST_ID + METRICS.len() as u64;
        let whole_device = |config: &MetricConfig| config.granularity == 0;
        if !configs.iter().all(|config| known.contains(&config.id) && whole_device(config)) {
            return Err(INVALID_PARAMETER);
        }
        let ids = configs.iter().map(|config| config.id).collect();
        state.config = Some((params.device, ids));
        Ok(())
    };
    // SAFETY: the C interface asks for this structure.
    unsafe { call("set-config", params.cast(), 36, body) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiSassMetricsUnsetConfig(params: *mut c_void) -> CUptiResult {
    // SAFETY: the C interface asks for this structure.
    unsafe {
        call("unset-config", params.cast::<UnsetConfig>(), 20, |params, state| {
            let is_its = state.config.as_ref().is_some_and(|(device, _)| *device == params.device);
            if !is_its || !state.enabled.is_empty() {
                return Err(INVALID_OPERATION);
            }
            state.config = None;
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiSassMetricsEnable(params: *mut c_void) -> CUptiResult {
    if let Some(milliseconds) = fault("slow-window") {
        std::thread::sleep(Duration::from_millis(milliseconds.into()));
    }
    if let Some(code) = fault("exit-in-window") {
        log("exit inside a window");
        end_process(code);
    }
    // SAFETY: the C interface asks for this structure.
    let outcome = unsafe {
        call("sass-enable", params.cast::<Enable>(), 25, |params, state| {
            if state.config.is_none() || state.enabled.contains_key(&params.context) {
                return Err(INVALID_OPERATION);
            }
            if params.context == 0 {
                return Err(INVALID_CONTEXT);
            }
            let lazily = params.lazily != 0;
            let counts_nothing =
                fault("zeros").is_some() || (lazily && fault("lazy-zeros").is_some());
            let enabled = Enabled { counts_nothing, kernels: BTreeMap::new() };
            state.enabled.insert(params.context, enabled);
            Ok(())
        })
    };
    if outcome == SUCCESS && fault("context-gone").is_some() {
        // SAFETY: not null, or the call would have failed.
        let context = unsafe { (*params.cast::<Enable>()).context };
        announce_end_of_context(context);
        context_destroyed(context);
    }
    outcome
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiSassMetricsDisable(params: *mut c_void) -> CUptiResult {
    // SAFETY: the C interface asks for this structure.
    unsafe {
        call("sass-disable", params.cast::<Disable>(), 32, |params, state| {
            params.dropped = 0;
            state.enabled.remove(&params.context).map(drop).ok_or(INVALID_OPERATION)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiSassMetricsGetDataProperties(params: *mut c_void) -> CUptiResult {
    // SAFETY: the C interface asks for this structure.
    unsafe {
        call("data-properties", params.cast::<DataProperties>(), 40, |params, state| {
            let enabled = state.enabled.get(&params.context).ok_or(INVALID_OPERATION)?;
            let (_, ids) = state.config.as_ref().ok_or(INVALID_OPERATION)?;
            params.records = RECORDS_PER_KERNEL * enabled.kernels.len();
            if fault("no-records").is_some() {
                params.records = 0;
            }
            if fault("many-records").is_some() {
                params.records = usize::MAX / 2;
            }
            params.instances = ids.len();
            Ok(())
        })
    }
}

/// A copy of a name for the caller to free, or what `record-names` asks for; `before` is the one
/// before.
fn name_for(name: &CStr, before: *const c_char) -> *const c_char {
    // SAFETY: a C string.
    let copy = || unsafe { libc::strdup(name.as_ptr()) };
    match fault("record-names") {
        None => copy(),
        Some(1) => ptr::without_provenance(0x7000_0000_0010),
        Some(2) => c"a constant that nobody may free".as_ptr(),
        Some(3) if !before.is_null() => before,
        Some(3) => copy(),
        // SAFETY: within the copy or at its end.
        Some(_) => unsafe { copy().add(1) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiSassMetricsFlushData(params: *mut c_void) -> CUptiResult {
    let body = |params: &mut FlushData, state: &mut State| {
        let DataProperties { context, records, instances, .. } = params.properties;
        let enabled = state.enabled.get_mut(&context).ok_or(INVALID_OPERATION)?;
        let (_, ids) = state.config.as_ref().ok_or(INVALID_OPERATION)?;
        let kernels = std::mem::take(&mut enabled.kernels);
        if (records, instances) != (RECORDS_PER_KERNEL * kernels.len(), ids.len()) {
            return Err(INVALID_PARAMETER);
        }
        if records == 0 {
            return Ok(());
        }
        // SAFETY: the caller gives as many records as it says.
        let data = unsafe { std::slice::from_raw_parts_mut(params.data, records) };
        let mut first = ptr::null();
        let halves = kernels.iter().flat_map(|kernel| [(kernel, 0), (kernel, 1)]);
        for (record, ((name, counters), half)) in data.iter_mut().zip(halves) {
            if record.head.size != size_of::<Record>() {
                return Err(INVALID_PARAMETER);
            }
            record.cubin = 0xc0de;
            record.offset = 16 * half;
            record.name = name_for(name, first);
            first = record.name;
            // SAFETY: the caller gives as many values with each record as it says.
            let values = unsafe { std::slice::from_raw_parts_mut(record.values, instances) };
            for (value, id) in values.iter_mut().zip(ids) {
                let number = usize::try_from(id - FIRST_ID).unwrap_or(usize::MAX);
                let counted = counters.get(number).copied().unwrap_or(0);
                let part = if half == 0 { counted / 2 } else { counted - counted / 2 };
                *value = match fault("garbage") {
                    Some(1) => InstanceValue { id: !id, value: part },
                    Some(_) => InstanceValue { id: *id, value: u64::MAX },
                    None => InstanceValue { id: *id, value: part },
                };
            }
        }
        Ok(())
    };
    // SAFETY: the C interface asks for this structure.
    unsafe { call("flush-data", params.cast(), 40, body) }
}
