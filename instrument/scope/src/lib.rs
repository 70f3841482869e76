//! Scopes for warpgauge: a program says what it is doing.
//!
//! ```
//! fn train() {
//!     warpgauge_scope::scope!("epoch"); // until the block ends
//!     warpgauge_scope::mark(c"checkpoint written");
//! }
//! # train();
//! ```
//!
//! Nothing is linked: in a process that has `libwarpgauge_instrument.so`, by
//! `CUDA_INJECTION64_PATH`, by `NVTX_INJECTION64_PATH` or loaded otherwise, the first call finds it.
//! Everywhere else each call is one look at a variable. Names are kept once for the life of the
//! process, so put numbers elsewhere. This crate has no dependencies.
#![cfg_attr(not(test), deny(missing_docs))]

mod library;

use std::ffi::CStr;
use std::marker::PhantomData;

use crate::library::functions;

/// A scope from here to the end of the block. Takes a literal.
#[macro_export]
macro_rules! scope {
    ($name:literal) => {
        let _scope = $crate::Scope::begin($crate::name!($name));
    };
}

/// A literal as the name that the functions take; one with a zero in it does not compile.
#[macro_export]
macro_rules! name {
    ($name:literal) => {
        const {
            match ::std::ffi::CStr::from_bytes_with_nul(::std::concat!($name, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => ::std::panic!("a name with a zero in it"),
            }
        }
    };
}

/// A scope on this thread, as long as it lives. Scopes of a thread lie within each other.
#[derive(Debug)]
#[must_use = "the scope ends when this is dropped"]
pub struct Scope {
    /// It ends on the thread on which it began.
    _on_this_thread: PhantomData<*const ()>,
}

impl Scope {
    /// Begins a scope.
    pub fn begin(name: &CStr) -> Self {
        if let Some(functions) = functions() {
            functions.scope_begin(name);
        }
        Self { _on_this_thread: PhantomData }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some(functions) = functions() {
            functions.scope_end();
        }
    }
}

/// A range that may end on another thread, when it is dropped.
#[derive(Debug)]
#[must_use = "the range ends when this is dropped"]
pub struct Range {
    /// 0 where nobody listens.
    number: u64,
}

impl Range {
    /// Begins a range.
    pub fn begin(name: &CStr) -> Self {
        Self { number: functions().map_or(0, |functions| functions.range_begin(name)) }
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        if self.number == 0 {
            return;
        }
        if let Some(functions) = functions() {
            functions.range_end(self.number);
        }
    }
}

/// Marks a point in time.
pub fn mark(name: &CStr) {
    if let Some(functions) = functions() {
        functions.mark(name);
    }
}

/// Whether the process has the library. Whether it writes a log is the settings' matter.
#[must_use]
pub fn is_there() -> bool {
    functions().is_some()
}
