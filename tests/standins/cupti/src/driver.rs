//! Finds the stand-in driver and listens in.

use std::ffi::c_void;

use nix::libc;

use crate::interface::Hook;

type SetHook = unsafe extern "C" fn(Option<Hook>);

/// Installs a hook in the driver that the process has loaded; `None` takes it away. False where
/// there is no stand-in driver.
pub(crate) fn set_hook(hook: Option<Hook>) -> bool {
    let flags = libc::RTLD_NOLOAD | libc::RTLD_NOW;
    // SAFETY: the name is a C string; nothing is loaded that is not there already.
    let driver = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), flags) };
    if driver.is_null() {
        return false;
    }
    // SAFETY: the handle is open and the name is a C string.
    let entry = unsafe { libc::dlsym(driver, c"standin_set_hook".as_ptr()) };
    if entry.is_null() {
        return false;
    }
    // SAFETY: the stand-in driver exports the symbol with this type.
    let set_hook = unsafe { std::mem::transmute::<*mut c_void, SetHook>(entry) };
    // SAFETY: the hook is a function of this library, which is never unloaded.
    unsafe { set_hook(hook) };
    true
}
