//! Where the stand-in CUPTI listens in.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::interface::{
    DOMAIN_DRIVER_API, DOMAIN_EXECUTION, DOMAIN_RESOURCE, DOMAIN_TRANSFER, Event, Hook, Transfer,
};
use crate::registry;
use crate::result::CUresult;

static HOOK: RwLock<Option<Hook>> = RwLock::new(None);
static CALLS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The call that the thread is in; 0 for none.
    static CALL: Cell<u32> = const { Cell::new(0) };
}

/// An API function that CUPTI can trace.
#[derive(Clone, Copy)]
pub(crate) struct Api {
    pub(crate) name: &'static CStr,
    /// `CUPTI_DRIVER_TRACE_CBID_*` (cupti_driver_cbid.h).
    pub(crate) cbid: u32,
}

#[unsafe(no_mangle)]
extern "C" fn standin_set_hook(hook: Option<Hook>) {
    *HOOK.write().unwrap_or_else(PoisonError::into_inner) = hook;
}

fn emit(event: &Event) {
    let hook = *HOOK.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(hook) = hook {
        // SAFETY: the stand-in CUPTI stays loaded and takes a pointer that is valid for the call.
        unsafe { hook(event) };
    }
}

/// Makes a call between its two events.
pub(crate) fn traced(
    api: Api,
    params: *const c_void,
    symbol: Option<&CStr>,
    call: impl FnOnce() -> CUresult,
) -> CUresult {
    let mut result = 0;
    let mut correlation_data = 0;
    let mut event = Event {
        domain: DOMAIN_DRIVER_API,
        cbid: api.cbid,
        site: 0,
        function_name: api.name.as_ptr(),
        function_params: params,
        return_value: &raw mut result,
        symbol_name: symbol.map_or(ptr::null(), CStr::as_ptr),
        context: registry::current_handle() as *mut c_void,
        context_uid: registry::current().map_or(0, |context| context.uid),
        correlation_id: CALLS.fetch_add(1, Ordering::Relaxed) + 1,
        correlation_data: &raw mut correlation_data,
    };
    emit(&event);
    let before = CALL.replace(event.correlation_id);
    let outcome = call();
    CALL.set(before);
    // SAFETY: `return_value` points to `result`, which lives as long as this function.
    unsafe { event.return_value.write(outcome) };
    event.site = 1;
    emit(&event);
    outcome
}

/// `CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING` (cupti_callbacks.h).
pub(crate) const CONTEXT_DESTROY_STARTING: u32 = 2;
/// `CUPTI_CBID_RESOURCE_MODULE_LOADED` (cupti_callbacks.h).
pub(crate) const MODULE_LOADED: u32 = 6;
/// `CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING` (cupti_callbacks.h).
pub(crate) const MODULE_UNLOAD_STARTING: u32 = 7;

/// Says that something happens to a context.
pub(crate) fn resource(cbid: u32, context: usize) {
    emit(&plain(DOMAIN_RESOURCE, cbid, context, ptr::null()));
}

/// Says that a kernel has run in the current context; `execution` is an `Execution`.
pub(crate) fn executed(execution: *const c_void) {
    emit(&plain(DOMAIN_EXECUTION, 0, registry::current_handle(), execution));
}

/// Says that memory was copied in the current context.
pub(crate) fn transferred(transfer: &Transfer) {
    let transfer = (&raw const *transfer).cast();
    emit(&plain(DOMAIN_TRANSFER, 0, registry::current_handle(), transfer));
}

fn plain(domain: u32, cbid: u32, context: usize, params: *const c_void) -> Event {
    Event {
        domain,
        cbid,
        site: 0,
        function_name: ptr::null(),
        function_params: params,
        return_value: ptr::null_mut(),
        symbol_name: ptr::null(),
        context: context as *mut c_void,
        context_uid: registry::context(context).map_or(0, |context| context.uid),
        correlation_id: CALL.get(),
        correlation_data: ptr::null_mut(),
    }
}
