//! The one subscriber and what it wants to hear of.

use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::activity;
use crate::driver::set_hook;
use crate::event::on_event;
use crate::fault::{end_process, fault, log};
use crate::interface::{DOMAIN_DRIVER_API, DOMAIN_RESOURCE};
use crate::result::{
    CUptiResult, INVALID_PARAMETER, MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, NOT_INITIALIZED, SUCCESS,
};

/// `CUpti_CallbackFunc` (cupti_callbacks.h).
pub(crate) type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// More than any domain of CUPTI 13 has callback ids.
const IDS: u32 = 1024;

pub(crate) struct Subscriber {
    handle: usize,
    pub(crate) callback: Callback,
    /// An address: pointers do not cross threads.
    pub(crate) user_data: usize,
    enabled: Vec<(u32, u32)>,
}

static SUBSCRIBER: Mutex<Option<Subscriber>> = Mutex::new(None);

/// Who wants to hear of this callback.
pub(crate) fn listener(domain: u32, cbid: u32) -> Option<(Callback, usize)> {
    let subscriber = SUBSCRIBER.lock().unwrap_or_else(PoisonError::into_inner);
    let subscriber = subscriber.as_ref()?;
    let wanted = subscriber.enabled.contains(&(domain, cbid));
    wanted.then_some((subscriber.callback, subscriber.user_data))
}

/// Does something to the subscriber of a handle.
fn with(handle: *mut c_void, change: impl FnOnce(&mut Subscriber) -> CUptiResult) -> CUptiResult {
    let mut subscriber = SUBSCRIBER.lock().unwrap_or_else(PoisonError::into_inner);
    match subscriber.as_mut() {
        Some(subscriber) if subscriber.handle == handle as usize => change(subscriber),
        _ => INVALID_PARAMETER,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiSubscribe(
    handle: *mut *mut c_void,
    callback: Option<Callback>,
    user_data: *mut c_void,
) -> CUptiResult {
    static HANDLES: AtomicUsize = AtomicUsize::new(0x5000_0000);
    if let Some(milliseconds) = fault("slow") {
        std::thread::sleep(Duration::from_millis(milliseconds.into()));
    }
    if let Some(code) = fault("exit-in-subscribe") {
        log("exit inside subscribe");
        end_process(code);
    }
    if let Some(error) = fault("subscribe") {
        log(&format!("subscribe refused with {error}"));
        return error;
    }
    if std::env::var_os("STANDIN_CUPTI_OTHER_TOOL").is_some_and(|path| Path::new(&path).exists()) {
        log("subscribe refused: another tool has the slot");
        return MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    let (Some(callback), false) = (callback, handle.is_null()) else { return INVALID_PARAMETER };
    let mut subscriber = SUBSCRIBER.lock().unwrap_or_else(PoisonError::into_inner);
    if subscriber.is_some() {
        log("subscribe refused: the slot is taken");
        return MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    if !set_hook(Some(on_event)) {
        return NOT_INITIALIZED;
    }
    let own = HANDLES.fetch_add(16, Ordering::Relaxed);
    *subscriber = Some(Subscriber {
        handle: own,
        callback,
        user_data: user_data as usize,
        enabled: Vec::new(),
    });
    log("subscribe");
    // SAFETY: not null, and the caller passes a pointer to be written.
    unsafe { handle.write(own as *mut c_void) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuptiUnsubscribe(handle: *mut c_void) -> CUptiResult {
    let known = with(handle, |_| SUCCESS);
    if known == SUCCESS {
        if !activity::is_on() {
            set_hook(None);
        }
        *SUBSCRIBER.lock().unwrap_or_else(PoisonError::into_inner) = None;
        log("unsubscribe");
    }
    known
}

#[unsafe(no_mangle)]
extern "C" fn cuptiEnableCallback(
    enable: u32,
    handle: *mut c_void,
    domain: u32,
    cbid: u32,
) -> CUptiResult {
    if let Some(error) = fault("enable") {
        log(&format!("enable refused with {error}"));
        return error;
    }
    if !matches!(domain, DOMAIN_DRIVER_API | DOMAIN_RESOURCE) || cbid == 0 || cbid >= IDS {
        return INVALID_PARAMETER;
    }
    with(handle, |subscriber| {
        subscriber.enabled.retain(|id| *id != (domain, cbid));
        if enable != 0 {
            subscriber.enabled.push((domain, cbid));
        }
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuptiEnableDomain(enable: u32, handle: *mut c_void, domain: u32) -> CUptiResult {
    if !matches!(domain, DOMAIN_DRIVER_API | DOMAIN_RESOURCE) {
        return INVALID_PARAMETER;
    }
    with(handle, |subscriber| {
        subscriber.enabled.retain(|id| id.0 != domain);
        if enable != 0 {
            subscriber.enabled.extend((1..IDS).map(|cbid| (domain, cbid)));
        }
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuptiFinalize() -> CUptiResult {
    set_hook(None);
    activity::forget();
    *SUBSCRIBER.lock().unwrap_or_else(PoisonError::into_inner) = None;
    log("finalize");
    SUCCESS
}
