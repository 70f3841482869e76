//! CUPTI's activity records: which kernels and copies ran, and when.
//!
//! ```text
//! to begin   cuptiActivityRegisterCallbacks, cuptiActivityEnable for each kind
//! often      cuptiActivityFlushAll, on our own thread
//! to end     cuptiActivityDisable for each kind, cuptiActivityFlushAll(forced)
//! ```
//!
//! CUPTI asks for a buffer on a thread of the program's or of its own, fills it, and gives it back
//! ([`crate::cupti::buffers`]). Nothing here is called when the process exits: what CUPTI has not
//! given back by then stays there.
#![allow(unsafe_code, reason = "CUPTI is a C library")]

use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cupti::activity_rows::make_rows;
use crate::cupti::activity_types::{FLUSH_FORCED, KINDS};
use crate::cupti::buffers::{BUFFER_BYTES, FEW_BUFFERS, POOL};
use crate::cupti::symbols::{Cupti, CuptiError};
use crate::guard::{Entry, guard};
use crate::lifecycle::{LIFECYCLE, State};
use crate::names::NAMES;
use crate::worker;

type CUptiResult = u32;
type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// `cuptiActivityGetNextRecord`.
pub(super) type NextRecord = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> CUptiResult;

/// The functions of activity records.
#[derive(Debug, Clone, Copy)]
struct Calls {
    register: unsafe extern "C" fn(Requested, Completed) -> CUptiResult,
    enable: unsafe extern "C" fn(u32) -> CUptiResult,
    disable: unsafe extern "C" fn(u32) -> CUptiResult,
    flush_all: unsafe extern "C" fn(u32) -> CUptiResult,
    next_record: NextRecord,
    dropped: unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> CUptiResult,
    timestamp: unsafe extern "C" fn(*mut u64) -> CUptiResult,
}

/// Those that the callbacks use.
static CALLS: OnceLock<Calls> = OnceLock::new();

/// Records that CUPTI had no room for.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Buffers that could not be read to their end.
static MALFORMED: AtomicU64 = AtomicU64::new(0);

/// Records for which CUPTI had no room, so far.
#[must_use]
pub fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Buffers that could not be read to their end, so far.
#[must_use]
pub fn malformed() -> u64 {
    MALFORMED.load(Ordering::Relaxed)
}

/// Tracing while it is on.
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    calls: Calls,
}

impl Activity {
    /// Switches tracing on. On an error it is off.
    ///
    /// # Errors
    /// A function that the library lacks, or the call that failed: 14
    /// (`CUPTI_ERROR_NOT_COMPATIBLE`) where the device or another tool does not allow it.
    pub fn start(cupti: &Cupti) -> Result<Self, CuptiError> {
        let calls = match CALLS.get() {
            Some(calls) => *calls,
            None => resolve(cupti)?,
        };
        let calls = *CALLS.get_or_init(|| calls);
        POOL.provide();
        // SAFETY: the functions have CUPTI's types and the library that holds them is never
        // unmapped.
        let code = unsafe { (calls.register)(on_requested, on_completed) };
        cupti.checked("cuptiActivityRegisterCallbacks", code)?;
        let activity = Self { calls };
        for kind in KINDS {
            // SAFETY: the kind is one of CUPTI's.
            let code = unsafe { (calls.enable)(kind) };
            if let Err(error) = cupti.checked("cuptiActivityEnable", code) {
                activity.stop();
                return Err(error);
            }
        }
        Ok(activity)
    }

    /// Has CUPTI give back what is complete. Only our own thread may wait for that.
    ///
    /// # Errors
    /// The call that failed.
    pub fn flush(&self, cupti: &Cupti) -> Result<(), CuptiError> {
        // SAFETY: any flag may be given.
        let code = unsafe { (self.calls.flush_all)(0) };
        cupti.checked("cuptiActivityFlushAll", code)
    }

    /// Switches tracing off, and has CUPTI give everything back. There is nothing to do about a
    /// failure.
    pub fn stop(self) {
        for kind in KINDS {
            // SAFETY: the kind is one of CUPTI's.
            unsafe { (self.calls.disable)(kind) };
        }
        // SAFETY: any flag may be given.
        unsafe { (self.calls.flush_all)(FLUSH_FORCED) };
    }

    /// CUPTI's clock now, in nanoseconds; `None` where it does not tell.
    #[must_use]
    pub fn timestamp(&self) -> Option<u64> {
        let mut now = 0;
        // SAFETY: the pointer may be written.
        let code = unsafe { (self.calls.timestamp)(&raw mut now) };
        (code == 0).then_some(now)
    }
}

fn resolve(cupti: &Cupti) -> Result<Calls, CuptiError> {
    macro_rules! symbols {
        ($($field:ident: $name:literal,)*) => {
            Calls {$(
                // SAFETY: the field's type is that of cupti_activity.h.
                $field: unsafe { cupti.library.function($name) }.map_err(|missing| {
                    CuptiError::MissingSymbol { file: cupti.file.clone(), missing }
                })?,
            )*}
        };
    }
    Ok(symbols! {
        register: c"cuptiActivityRegisterCallbacks",
        enable: c"cuptiActivityEnable",
        disable: c"cuptiActivityDisable",
        flush_all: c"cuptiActivityFlushAll",
        next_record: c"cuptiActivityGetNextRecord",
        dropped: c"cuptiActivityGetNumDroppedRecords",
        timestamp: c"cuptiGetTimestamp",
    })
}

/// CUPTI wants a buffer.
unsafe extern "C" fn on_requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    let lent = guard(Entry::Callback, None, || {
        // A process that exits or forked has nobody to empty it.
        if LIFECYCLE.state() == State::Off { None } else { POOL.lend() }
    });
    // SAFETY: CUPTI passes three places to be written.
    unsafe { most.write(0) };
    // SAFETY: as above.
    unsafe { size.write(if lent.is_some() { BUFFER_BYTES } else { 0 }) };
    // SAFETY: as above.
    unsafe { buffer.write(lent.unwrap_or(ptr::null_mut())) };
}

/// CUPTI gives a buffer back, with records in its first `valid` bytes.
unsafe extern "C" fn on_completed(
    _context: *mut c_void,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    guard(Entry::Callback, (), || {
        if LIFECYCLE.state() == State::Off || !POOL.is_lent(buffer) {
            return;
        }
        let Some(calls) = CALLS.get() else { return };
        let valid = valid.min(BUFFER_BYTES);
        // SAFETY: the buffer is ours again, and CUPTI has written as many bytes of records.
        let (rows, is_whole) = unsafe { make_rows(buffer, valid, calls.next_record, &NAMES) };
        if !is_whole {
            MALFORMED.fetch_add(1, Ordering::Relaxed);
        }
        let mut dropped = 0;
        // SAFETY: the pointer may be written; no context means all of them.
        if unsafe { (calls.dropped)(ptr::null_mut(), 0, &raw mut dropped) } == 0 {
            DROPPED.fetch_add(dropped as u64, Ordering::Relaxed);
        }
        POOL.complete(buffer, rows);
        if POOL.free() < FEW_BUFFERS {
            worker::wake();
        }
    });
}
