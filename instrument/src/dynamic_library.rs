//! Shared libraries and their symbols, found at run time.
#![allow(unsafe_code, reason = "the loader is a C interface")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;

use nix::libc;

/// A library that is mapped into the process, for good: it is never closed.
#[derive(Debug, Clone, Copy)]
pub struct DynamicLibrary(NonNull<c_void>);

// SAFETY: the handle is a token for the loader, which locks for itself.
unsafe impl Send for DynamicLibrary {}
// SAFETY: as above.
unsafe impl Sync for DynamicLibrary {}

/// A library that lacks something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("symbol {} is missing", .0.to_string_lossy())]
pub struct MissingSymbol(pub &'static CStr);

impl DynamicLibrary {
    /// A library that somebody has loaded already, by its path or by its own name (SONAME).
    #[must_use]
    pub fn already_mapped(name: &CStr) -> Option<Self> {
        Self::open_with(name, libc::RTLD_NOLOAD)
    }

    /// Loads a library by its path, or by a name for the loader to search.
    ///
    /// # Errors
    /// What the loader says.
    pub fn load(name: &CStr) -> Result<Self, String> {
        Self::open_with(name, 0).ok_or_else(loader_error)
    }

    fn open_with(name: &CStr, flags: i32) -> Option<Self> {
        let flags = flags | libc::RTLD_NOW | libc::RTLD_LOCAL;
        // SAFETY: the name is a C string; a library's constructors are trusted like the library.
        NonNull::new(unsafe { libc::dlopen(name.as_ptr(), flags) }).map(Self)
    }

    /// A symbol as a function pointer.
    ///
    /// # Errors
    /// [`MissingSymbol`].
    ///
    /// # Safety
    /// `F` is a function pointer of the type that the library's header gives the symbol.
    pub unsafe fn function<F: Copy>(&self, name: &'static CStr) -> Result<F, MissingSymbol> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the handle is open and the name is a C string.
        let address = unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) };
        if address.is_null() {
            return Err(MissingSymbol(name));
        }
        // SAFETY: not null, as large as an address, and the caller promises the type.
        Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
    }
}

/// The file that the code at an address was loaded from.
#[must_use]
pub fn file_of(address: usize) -> Option<String> {
    // SAFETY: the structure holds pointers alone, for which zero is a value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `info` may be written; any address may be asked about.
    let known = unsafe { libc::dladdr(address as *const c_void, &raw mut info) } != 0;
    // SAFETY: where the loader knows the address it gives a C string, which lives with the library.
    known.then(|| unsafe { text(info.dli_fname) }).flatten()
}

/// Whether an address lies in a library or in the program itself, as code or as data.
#[must_use]
pub fn is_in_a_library(address: usize) -> bool {
    // SAFETY: the structure holds pointers alone, for which zero is a value.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `info` may be written; any address may be asked about.
    unsafe { libc::dladdr(address as *const c_void, &raw mut info) != 0 }
}

/// What the loader has to say about the last failure on this thread.
fn loader_error() -> String {
    // SAFETY: no arguments; the answer is null or a C string.
    let message = unsafe { libc::dlerror() };
    // SAFETY: the string lives until the next call of the loader on this thread.
    unsafe { text(message) }.unwrap_or_else(|| "the loader gives no reason".to_owned())
}

/// # Safety
/// `text` is null or a C string.
unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller promises a C string.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_and_a_missing_symbol_are_named() {
        assert!(DynamicLibrary::already_mapped(c"libnowhere.so.7").is_none());
        let error = DynamicLibrary::load(c"libnowhere.so.7").unwrap_err();
        assert!(error.contains("libnowhere.so.7"), "{error}");
        let libc = DynamicLibrary::already_mapped(c"libc.so.6").unwrap();
        // SAFETY: the symbol does not exist, so no call is made through the type.
        let missing = unsafe { libc.function::<extern "C" fn()>(c"no_such_function") };
        assert_eq!(missing.unwrap_err().to_string(), "symbol no_such_function is missing");
        // SAFETY: `getpid` takes nothing and gives an int.
        let getpid = unsafe { libc.function::<extern "C" fn() -> i32>(c"getpid") }.unwrap();
        assert_eq!(getpid(), std::process::id() as i32);
        assert!(file_of(getpid as usize).unwrap().contains("libc"));
    }
}
