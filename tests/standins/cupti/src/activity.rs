//! Activity records: of what the stand-in driver runs, in buffers of the subscriber's.
//!
//! A kernel has ended when its launch returns. A buffer is delivered when the next record does not
//! fit, on the thread that launched, and at a flush, on the thread that asks for one; what is in it
//! when the program exits is never delivered.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::time::{ClockId, clock_gettime};

use crate::driver::set_hook;
use crate::event::on_event;
use crate::fault::{fault, log};
use crate::interface::{Event, Execution, Transfer};
use crate::result::{
    CUptiResult, INVALID_KIND, INVALID_OPERATION, INVALID_PARAMETER, MAX_LIMIT_REACHED,
    NOT_INITIALIZED, SUCCESS,
};

type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

const COPY: u32 = 1;
const SET: u32 = 2;
const KERNEL: u32 = 10;

/// `CUpti_ActivityKernel10` (cupti_activity.h).
#[derive(Clone, Copy)]
#[repr(C)]
struct KernelRecord {
    kind: u32,
    cache_config: u8,
    shared_memory_config: u8,
    registers: u16,
    partitioned: [u32; 2],
    start: u64,
    end: u64,
    completed: u64,
    device: u32,
    context: u32,
    stream: u32,
    grid: [u32; 3],
    block: [u32; 3],
    static_shared: u32,
    dynamic_shared: u32,
    local_per_thread: u32,
    local_total: u32,
    correlation: u32,
    grid_id: i64,
    name: usize,
    rest: [u64; 13],
}

/// `CUpti_ActivityMemcpy6` (cupti_activity.h).
#[derive(Clone, Copy)]
#[repr(C)]
struct CopyRecord {
    kind: u32,
    copy_kind: u8,
    source: u8,
    destination: u8,
    flags: u8,
    bytes: u64,
    start: u64,
    end: u64,
    device: u32,
    context: u32,
    stream: u32,
    correlation: u32,
    rest: [u64; 6],
}

/// `CUpti_ActivityMemset4` (cupti_activity.h), of which nobody asked to hear.
#[derive(Clone, Copy)]
#[repr(C)]
struct SetRecord {
    kind: u32,
    rest: [u32; 23],
}

const _: () = {
    assert!(size_of::<KernelRecord>() == 216);
    assert!(std::mem::offset_of!(KernelRecord, name) == 104);
    assert!(size_of::<CopyRecord>() == 96);
};

#[derive(Default)]
struct State {
    callbacks: Option<(Requested, Completed)>,
    kinds: BTreeSet<u32>,
    buffer: Option<Buffer>,
    dropped: usize,
}

#[derive(Clone, Copy)]
struct Buffer {
    /// Addresses: pointers do not cross threads.
    address: usize,
    size: usize,
    used: usize,
}

static STATE: Mutex<State> =
    Mutex::new(State { callbacks: None, kinds: BTreeSet::new(), buffer: None, dropped: 0 });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether anything is traced, so that the driver's events are needed.
pub(crate) fn is_on() -> bool {
    !state().kinds.is_empty()
}

/// CUPTI's clock: another one than the program's.
fn now() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |time| (time.tv_sec() * 1_000_000_000 + time.tv_nsec()).cast_unsigned())
}

/// A kernel has run.
pub(crate) fn executed(event: &Event, execution: &Execution) {
    let start = if fault("activity-times").is_some() { 0 } else { now() };
    let name = match fault("activity-name") {
        None => execution.name as usize,
        Some(1) => 8,
        Some(2) => 0,
        Some(_) => 1 << 46,
    };
    if fault("activity-others").is_some() {
        add(SET, &SetRecord { kind: SET, rest: [0; 23] });
    }
    add(
        KERNEL,
        &KernelRecord {
            kind: KERNEL,
            cache_config: 0,
            shared_memory_config: 0,
            registers: u16::try_from(execution.registers).unwrap_or(0),
            partitioned: [0; 2],
            start,
            end: if start == 0 { 0 } else { start + execution.duration },
            completed: 0,
            device: execution.device,
            context: event.context_uid,
            stream: 7,
            grid: execution.grid,
            block: execution.block,
            static_shared: execution.static_shared,
            dynamic_shared: execution.dynamic_shared,
            local_per_thread: 0,
            local_total: 0,
            correlation: event.correlation_id,
            grid_id: 0,
            name,
            rest: [0; 13],
        },
    );
}

/// Memory was copied.
pub(crate) fn transferred(event: &Event, transfer: &Transfer) {
    let start = now();
    add(
        COPY,
        &CopyRecord {
            kind: COPY,
            copy_kind: transfer.kind,
            source: 0,
            destination: 0,
            flags: 0,
            bytes: transfer.bytes,
            start,
            end: start + transfer.bytes,
            device: transfer.device,
            context: event.context_uid,
            stream: 7,
            correlation: event.correlation_id,
            rest: [0; 6],
        },
    );
}

