//! The library's functions, found in the process at the first call.
#![allow(unsafe_code, reason = "functions that are found by name")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

const VERSION: u32 = 1;

/// Of dlfcn.h, on Linux.
const RTLD_LAZY: c_int = 1;
const RTLD_NOLOAD: c_int = 4;

unsafe extern "C" {
    /// dlopen(3).
    fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void;
    /// dlsym(3).
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `instrument/src/api.rs` says what each does.
pub(crate) struct Functions {
    scope_begin: unsafe extern "C" fn(*const c_char),
    scope_end: unsafe extern "C" fn(),
    mark: unsafe extern "C" fn(*const c_char),
    range_begin: unsafe extern "C" fn(*const c_char) -> u64,
    range_end: unsafe extern "C" fn(u64),
}

impl Functions {
    pub(crate) fn scope_begin(&self, name: &CStr) {
        // SAFETY: the name ends in a zero.
        unsafe { (self.scope_begin)(name.as_ptr()) };
    }

    pub(crate) fn scope_end(&self) {
        // SAFETY: may be called at any time.
        unsafe { (self.scope_end)() };
    }

    pub(crate) fn mark(&self, name: &CStr) {
        // SAFETY: the name ends in a zero.
        unsafe { (self.mark)(name.as_ptr()) };
    }

    pub(crate) fn range_begin(&self, name: &CStr) -> u64 {
        // SAFETY: the name ends in a zero.
        unsafe { (self.range_begin)(name.as_ptr()) }
    }

    pub(crate) fn range_end(&self, number: u64) {
        // SAFETY: any number may be given.
        unsafe { (self.range_end)(number) };
    }
}

/// The functions; none where the process has no such library.
pub(crate) fn functions() -> Option<&'static Functions> {
    static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
    FUNCTIONS.get_or_init(find).as_ref()
}

fn find() -> Option<Functions> {
    let library = library()?;
    let attach = symbol(library, c"warpgauge_attach")?;
    // SAFETY: the function has this type in every version.
    let attach: unsafe extern "C" fn(u32) -> c_int = unsafe { std::mem::transmute(attach) };
    // SAFETY: any version may be asked for.
    if unsafe { attach(VERSION) } == 0 {
        return None;
    }
    let scope_begin = symbol(library, c"warpgauge_scope_begin")?;
    let scope_end = symbol(library, c"warpgauge_scope_end")?;
    let mark = symbol(library, c"warpgauge_mark")?;
    let range_begin = symbol(library, c"warpgauge_range_begin")?;
    let range_end = symbol(library, c"warpgauge_range_end")?;
    Some(Functions {
        // SAFETY: the types of this version, which the library has said that it is.
        scope_begin: unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char)>(scope_begin)
        },
        // SAFETY: as above.
        scope_end: unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(scope_end) },
        // SAFETY: as above.
        mark: unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char)>(mark)
        },
        // SAFETY: as above.
        range_begin: unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char) -> u64>(
                range_begin,
            )
        },
        // SAFETY: as above.
        range_end: unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u64)>(range_end)
        },
    })
}

/// The library, in the process already or named by the environment.
fn library() -> Option<*mut c_void> {
    let here = open(c"libwarpgauge_instrument.so", RTLD_LAZY | RTLD_NOLOAD);
    let named = |variable| {
        let path = std::env::var_os(variable)?;
        // Another tool's library is not to be loaded before its time.
        let ours = path.as_bytes().windows(OURS.len()).any(|part| part == OURS);
        let path = CString::new(path.as_bytes()).ok().filter(|_| ours)?;
        open(&path, RTLD_LAZY)
    };
    here.or_else(|| named("CUDA_INJECTION64_PATH")).or_else(|| named("NVTX_INJECTION64_PATH"))
}

const OURS: &[u8] = b"libwarpgauge_instrument";

fn open(path: &CStr, mode: c_int) -> Option<*mut c_void> {
    // SAFETY: the path ends in a zero; what runs when a library is loaded is the user's choice.
    let library = unsafe { dlopen(path.as_ptr(), mode) };
    (!library.is_null()).then_some(library)
}

fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the library is open, and never closed.
    let symbol = unsafe { dlsym(library, name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol)
}
