//! Turns the driver's events into callbacks with CUPTI's structures.

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::activity;
use crate::fault::fault;
use crate::interface::{DOMAIN_EXECUTION, DOMAIN_RESOURCE, DOMAIN_TRANSFER, Event};
use crate::sass;
use crate::subscriber::listener;

/// `CUpti_CallbackData` (cupti_callbacks.h).
#[repr(C)]
struct CallbackData {
    callback_site: u32,
    function_name: *const c_char,
    function_params: *const c_void,
    function_return_value: *mut c_void,
    symbol_name: *const c_char,
    context: *mut c_void,
    context_uid: u32,
    correlation_data: *mut u64,
    correlation_id: u32,
}

/// `CUpti_ResourceData` (cupti_callbacks.h).
#[repr(C)]
struct ResourceData {
    context: *mut c_void,
    stream: *mut c_void,
    descriptor: *mut c_void,
}

const _: () = {
    assert!(size_of::<CallbackData>() == 72);
    assert!(size_of::<ResourceData>() == 24);
};

/// An address that nobody may read.
const UNREADABLE: *const c_char = ptr::without_provenance(8);

pub(crate) unsafe extern "C" fn on_event(event: *const Event) {
    // SAFETY: the stand-in driver passes an event that lives until this function returns.
    let event = unsafe { &*event };
    if event.domain == DOMAIN_EXECUTION {
        // SAFETY: events of this domain carry an execution, which lives as long as the event.
        let execution = unsafe { &*event.function_params.cast() };
        sass::executed(event.context as usize, execution);
        activity::executed(event, execution);
        return;
    }
    if event.domain == DOMAIN_TRANSFER {
        // SAFETY: events of this domain carry a transfer, which lives as long as the event.
        activity::transferred(event, unsafe { &*event.function_params.cast() });
        return;
    }
    if (event.domain, event.cbid) == (DOMAIN_RESOURCE, CONTEXT_DESTROY_STARTING) {
        // Whoever subscribed hears of it first, as the name says.
        deliver(event);
        sass::context_destroyed(event.context as usize);
        return;
    }
    deliver(event);
}

/// `CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING` (cupti_callbacks.h).
const CONTEXT_DESTROY_STARTING: u32 = 2;

/// Says that a context is about to be destroyed.
pub(crate) fn announce_end_of_context(context: usize) {
    deliver(&Event {
        domain: DOMAIN_RESOURCE,
        cbid: CONTEXT_DESTROY_STARTING,
        site: 0,
        function_name: ptr::null(),
        function_params: ptr::null(),
        return_value: ptr::null_mut(),
        symbol_name: ptr::null(),
        context: context as *mut c_void,
        context_uid: 0,
        correlation_id: 0,
        correlation_data: ptr::null_mut(),
    });
}

fn deliver(event: &Event) {
    let Some((callback, user_data)) = listener(event.domain, event.cbid) else { return };
    let user_data = user_data as *mut c_void;
    let is_resource = event.domain == DOMAIN_RESOURCE;
    let resource = ResourceData {
        context: event.context,
        stream: ptr::null_mut(),
        descriptor: ptr::null_mut(),
    };
    let call = CallbackData {
        callback_site: event.site,
        function_name: event.function_name,
        function_params: event.function_params,
        function_return_value: event.return_value.cast(),
        symbol_name: fault("symbol-name").map_or(event.symbol_name, |_| UNREADABLE),
        context: event.context,
        context_uid: event.context_uid,
        correlation_data: event.correlation_data,
        correlation_id: event.correlation_id,
    };
    let data: *const c_void =
        if is_resource { (&raw const resource).cast() } else { (&raw const call).cast() };
    // SAFETY: the subscriber gave the function for such calls, and `data` outlives the call.
    unsafe { callback(user_data, event.domain, event.cbid, data) };
}
