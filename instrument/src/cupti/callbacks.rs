//! What happens on the host's threads, around its calls.
//!
//! At the entry of a launch a window may open ([`crate::window`]). The launch is counted after the
//! driver has accepted it: one that is refused never ran, and before the call nobody can tell. The
//! parameters still stand, because the call has not returned to the host. Nothing here allocates, locks or writes; a name that CUPTI brings along is never read, as
//! it may be an invalid pointer.
#![allow(unsafe_code, reason = "CUPTI hands over pointers")]

use std::ffi::c_void;

use crate::cupti::types::{
    API_ENTER, API_EXIT, CLUSTER_DIMENSION, CallbackData, LaunchAttribute, LaunchConfig,
    LaunchExParams, LaunchParams, ResourceData, capture_id, domain, graph_id, launch_id,
    resource_id,
};
use crate::events;
use crate::guard::{Entry, guard};
use crate::launch::Launch;
use crate::lifecycle::{LIFECYCLE, State};
use crate::observer::{self, Arrival};

/// More attributes than CUDA has.
const MAX_ATTRIBUTES: u32 = 64;

/// The function that CUPTI calls.
///
/// # Safety
/// `data` is what CUPTI documents for the domain and the id.
pub unsafe extern "C" fn on_callback(
    _user: *mut c_void,
    domain: u32,
    id: u32,
    data: *const c_void,
) {
    guard(Entry::Callback, (), || {
        // A window that is open is closed even if measuring has ended meanwhile, but for a process
        // that exits: CUDA may be gone.
        if !LIFECYCLE.is_measuring()
            && (LIFECYCLE.state() == State::Off || !observer::window().is_open())
        {
            return;
        }
        match domain {
            // SAFETY: in this domain, data points to a CUpti_CallbackData.
            domain::DRIVER_API => unsafe { on_driver_call(id, data.cast()) },
            // SAFETY: in this domain, data points to a CUpti_ResourceData.
            domain::RESOURCE => unsafe { on_resource(id, data.cast()) },
            _ => {}
        }
    });
}

/// # Safety
/// `data` is null or valid for the duration of the callback.
unsafe fn on_resource(id: u32, data: *const ResourceData) {
    match id {
        resource_id::MODULE_LOADED => observer::window().module_loaded(),
        resource_id::CONTEXT_DESTROY_STARTING => {
            if !data.is_null() {
                // SAFETY: not null and valid.
                let context = unsafe { (*data).context } as u64;
                observer::window().context_destroyed(context);
            }
            observer::functions_changed();
        }
        _ => observer::functions_changed(),
    }
}

/// # Safety
/// `data` is null or valid for the duration of the callback, with the parameters of call `id`.
unsafe fn on_driver_call(id: u32, data: *const CallbackData) {
    if data.is_null() {
        return;
    }
    // SAFETY: not null and valid; the site is the first field, read as the number that it is.
    let site = unsafe { data.cast::<u32>().read() };
    if capture_id::BEGIN.contains(&id) {
        if site == API_ENTER {
            observer::window().capture_begins();
        // SAFETY: the call has returned.
        } else if !unsafe { succeeded(data) } {
            observer::window().capture_ended();
        }
        return;
    }
    if capture_id::END.contains(&id) {
        if site == API_EXIT {
            observer::window().capture_ended();
        }
        return;
    }
    // SAFETY: not null and valid.
    let context = unsafe { (*data).context } as u64;
    // SAFETY: not null and valid.
    let params = unsafe { (*data).functionParams };
    // SAFETY: not null and valid.
    let mark = unsafe { (*data).correlationData };
    if params.is_null() {
        return;
    }
    if is_about_graphs(id) {
        // SAFETY: before the call its result is not looked at; the parameters are its own.
        let accepted = site == API_EXIT && unsafe { succeeded(data) };
        // SAFETY: as above.
        return unsafe { on_graph_call(id, site, accepted, context, params.cast(), mark) };
    }
    // SAFETY: the parameters are those of the call.
    let arrival = || unsafe { arrival(id, context, params) };
    if site == API_ENTER {
        let entered = observer::entering(context, arrival);
        if !mark.is_null() {
            // SAFETY: not null, and CUPTI gives the word to us from the entry to the exit.
            unsafe { mark.write(entered) };
        }
        return;
    }
    // SAFETY: the call has returned.
    let accepted = unsafe { succeeded(data) };
    if accepted && let Some(arrival) = arrival() {
        observer::launched(&arrival);
        if !observer::window().is_capturing_anywhere() {
            events::memory::after_launch();
        }
    }
    if !mark.is_null() {
        // SAFETY: not null, and the word that the entry wrote.
        observer::leaving(unsafe { mark.read() }, context, accepted);
    }
}

