//! What happens on the host's threads once a launch shape is known: nothing that allocates.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(unsafe_code, reason = "counting allocations takes an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use warpgauge_instrument::launch::Launch;
use warpgauge_instrument::ledger::Ledger;

/// The system's allocator, with a count for each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is handed on to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: passed on from the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: passed on from the caller.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static LEDGER: Ledger = Ledger::new();

#[test]
fn recording_a_launch_allocates_nothing_known_or_new_fitting_or_not() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(ALLOCATIONS.get(), before + 1, "allocations are counted");

    let before = ALLOCATIONS.get();
    for round in 0..3 {
        for function in 0..10_000_u64 {
            let launch = Launch {
                context: 1,
                function: function * 16,
                grid: [1, 1, 1],
                block: [256, 1, 1],
                shared: 0,
                cluster: 1,
                config: std::ptr::null(),
            };
            LEDGER.record(&launch, 1, |_| Some(f64::from(round)));
        }
    }
    assert_eq!(ALLOCATIONS.get(), before);
}
