//! NVTX: the ranges and marks that programs, libraries and frameworks write for NVIDIA's tools.
//!
//! NVTX is a header. Compiled into a program it does nothing, until `NVTX_INJECTION64_PATH` names a
//! library: the program's first call loads it and calls [`InitializeInjectionNvtx2`] with a function
//! that gives out tables. We put our own functions into them ([`callbacks`]), and every call comes to
//! us. Every shared object that was compiled with NVTX has tables of its own and asks once.
//!
//! ```text
//! get_table(1) ──> ExportTableCallbacks { struct_size, get_module_table }
//! get_module_table(CORE | CORE2) ──> [null, &slot, &slot, ..., null], length without the last
//! slot <── our function; NVTX leaves out what stays as it was
//! ```
//!
//! It needs neither a GPU nor CUPTI: any program can be listened to.
#![allow(unsafe_code, reason = "NVTX hands over tables of pointers")]

pub mod callbacks;
pub mod types;

use std::ffi::c_int;

use crate::guard::{Entry, guard, silence_panics};
use crate::nvtx::callbacks::Callback;
use crate::nvtx::types::{
    ExportTableCallbacks, ExportTableVersion, Function, GetExportTable, KNOWN_VERSION, module,
    table,
};
use crate::{scopes, signals, worker};

/// Called by NVTX in a program's first call of it, once for each shared object that has it.
///
/// 1 says that our functions are in its tables; after a 0, which is the answer where the settings ask
/// for no event log, it forgets about us and goes on as without a tool.
///
/// # Safety
/// `get_table` is null or the function that NVTX documents.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(get_table: Option<GetExportTable>) -> c_int {
    guard(Entry::Nvtx, 0, || {
        silence_panics();
        let Some(get_table) = get_table else { return 0 };
        // SAFETY: passed on from the caller.
        if !unsafe { is_known(get_table) } {
            scopes::skipped::count(scopes::skipped::Reason::UnknownVersion);
            return 0;
        }
        // SAFETY: as above.
        c_int::from(signals::without(worker::start_for_scopes) && unsafe { attach(get_table) })
    })
}

/// Whether the program's NVTX is of a version whose tables and attributes are known here.
///
/// # Safety
/// `get_table` is the function that NVTX documents.
unsafe fn is_known(get_table: GetExportTable) -> bool {
    // SAFETY: any number may be asked for.
    let version = unsafe { get_table(table::VERSION) }.cast::<ExportTableVersion>();
    if version.is_null() {
        return false;
    }
    // SAFETY: not null; the size is the first field of every version.
    let size = unsafe { (*version).struct_size };
    // SAFETY: the size says that the field is there.
    size >= size_of::<ExportTableVersion>() && unsafe { (*version).version } == KNOWN_VERSION
}

/// Puts our functions into the tables; false where there are none.
///
/// # Safety
/// `get_table` is the function that NVTX documents.
pub unsafe fn attach(get_table: GetExportTable) -> bool {
    // SAFETY: any number may be asked for.
    let callbacks = unsafe { get_table(table::CALLBACKS) }.cast::<ExportTableCallbacks>();
    if callbacks.is_null() {
        return false;
    }
    // SAFETY: not null; the size is the first field of every version.
    if unsafe { (*callbacks).struct_size } < size_of::<ExportTableCallbacks>() {
        return false;
    }
    // SAFETY: the size says that the field is there.
    let Some(get_module) = (unsafe { (*callbacks).get_module_table }) else { return false };
    let mut attached = false;
    for (module, functions) in
        [(module::CORE, &callbacks::CORE[..]), (module::CORE2, &callbacks::CORE2[..])]
    {
        let mut slots: *mut *mut Function = std::ptr::null_mut();
        let mut length = 0;
        // SAFETY: both places may be written.
        let found = unsafe { get_module(module, &raw mut slots, &raw mut length) };
        if found == 0 || slots.is_null() {
            continue;
        }
        for Callback(id, function) in functions {
            if *id >= length {
                continue;
            }
            // SAFETY: the table has more than `id` entries.
            let entry = unsafe { slots.add(*id as usize) };
            // SAFETY: as just said.
            let slot = unsafe { entry.read() };
            if !slot.is_null() {
                // SAFETY: the slot is a variable for a function of this id's type, as ours is; the
                // program's threads look at it when we have returned.
                unsafe { slot.write(*function) };
                attached = true;
            }
        }
    }
    attached
}
