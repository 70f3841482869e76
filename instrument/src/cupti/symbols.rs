//! Which libcupti to use, and its functions.
//!
//! A copy that is mapped already comes first: PyTorch and others bring their own, and two copies in
//! one process fight. Then the configured path, then the loader's search path, then the usual places
//! of the CUDA toolkit.
#![allow(unsafe_code, reason = "CUPTI is a C library")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use crate::dynamic_library::{DynamicLibrary, MissingSymbol, file_of};

/// Names by which the loader knows the library, newest first.
const NAMES: [&CStr; 2] = [c"libcupti.so.13", c"libcupti.so.12"];

/// Where the CUDA toolkit puts it when the loader was not told.
const USUAL_PLACES: [&CStr; 4] = [
    c"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
    c"/usr/local/cuda/lib64/libcupti.so.13",
    c"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12",
    c"/usr/local/cuda/lib64/libcupti.so.12",
];

/// CUDA 11.8 to 12.9 count `CUPTI_API_VERSION` from 18 to 28; 13.x writes 13xxxx. The structures
/// that we read are the same in all of them; a later major version has to be looked at first.
fn is_known_version(version: u32) -> bool {
    matches!(version, 18..=28 | 130_000..=139_999)
}

/// What the subscriber gives CUPTI to call: user data, domain, callback id, data of that callback.
pub type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

type CUptiResult = u32;

/// The functions of one libcupti. Result codes and enumerations are taken as plain numbers: a newer
/// library may know more of them than the headers.
#[derive(Debug, Clone)]
pub struct Cupti {
    /// The file that it was loaded from.
    pub file: String,
    /// Its `CUPTI_API_VERSION`.
    pub version: u32,
    pub(super) library: DynamicLibrary,
    result_string: unsafe extern "C" fn(CUptiResult, *mut *const c_char) -> CUptiResult,
    pub(super) subscribe:
        unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> CUptiResult,
    pub(super) unsubscribe: unsafe extern "C" fn(*mut c_void) -> CUptiResult,
    pub(super) enable_callback: unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> CUptiResult,
}

/// Why CUPTI cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CuptiError {
    /// There is none.
    #[error("libcupti was not found; set cupti_path to where it is ({0})")]
    NotFound(String),
    /// It lacks a function.
    #[error("{file}: {missing}")]
    MissingSymbol {
        /// The library.
        file: String,
        /// What it lacks.
        missing: MissingSymbol,
    },
    /// Its structures may be other ones.
    #[error(
        "{file} has CUPTI API version {version}; known are 18 to 28 (CUDA 11.8 to 12.9) and 13xxxx"
    )]
    UnknownVersion {
        /// The library.
        file: String,
        /// What it says.
        version: u32,
    },
    /// A call failed.
    #[error("{call} failed with {code} ({name}){hint}")]
    Call {
        /// The function.
        call: &'static str,
        /// The `CUptiResult`.
        code: u32,
        /// The library's own name for it.
        name: String,
        /// What that means for the operator, if it is one of the usual ones.
        hint: &'static str,
    },
}

impl Cupti {
    /// Finds the library, loads it if nobody has, and checks its version.
    ///
    /// # Errors
    /// Each of [`CuptiError`].
    pub fn find(configured: Option<&Path>) -> Result<Self, CuptiError> {
        let library = find_library(configured).map_err(CuptiError::NotFound)?;
        Self::resolve(library)
    }

    fn resolve(library: DynamicLibrary) -> Result<Self, CuptiError> {
        type GetVersion = unsafe extern "C" fn(*mut u32) -> CUptiResult;
        let unnamed = |missing| CuptiError::MissingSymbol { file: "libcupti".to_owned(), missing };
        // SAFETY: the type is that of cupti_version.h.
        let get_version: GetVersion =
            unsafe { library.function(c"cuptiGetVersion") }.map_err(unnamed)?;
        let file = file_of(get_version as usize).unwrap_or_else(|| "libcupti".to_owned());
        let mut version = 0;
        // SAFETY: the pointer may be written.
        let code = unsafe { get_version(&raw mut version) };
        if code != 0 || !is_known_version(version) {
            return Err(CuptiError::UnknownVersion { file, version });
        }
        let lacks = |missing| CuptiError::MissingSymbol { file: file.clone(), missing };
        Ok(Self {
            // SAFETY: the type is that of cupti_result.h.
            result_string: unsafe { library.function(c"cuptiGetResultString") }.map_err(lacks)?,
            // SAFETY: the type is that of cupti_callbacks.h.
            subscribe: unsafe { library.function(c"cuptiSubscribe") }.map_err(lacks)?,
            // SAFETY: the type is that of cupti_callbacks.h.
            unsubscribe: unsafe { library.function(c"cuptiUnsubscribe") }.map_err(lacks)?,
            // SAFETY: the type is that of cupti_callbacks.h.
            enable_callback: unsafe { library.function(c"cuptiEnableCallback") }.map_err(lacks)?,
            file: file.clone(),
            version,
            library,
        })
    }

    /// A result as an error, with the library's own name for it.
    ///
    /// # Errors
    /// [`CuptiError::Call`] unless `code` is 0.
    pub fn checked(&self, call: &'static str, code: CUptiResult) -> Result<(), CuptiError> {
        if code == 0 {
            return Ok(());
        }
        let mut text: *const c_char = ptr::null();
        // SAFETY: the pointer may be written.
        let known = unsafe { (self.result_string)(code, &raw mut text) };
        let name = if known != 0 || text.is_null() {
            "a code without a name".to_owned()
        } else {
            // SAFETY: not null, and the library gives a C string that lives as long as itself.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        Err(CuptiError::Call { call, code, name, hint: hint(code) })
    }
}

/// What the usual failures mean.
fn hint(code: CUptiResult) -> &'static str {
    match code {
        39 => ": another tool has CUPTI's only slot in this process",
        35 => ": profiling is restricted to administrators on this machine",
        _ => "",
    }
}

fn find_library(configured: Option<&Path>) -> Result<DynamicLibrary, String> {
    if let Some(library) = NAMES.iter().find_map(|name| DynamicLibrary::already_mapped(name)) {
        return Ok(library);
    }
    if let Some(path) = configured {
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        return DynamicLibrary::load(&path);
    }
    let mut first_reason = None;
    for name in NAMES.iter().chain(&USUAL_PLACES) {
        match DynamicLibrary::load(name) {
            Ok(library) => return Ok(library),
            Err(reason) => drop(first_reason.get_or_insert(reason)),
        }
    }
    Err(first_reason.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_from_cuda_11_8_to_13_are_known() {
        for version in [18, 28, 130_001, 130_401] {
            assert!(is_known_version(version), "{version}");
        }
        for version in [0, 14, 17, 29, 120_000, 140_000] {
            assert!(!is_known_version(version), "{version}");
        }
    }

    #[test]
    fn a_library_that_is_not_cupti_is_refused_by_the_first_symbol_it_lacks() {
        let libc = DynamicLibrary::already_mapped(c"libc.so.6").unwrap();
        let error = Cupti::resolve(libc).unwrap_err();
        assert_eq!(error.to_string(), "libcupti: symbol cuptiGetVersion is missing");
    }
}
