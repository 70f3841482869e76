//! The functions for programs that want to say what they do: `include/warpgauge.h`, the crate
//! `warpgauge-scope` and `res/python/warpgauge.py` find them by these names.
//!
//! They never change: what a program was compiled with must go on working.
#![allow(unsafe_code, reason = "programs look the functions up by their names")]

use std::ffi::{c_char, c_int};

use crate::guard::{Entry, guard, silence_panics};
use crate::scopes::{self, Label, name_of_text};
use crate::{signals, worker};

/// The version of these functions.
const VERSION: u32 = 1;

/// Called once before the others, with the version of the functions that the caller knows. 1 where
/// they are what it expects and the settings ask for an event log; after a 0 it need not and must
/// not call them.
#[unsafe(no_mangle)]
pub extern "C" fn warpgauge_attach(version: u32) -> c_int {
    guard(Entry::Scope, 0, || {
        if version != VERSION {
            return 0;
        }
        silence_panics();
        c_int::from(signals::without(worker::start_for_scopes))
    })
}

/// Begins a scope on this thread.
///
/// # Safety
/// `name` is null or ends in a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpgauge_scope_begin(name: *const c_char) {
    if scopes::is_recording() {
        guard(Entry::Scope, (), || {
            // SAFETY: passed on from the caller.
            scopes::begin(Label { name: unsafe { name_of_text(name) }, ..label() });
        });
    }
}

/// Ends the last scope that [`warpgauge_scope_begin`] began on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn warpgauge_scope_end() {
    if scopes::is_recording() {
        guard(Entry::Scope, (), || {
            scopes::end(scopes::own_domain());
        });
    }
}

/// Marks a point in time.
///
/// # Safety
/// `name` is null or ends in a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpgauge_mark(name: *const c_char) {
    if scopes::is_recording() {
        guard(Entry::Scope, (), || {
            // SAFETY: passed on from the caller.
            scopes::mark(Label { name: unsafe { name_of_text(name) }, ..label() });
        });
    }
}

/// Begins a range that any thread may end; its number, 0 where nobody listens.
///
/// # Safety
/// `name` is null or ends in a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpgauge_range_begin(name: *const c_char) -> u64 {
    if !scopes::is_recording() {
        return 0;
    }
    guard(Entry::Scope, 0, || {
        // SAFETY: passed on from the caller.
        scopes::begin_range(Label { name: unsafe { name_of_text(name) }, ..label() })
    })
}

/// Ends a range.
#[unsafe(no_mangle)]
pub extern "C" fn warpgauge_range_end(number: u64) {
    if scopes::is_recording() {
        guard(Entry::Scope, (), || scopes::end_range(number));
    }
}

fn label() -> Label {
    Label { domain: scopes::own_domain(), ..Label::default() }
}
