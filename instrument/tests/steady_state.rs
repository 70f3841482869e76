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
use std::ffi::c_void;
use std::time::Duration;

use warpgauge_instrument::cupti::callbacks::on_callback;
use warpgauge_instrument::cupti::types::{
    API_ENTER, API_EXIT, CLUSTER_DIMENSION, CallbackData, LaunchAttribute, LaunchConfig,
    LaunchExParams, LaunchParams, domain, graph_id, launch_id,
};
use warpgauge_instrument::events::record::Record;
use warpgauge_instrument::events::ring::Ring;
use warpgauge_instrument::launch::Launch;
use warpgauge_instrument::ledger::Ledger;
use warpgauge_instrument::lifecycle::{LIFECYCLE, State};
use warpgauge_instrument::names::NameId;
use warpgauge_instrument::observer;
use warpgauge_instrument::scopes::{self, Label, Payload, Phase, ScopeRecord};
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
static RING: Ring<1024> = Ring::new();

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

    fn make(&mut self, id: u32, function: u64) {
        self.params.f = function as *mut _;
        let params = (&raw const self.params).cast();
        self.call(id, params);
    }

    /// With a configuration and its cluster, as `cuLaunchKernelEx` takes it.
    fn make_ex(&mut self, id: u32, function: u64) {
        // SAFETY: numbers, pointers and a union of them, for which zero is a value.
        let mut attribute: LaunchAttribute = unsafe { std::mem::zeroed() };
        // SAFETY: the id is the first field, a number.
        unsafe { (&raw mut attribute).cast::<u32>().write(CLUSTER_DIMENSION) };
        // SAFETY: as above.
        let mut config: LaunchConfig = unsafe { std::mem::zeroed() };
        (config.gridDimX, config.gridDimY, config.gridDimZ) = (8, 1, 1);
        (config.blockDimX, config.blockDimY, config.blockDimZ) = (128, 1, 1);
        (config.attrs, config.numAttrs) = (&raw mut attribute, 1);
        // SAFETY: as above.
        let mut params: LaunchExParams = unsafe { std::mem::zeroed() };
        params.config = &raw const config;
        params.f = function as *mut _;
        self.call(id, (&raw const params).cast());
    }

    /// A graph, which nobody knows here.
    fn make_graph(&mut self, id: u32, executable: u64) {
        let params = [executable, 0];
        self.call(id, params.as_ptr().cast());
    }

    fn call(&mut self, id: u32, params: *const c_void) {
        // SAFETY: as above; the enumeration's zero is the entry.
        let mut data: CallbackData = unsafe { std::mem::zeroed() };
        data.context = 16 as *mut _;
        data.functionParams = params;
        data.functionReturnValue = (&raw mut self.result).cast();
        data.correlationData = &raw mut self.word;
        for site in [API_ENTER, API_EXIT] {
            // SAFETY: the site is the first field, a number.
            unsafe { (&raw mut data).cast::<u32>().write(site) };
            let data = (&raw const data).cast();
            // SAFETY: the data are those of a launch.
            unsafe { on_callback(std::ptr::null_mut(), domain::DRIVER_API, id, data) };
        }
    }
}

/// Everything that is the process's, in one test: the state, the ledger, the window.
#[test]
fn the_callbacks_of_every_way_to_launch_allocate_nothing_and_lose_no_launch() {
    const THREADS: u64 = 8;
    const LAUNCHES: u64 = 1_000_000;
    assert!(LIFECYCLE.change(State::Off, State::Armed));
    assert!(LIFECYCLE.change(State::Armed, State::Measuring));
    // Something is wished for that never comes, so that every entry is looked at.
    let instructions = [Function::Instructions].into_iter().collect();
    assert!(observer::window().arm([1].into_iter(), instructions, false));

    let mut call = Call::new();
    let before = ALLOCATIONS.get();
    let mut made = 0;
    for round in 0..3 {
        for function in 0..300 {
            let function = 0x1000 + function * 16 + round % 2;
            for id in launch_id::PLAIN.into_iter().chain(launch_id::COOPERATIVE) {
                call.make(id, function);
                made += 1;
            }
            for id in launch_id::EX {
                call.make_ex(id, function);
                made += 1;
            }
            for id in graph_id::LAUNCH {
                call.make_graph(id, function);
            }
        }
    }
    assert_eq!(ALLOCATIONS.get(), before);
    assert_eq!(launches(), made);

    // Threads on the same kernels and on their own, while the worker takes out what they count.
    let mut counted = 0;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let mut call = Call::new();
                    let before = ALLOCATIONS.get();
                    for number in 0..LAUNCHES {
                        let own = number % 2 * thread;
                        call.make(launch_id::PLAIN[0], 0x10_0000 + (own * 8 + number % 5) * 16);
                    }
                    ALLOCATIONS.get() - before
                })
            })
            .collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            counted += launches();
            std::thread::sleep(Duration::from_millis(1));
        }
        let allocations: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(allocations, 0);
    });
    counted += launches();
    assert_eq!(counted, THREADS * LAUNCHES);

    // What each of many threads counted in its only moment is there when it is gone.
    for _ in 0..100 {
        std::thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| Call::new().make(launch_id::PLAIN[0], 0x1000));
            }
        });
    }
    assert_eq!(launches(), 10_000);
    assert!(observer::window().disarm());
    LIFECYCLE.switch_off();
}

/// However many threads launch, the counters are these.
#[test]
fn the_ledger_is_of_one_size() {
    assert!(size_of::<Ledger>() < 5 << 19, "{} bytes", size_of::<Ledger>());
}

/// Takes out what was counted.
fn launches() -> u64 {
    let mut launches = 0;
    let drained = observer::drain(|_, _, count| launches += count);
    launches + drained.unfitted
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

/// The event log's side of it: the ring takes what it can and counts the rest.
#[test]
fn a_scope_goes_into_the_event_log_without_an_allocation_whether_it_fits_or_not() {
    let record = ScopeRecord {
        time_ns: 1,
        begun_ns: 1,
        thread: 1,
        phase: Phase::Mark,
        instance: 1,
        name: NameId::NONE,
        domain: NameId::NONE,
        category: 0,
        depth: 0,
        spans_threads: false,
        payload: Payload::None,
        color: None,
    };
    let before = ALLOCATIONS.get();
    for _ in 0..3 {
        for _ in 0..2000 {
            RING.push(&Record::Scope(record).to_words());
        }
        while RING.pop().is_some() {}
    }
    assert_eq!(ALLOCATIONS.get(), before);
    assert_eq!(RING.dropped(), 3 * (2000 - 1024));
}