fn is_about_graphs(id: u32) -> bool {
    // One comparison for what is launched most.
    !launch_id::PLAIN.contains(&id)
        && (graph_id::LAUNCH.contains(&id)
            || graph_id::INSTANTIATE.contains(&id)
            || graph_id::UPDATE.contains(&id)
            || graph_id::SET_PARAMS.contains(&id)
            || id == graph_id::DESTROY)
}

/// # Safety
/// `params` are those of call `id`: handles, of which the first is an executable graph, or where an
/// instantiation puts it, and the second of an instantiation or an update the graph, of a launch the
/// stream. `mark` is null or CUPTI's word for the call.
unsafe fn on_graph_call(
    id: u32,
    site: u32,
    accepted: bool,
    context: u64,
    params: *const u64,
    mark: *mut u64,
) {
    // SAFETY: every one of these structures begins with a handle or a pointer.
    let executable = unsafe { params.read() };
    if site == API_ENTER {
        if graph_id::LAUNCH.contains(&id) {
            // SAFETY: the second of this structure's fields is the stream.
            let [_, stream] = unsafe { params.cast::<[u64; 2]>().read() };
            let stream = stream_of(stream, id == graph_id::LAUNCH[1]);
            if !mark.is_null() {
                let entered = observer::graph_enters(executable, context, stream);
                // SAFETY: not null, and CUPTI gives the word to us from the entry to the exit.
                unsafe { mark.write(entered) };
            }
        } else if id == graph_id::DESTROY {
            observer::graphs().destroyed(executable);
        }
        return;
    }
    if graph_id::LAUNCH.contains(&id) {
        if accepted {
            observer::graph_launched(executable, context);
        }
        if !mark.is_null() {
            // SAFETY: not null, and the word that the entry wrote.
            observer::leaving(unsafe { mark.read() }, context, accepted);
        }
        return;
    }
    if !accepted {
        return;
    }
    if graph_id::INSTANTIATE.contains(&id) {
        let place = executable as *const u64;
        if !place.is_null() {
            // SAFETY: the call has put the executable graph there.
            let executable = unsafe { place.read() };
            // SAFETY: the second of these structures' fields is the graph.
            let [_, graph] = unsafe { params.cast::<[u64; 2]>().read() };
            observer::graph_instantiated(executable, graph);
        }
    } else if graph_id::UPDATE.contains(&id) {
        // SAFETY: as above.
        let [_, graph] = unsafe { params.cast::<[u64; 2]>().read() };
        observer::graph_instantiated(executable, graph);
    } else if graph_id::SET_PARAMS.contains(&id) {
        observer::graphs().changed(executable);
    }
}

/// # Safety
/// `data` is valid and its call has returned.
unsafe fn succeeded(data: *const CallbackData) -> bool {
    // SAFETY: the caller promises the structure.
    let result = unsafe { (*data).functionReturnValue }.cast::<u32>();
    // SAFETY: after the call, the return value of a driver function is a CUresult or absent.
    !result.is_null() && unsafe { result.read() } == 0
}

