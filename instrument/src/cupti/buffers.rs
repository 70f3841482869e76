//! The buffers that CUPTI fills with records: a fixed number, made once, lent again and again.
//!
//! ```text
//! absent ──> free ──lend──> lent ──complete──> done ──take──> free
//! ```
//!
//! Lending and completing happen on threads of the program's or of CUPTI's, and neither wait nor
//! allocate. A buffer that is completed holds rows ([`Row`]) from its beginning on, in the place of
//! the records that they were made of.
#![allow(unsafe_code, reason = "CUPTI writes into memory by its address")]

use std::alloc::{Layout, alloc_zeroed};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::events::row::Row;

/// Bytes of a buffer: about 5,000 kernels.
pub const BUFFER_BYTES: usize = 1 << 20;

/// Buffers at most. What CUPTI asks for beyond is refused, and the records are dropped.
pub const BUFFERS: usize = 8;

/// With fewer free ones, those that are done are emptied before their time.
pub const FEW_BUFFERS: usize = BUFFERS / 2;

/// A page, so that untouched parts of a buffer cost nothing.
const ALIGNMENT: usize = 4096;

const ABSENT: u8 = 0;
const FREE: u8 = 1;
const LENT: u8 = 2;
const DONE: u8 = 3;

#[derive(Debug)]
struct Buffer {
    address: AtomicPtr<u8>,
    state: AtomicU8,
    rows: AtomicU32,
    /// When it was completed, by counting.
    order: AtomicU64,
}

/// The buffers of a process. There is one pool in use ([`POOL`]); tests make their own.
#[derive(Debug)]
pub struct Pool {
    buffers: [Buffer; BUFFERS],
    completed: AtomicU64,
}

/// The buffers of this process.
pub static POOL: Pool = Pool::new();

impl Pool {
    /// A pool without memory: it lends nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            buffers: [const {
                Buffer {
                    address: AtomicPtr::new(ptr::null_mut()),
                    state: AtomicU8::new(ABSENT),
                    rows: AtomicU32::new(0),
                    order: AtomicU64::new(0),
                }
            }; BUFFERS],
            completed: AtomicU64::new(0),
        }
    }

    /// Makes the memory, where it is not there yet; for one thread at a time. It stays for the life
    /// of the process, because CUPTI may write into it at any time.
    pub fn provide(&self) {
        let Ok(layout) = Layout::from_size_align(BUFFER_BYTES, ALIGNMENT) else { return };
        for buffer in &self.buffers {
            if buffer.state.load(Ordering::Acquire) != ABSENT {
                continue;
            }
            // SAFETY: the layout has a size.
            let address = unsafe { alloc_zeroed(layout) };
            if address.is_null() {
                // The program's memory is its own: there are fewer buffers then.
                return;
            }
            buffer.address.store(address, Ordering::Relaxed);
            buffer.state.store(FREE, Ordering::Release);
        }
    }

    /// The address of a free buffer of [`BUFFER_BYTES`], which is lent from now on.
    pub fn lend(&self) -> Option<*mut u8> {
        let lent = self.buffers.iter().find(|buffer| {
            let (acquire, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
            buffer.state.compare_exchange(FREE, LENT, acquire, relaxed).is_ok()
        })?;
        Some(lent.address.load(Ordering::Relaxed))
    }

    /// Takes a buffer back, in which so many rows stand. One that was not lent is left alone.
    pub fn complete(&self, address: *mut u8, rows: u32) {
        let Some(buffer) = self.lent(address) else { return };
        buffer.rows.store(rows, Ordering::Relaxed);
        buffer.order.store(self.completed.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        buffer.state.store(if rows == 0 { FREE } else { DONE }, Ordering::Release);
    }

    /// Whether this is the address of a buffer that is lent.
    #[must_use]
    pub fn is_lent(&self, address: *mut u8) -> bool {
        self.lent(address).is_some()
    }

    fn lent(&self, address: *mut u8) -> Option<&Buffer> {
        self.buffers.iter().find(|buffer| {
            buffer.state.load(Ordering::Acquire) == LENT
                && buffer.address.load(Ordering::Relaxed) == address
        })
    }

    /// Buffers that are neither lent nor full.
    #[must_use]
    pub fn free(&self) -> usize {
        let is_free = |buffer: &&Buffer| buffer.state.load(Ordering::Relaxed) == FREE;
        self.buffers.iter().filter(is_free).count()
    }

    /// Hands every row of the completed buffers to `each`, oldest buffer first; for one thread at a
    /// time. Calls nobody else.
    pub fn take(&self, mut each: impl FnMut(&Row)) {
        while let Some(buffer) = self.oldest_done() {
            let address = buffer.address.load(Ordering::Relaxed).cast::<Row>();
            let rows =
                (buffer.rows.load(Ordering::Relaxed) as usize).min(BUFFER_BYTES / size_of::<Row>());
            for index in 0..rows {
                // SAFETY: within the buffer, as there are no more rows than fit.
                let place = unsafe { address.add(index) };
                // SAFETY: whoever completed the buffer wrote a row there; the buffer is aligned
                // for it, and nobody writes into it until it is free.
                each(unsafe { &*place });
            }
            buffer.state.store(FREE, Ordering::Release);
        }
    }

    fn oldest_done(&self) -> Option<&Buffer> {
        let done = |buffer: &&Buffer| buffer.state.load(Ordering::Acquire) == DONE;
        let order = |buffer: &&Buffer| buffer.order.load(Ordering::Relaxed);
        self.buffers.iter().filter(done).min_by_key(order)
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::NameId;

    fn row(correlation: u32) -> Row {
        Row {
            start: 1,
            end: 2,
            bytes: 0,
            name: NameId::NONE,
            device: 0,
            stream: 0,
            correlation,
            grid: [1; 3],
            dynamic_shared: 0,
            static_shared: 0,
            local_per_thread: 0,
            block: [1; 3],
            registers: 1,
            copy_kind: 0,
            is_copy: false,
        }
    }

    #[test]
    fn buffers_go_round_in_the_order_in_which_they_were_completed() {
        static POOL: Pool = Pool::new();
        assert!(POOL.lend().is_none(), "there is no memory yet");
        POOL.provide();
        POOL.provide();
        let lent: Vec<_> = (0..BUFFERS).filter_map(|_| POOL.lend()).collect();
        assert_eq!((lent.len(), POOL.free(), POOL.lend()), (BUFFERS, 0, None));
        for (number, address) in lent.iter().rev().enumerate() {
            // SAFETY: the buffer is lent to this test and holds more than one row.
            unsafe { address.cast::<Row>().write(row(number as u32)) };
            POOL.complete(*address, u32::from(number != 3));
        }
        POOL.complete(lent[0], 1);
        POOL.complete(ptr::without_provenance_mut(4096), 1);
        let mut correlations = vec![];
        POOL.take(|row| correlations.push(row.correlation));
        assert_eq!(correlations, [0, 1, 2, 4, 5, 6, 7]);
        assert_eq!(POOL.free(), BUFFERS);
        POOL.take(|_| panic!("all of them were taken"));
    }
}
