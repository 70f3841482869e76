//! Scopes that the program tells the injected library of, through its own functions.
#![allow(unsafe_code, reason = "the library is a C library")]

use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;

use nix::libc;

use crate::driver::{DriverError, symbol};

/// The functions of the injected library.
pub(crate) struct Scopes {
    begin: unsafe extern "C" fn(*const c_char),
    end: extern "C" fn(),
}

impl Scopes {
    /// Those of the library that was injected; `None` where none was.
    pub(crate) fn of_this_process() -> Result<Option<Self>, DriverError> {
        let Some(path) = std::env::var_os("CUDA_INJECTION64_PATH") else { return Ok(None) };
        let Ok(path) = CString::new(path.as_bytes()) else { return Ok(None) };
        // SAFETY: the path is a C string; nothing is loaded that is not there already.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_NOW) };
        if library.is_null() {
            return Ok(None);
        }
        Ok(Some(Self {
            // SAFETY: the type is that of warpgauge.h.
            begin: unsafe { symbol(library, c"warpgauge_scope_begin") }?,
            // SAFETY: the type is that of warpgauge.h.
            end: unsafe { symbol(library, c"warpgauge_scope_end") }?,
        }))
    }

    /// Opens a scope.
    pub(crate) fn begin(&self, name: &str) {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: a C string.
        unsafe { (self.begin)(name.as_ptr()) };
    }

    /// Closes the innermost one.
    pub(crate) fn end(&self) {
        (self.end)();
    }
}
