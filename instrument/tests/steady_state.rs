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

use warpgauge_instrument::cupti::callbacks::on_callback;
use warpgauge_instrument::cupti::types::{
    API_ENTER, API_EXIT, CallbackData, LaunchParams, domain, launch_id,
};
use warpgauge_instrument::launch::Launch;
use warpgauge_instrument::ledger::Ledger;
use warpgauge_instrument::lifecycle::{LIFECYCLE, State};
use warpgauge_instrument::names::NameId;
use warpgauge_instrument::observer;
use warpgauge_instrument::scopes::{self, Label};
use warpgauge_wire::Function;

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

/// Both callbacks of a launch, as CUPTI makes them.
struct Call {
    params: LaunchParams,
    result: u32,
    word: u64,
}

impl Call {
    fn new() -> Self {
        // SAFETY: the structure holds numbers and pointers alone, for which zero is a value.
        let mut params: LaunchParams = unsafe { std::mem::zeroed() };
        (params.gridDimX, params.gridDimY, params.gridDimZ) = (1, 1, 1);
        (params.blockDimX, params.blockDimY, params.blockDimZ) = (256, 1, 1);
        Self { params, result: 0, word: 0 }
    }

    fn make(&mut self, function: u64) {
        self.params.f = function as *mut _;
        // SAFETY: as above; the enumeration's zero is the entry.
        let mut data: CallbackData = unsafe { std::mem::zeroed() };
        data.context = 16 as *mut _;
        data.functionParams = (&raw const self.params).cast();
        data.functionReturnValue = (&raw mut self.result).cast();
        data.correlationData = &raw mut self.word;
        for site in [API_ENTER, API_EXIT] {
            // SAFETY: the site is the first field, a number.
            unsafe { (&raw mut data).cast::<u32>().write(site) };
            let data = (&raw const data).cast();
            // SAFETY: the data are those of a launch.
            unsafe {
                on_callback(std::ptr::null_mut(), domain::DRIVER_API, launch_id::PLAIN[0], data);
            };
        }
    }
}

#[test]
fn the_callbacks_of_a_launch_allocate_nothing_and_count_it() {
    assert!(LIFECYCLE.change(State::Off, State::Armed));
    assert!(LIFECYCLE.change(State::Armed, State::Measuring));
    let mut call = Call::new();
    // Something is wished for that never comes, so that every entry is looked at.
    let instructions = [Function::Instructions].into_iter().collect();
    assert!(observer::window().arm([1].into_iter(), instructions, false));
    let before = ALLOCATIONS.get();
    for round in 0..3 {
        for function in 0..1000 {
            call.make(0x1000 + function * 16 + round % 2);
        }
    }
    assert_eq!(ALLOCATIONS.get(), before);
    let mut launches = 0;
    let drained = observer::drain(|_, _, count| launches += count);
    assert_eq!(launches + drained.unfitted, 3000);
    assert!(observer::window().disarm());
    LIFECYCLE.switch_off();
}

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

#[test]
fn a_scope_allocates_nothing_with_a_new_name_or_a_known_one() {
    scopes::set_sink(|record| {
        std::hint::black_box(record);
    });
    let before = ALLOCATIONS.get();
    for round in 0..3 {
        for number in 0..1000_u32 {
            let name = scopes::intern(&number.to_le_bytes());
            let label = Label { name, category: round, ..Label::default() };
            assert_eq!(scopes::begin(label), Some(0));
            scopes::mark(label);
            scopes::end_range(scopes::begin_range(label));
            assert_eq!(scopes::end(NameId::NONE), Some(0));
        }
    }
    assert_eq!(ALLOCATIONS.get(), before);
    scopes::switch_off();
}