/// Adds a record to the buffer, if anybody wants it and there is room.
fn add<R: Copy>(kind: u32, record: &R) {
    let full = {
        let mut state = state();
        if kind != SET && !state.kinds.contains(&kind) || state.kinds.is_empty() {
            return;
        }
        let has_room = |buffer: &Buffer| buffer.used + size_of::<R>() <= buffer.size;
        if state.buffer.as_ref().is_some_and(has_room) { None } else { Some(state.buffer.take()) }
    };
    if let Some(full) = full {
        // The callbacks call back.
        full.into_iter().for_each(deliver);
        let fresh = request();
        let mut state = state();
        if state.buffer.is_none() {
            state.buffer = fresh;
        } else if let (Some(fresh), Some((_, completed))) = (fresh, state.callbacks) {
            // Another thread was faster.
            drop(state);
            let address = ptr::with_exposed_provenance_mut(fresh.address);
            // SAFETY: the subscriber gave the function for such calls.
            unsafe { completed(ptr::null_mut(), 0, address, fresh.size, 0) };
        }
    }
    let mut state = state();
    match &mut state.buffer {
        Some(buffer) if buffer.used + size_of::<R>() <= buffer.size => {
            let place: *mut u8 = ptr::with_exposed_provenance_mut(buffer.address + buffer.used);
            // SAFETY: within the buffer that the subscriber has lent, at a multiple of eight bytes.
            unsafe { place.cast::<R>().write(*record) };
            buffer.used += size_of::<R>();
        }
        _ => state.dropped += 1,
    }
}

fn request() -> Option<Buffer> {
    let (requested, _) = state().callbacks?;
    let (mut address, mut size, mut most) = (ptr::null_mut(), 0, 0);
    // SAFETY: the subscriber gave the function for such calls; the places may be written.
    unsafe { requested(&raw mut address, &raw mut size, &raw mut most) };
    (!address.is_null()).then(|| Buffer { address: address.expose_provenance(), size, used: 0 })
}

fn deliver(buffer: Buffer) {
    let Some((_, completed)) = state().callbacks else { return };
    let cut = if fault("activity-cut").is_some() { buffer.used.min(150) } else { 0 };
    let address = ptr::with_exposed_provenance_mut(buffer.address);
    // SAFETY: the subscriber gave the function for such calls, and the buffer is its own.
    unsafe { completed(ptr::null_mut(), 0, address, buffer.size, buffer.used - cut) };
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityRegisterCallbacks(
    requested: Option<Requested>,
    completed: Option<Completed>,
) -> CUptiResult {
    if let Some(error) = fault("activity-register") {
        return error;
    }
    let Some(callbacks) = requested.zip(completed) else { return INVALID_PARAMETER };
    state().callbacks = Some(callbacks);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityEnable(kind: u32) -> CUptiResult {
    if let Some(error) = fault("activity-enable") {
        log(&format!("activity refused with {error}"));
        return error;
    }
    if let Some(error) = fault("activity-copies").filter(|_| kind == COPY) {
        return error;
    }
    if !matches!(kind, COPY | KERNEL) {
        return INVALID_KIND;
    }
    if !set_hook(Some(on_event)) {
        return NOT_INITIALIZED;
    }
    state().kinds.insert(kind);
    log(&format!("activity {kind} on"));
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityDisable(kind: u32) -> CUptiResult {
    if state().kinds.remove(&kind) {
        log(&format!("activity {kind} off"));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuptiActivityFlushAll(_flag: u32) -> CUptiResult {
    if let Some(error) = fault("activity-flush") {
        return error;
    }
    let (registered, buffer) = {
        let mut state = state();
        (state.callbacks.is_some(), state.buffer.take())
    };
    buffer.into_iter().for_each(deliver);
    if registered { SUCCESS } else { INVALID_OPERATION }
}

/// # Safety
/// The buffer holds so many bytes of records, and the record is one of them or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiActivityGetNextRecord(
    buffer: *mut u8,
    valid: usize,
    record: *mut *mut u8,
) -> CUptiResult {
    if buffer.is_null() || record.is_null() {
        return INVALID_PARAMETER;
    }
    // SAFETY: not null, and the caller passes a pointer to be read and written.
    let before = unsafe { record.read() };
    let offset = if before.is_null() {
        0
    } else {
        // SAFETY: every record begins with its kind.
        let Some(bytes) = size_of_kind(unsafe { before.cast::<u32>().read() }) else {
            return INVALID_KIND;
        };
        before as usize - buffer as usize + bytes
    };
    if offset >= valid {
        return MAX_LIMIT_REACHED;
    }
    // SAFETY: within the records.
    let next = unsafe { buffer.add(offset) };
    // SAFETY: the first bytes of a record, which is not cut off that early.
    let bytes = size_of_kind(unsafe { next.cast::<u32>().read() });
    let is_whole = bytes.is_some_and(|bytes| offset + bytes <= valid);
    if !is_whole && fault("activity-cut") != Some(2) {
        return INVALID_KIND;
    }
    // SAFETY: as above.
    unsafe { record.write(next) };
    SUCCESS
}

fn size_of_kind(kind: u32) -> Option<usize> {
    match kind {
        KERNEL => Some(size_of::<KernelRecord>()),
        COPY => Some(size_of::<CopyRecord>()),
        SET => Some(size_of::<SetRecord>()),
        _ => None,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(
    _context: *mut c_void,
    _stream: u32,
    dropped: *mut usize,
) -> CUptiResult {
    if dropped.is_null() {
        return INVALID_PARAMETER;
    }
    // SAFETY: not null, and the caller passes a pointer to be written.
    unsafe { dropped.write(std::mem::take(&mut state().dropped)) };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiGetTimestamp(timestamp: *mut u64) -> CUptiResult {
    if timestamp.is_null() {
        return INVALID_PARAMETER;
    }
    // SAFETY: not null, and the caller passes a pointer to be written.
    unsafe { timestamp.write(now()) };
    SUCCESS
}

/// Whoever finalises CUPTI ends this too.
pub(crate) fn forget() {
    *state() = State::default();
}
