//! A program with a profiler of its own.
#![allow(unsafe_code, reason = "CUPTI is a C library")]

use std::ffi::c_void;
use std::fs;
use std::ptr;
use std::time::Duration;

use nix::libc;

use crate::driver::symbol;
use crate::modes::RunError;

/// CUPTI, as a profiler in the program would use it.
pub(crate) struct Profiler {
    subscribe: unsafe extern "C" fn(*mut *mut c_void, OnCallback, *mut c_void) -> u32,
    unsubscribe: unsafe extern "C" fn(*mut c_void) -> u32,
    finalize: unsafe extern "C" fn() -> u32,
}

type OnCallback = extern "C" fn(*mut c_void, u32, u32, *const c_void);

extern "C" fn on_callback(_: *mut c_void, _: u32, _: u32, _: *const c_void) {}

impl Profiler {
    /// Has the slot whenever a file `wanted` is there and CUPTI gives it; ends CUPTI for everybody
    /// first if `rude`. Says in a file beside it, `wanted` and `.has`, when it has it.
    pub(crate) fn begin(wanted: String, rude: bool) -> Result<(), RunError> {
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
        // SAFETY: a C string; loading CUPTI is what a profiler is for.
        let library = unsafe { libc::dlopen(c"libcupti.so.13".as_ptr(), flags) };
        let profiler = Self {
            // SAFETY: the type is that of cupti_callbacks.h.
            subscribe: unsafe { symbol(library, c"cuptiSubscribe") }?,
            // SAFETY: as above.
            unsubscribe: unsafe { symbol(library, c"cuptiUnsubscribe") }?,
            // SAFETY: as above.
            finalize: unsafe { symbol(library, c"cuptiFinalize") }?,
        };
        std::thread::spawn(move || profiler.work(&wanted, rude));
        Ok(())
    }

    fn work(&self, wanted: &str, rude: bool) {
        let has = format!("{wanted}.has");
        let mut handle: *mut c_void = ptr::null_mut();
        loop {
            let is_wanted = fs::exists(wanted).unwrap_or(false);
            if is_wanted && handle.is_null() {
                if rude {
                    // SAFETY: ends CUPTI in this process.
                    unsafe { (self.finalize)() };
                }
                // SAFETY: the pointer may be written; the callback is never unloaded.
                let code =
                    unsafe { (self.subscribe)(&raw mut handle, on_callback, ptr::null_mut()) };
                if code == 0 {
                    drop(fs::File::create(&has));
                }
            } else if !is_wanted && !handle.is_null() {
                // SAFETY: the handle came from CUPTI and is not used again.
                unsafe { (self.unsubscribe)(handle) };
                handle = ptr::null_mut();
                drop(fs::remove_file(&has));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