/// What arrives with a call that launches; `None` for others.
///
/// # Safety
/// `params` are those of call `id`.
unsafe fn arrival(id: u32, context: u64, params: *const c_void) -> Option<Arrival> {
    let (launch, stream) = if launch_id::EX.contains(&id) {
        // SAFETY: the call is cuLaunchKernelEx, whose parameters these are.
        unsafe { launch_ex(context, params.cast()) }?
    } else if launch_id::PLAIN.contains(&id) || launch_id::COOPERATIVE.contains(&id) {
        // SAFETY: the call is cuLaunchKernel or the cooperative one, alike up to the stream.
        unsafe { launch_plain(context, params.cast()) }
    } else {
        return None;
    };
    let per_thread = launch_id::PER_THREAD_STREAM.contains(&id);
    let stream = stream_of(stream, per_thread);
    Some(Arrival { launch, stream, cooperative: launch_id::COOPERATIVE.contains(&id) })
}

/// The stream that a call means; in the variants `_ptsz`, null is the thread's own.
fn stream_of(stream: u64, per_thread: bool) -> u64 {
    /// `CU_STREAM_PER_THREAD`.
    const PER_THREAD: u64 = 2;
    if stream == 0 && per_thread { PER_THREAD } else { stream }
}

/// # Safety
/// `params` is valid up to and including the stream.
unsafe fn launch_plain(context: u64, params: *const LaunchParams) -> (Launch, u64) {
    // Fields are read one by one: the cooperative structure is shorter than the type.
    macro_rules! read {
        ($field:ident) => {
            // SAFETY: the caller promises this part of the structure.
            unsafe { (*params).$field }
        };
    }
    let launch = Launch {
        context,
        function: read!(f) as u64,
        grid: [read!(gridDimX), read!(gridDimY), read!(gridDimZ)],
        block: [read!(blockDimX), read!(blockDimY), read!(blockDimZ)],
        shared: read!(sharedMemBytes),
        cluster: 1,
        config: std::ptr::null(),
    };
    (launch, read!(hStream) as u64)
}

/// # Safety
/// `params` is valid; its configuration is null or valid.
unsafe fn launch_ex(context: u64, params: *const LaunchExParams) -> Option<(Launch, u64)> {
    // SAFETY: the caller promises the structure.
    let config = unsafe { (*params).config };
    // SAFETY: as above.
    let function = unsafe { (*params).f } as u64;
    // SAFETY: null or valid, and made of plain numbers and pointers.
    let shape = unsafe { config.as_ref() }?;
    let launch = Launch {
        context,
        function,
        grid: [shape.gridDimX, shape.gridDimY, shape.gridDimZ],
        block: [shape.blockDimX, shape.blockDimY, shape.blockDimZ],
        shared: shape.sharedMemBytes,
        // SAFETY: the configuration is valid, hence its attributes.
        cluster: unsafe { blocks_per_cluster(shape) },
        config,
    };
    Some((launch, shape.hStream as u64))
}

/// # Safety
/// The configuration has as many attributes as it says.
unsafe fn blocks_per_cluster(config: &LaunchConfig) -> u32 {
    if config.attrs.is_null() {
        return 1;
    }
    for index in 0..config.numAttrs.min(MAX_ATTRIBUTES) as usize {
        // SAFETY: within the attributes that the caller promises.
        let attribute: *const LaunchAttribute = unsafe { config.attrs.add(index) };
        // SAFETY: within the array; the id is the first field, read as the number that it is.
        if unsafe { attribute.cast::<u32>().read() } != CLUSTER_DIMENSION {
            continue;
        }
        // SAFETY: behind this id and its padding, the union holds three numbers.
        let [_id, _padding, x, y, z] = unsafe { attribute.cast::<[u32; 5]>().read() };
        return x.saturating_mul(y).saturating_mul(z).max(1);
    }
    1
}
