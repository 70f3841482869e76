//! What CUPTI hands over, in memory of its exact size: a checker of memory sees every read beyond.
//!
//! An ordinary run shows that the answers are right; `tests/memory/run.sh` runs the same under
//! sanitizers and an interpreter that stop at the first wrong access.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(unsafe_code, reason = "the callbacks take CUPTI's structures")]

use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use warpgauge_instrument::cupti::callbacks::on_callback;
use warpgauge_instrument::cupti::types::{
    API_ENTER, API_EXIT, CLUSTER_DIMENSION, capture_id, domain, graph_id, launch_id, resource_id,
};
use warpgauge_instrument::lifecycle::{LIFECYCLE, State};
use warpgauge_instrument::observer;
use warpgauge_wire::Function;

/// Bytes of `CUpti_CallbackData`, `CUpti_ResourceData`, `CUlaunchConfig` and `CUlaunchAttribute`.
const CALLBACK_DATA: usize = 72;
const RESOURCE_DATA: usize = 24;
const LAUNCH_CONFIG: usize = 56;
const LAUNCH_ATTRIBUTE: usize = 72;

/// Memory of a number of bytes, all zero, aligned as the C allocator does it for a structure.
struct Foreign(Vec<u64>);

impl Foreign {
    /// `bytes` is a multiple of 8, as every structure with a pointer in it is.
    fn new(bytes: usize) -> Self {
        assert_eq!(bytes % 8, 0);
        Self(vec![0; bytes / 8])
    }

    fn set(mut self, offset: usize, number: u64) -> Self {
        self.0[offset / 8] = number;
        self
    }

    fn point(mut self, offset: usize, to: *const c_void) -> Self {
        let word: *mut u64 = &raw mut self.0[offset / 8];
        // SAFETY: a pointer takes one word. Written as what it is, it may be followed.
        unsafe { word.cast::<*const c_void>().write(to) };
        self
    }

    fn place(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

/// One test at a time: what is measured is the process's.
fn measuring() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _armed_already = LIFECYCLE.change(State::Off, State::Armed);
    let _measuring_already = LIFECYCLE.change(State::Armed, State::Measuring);
    drain();
    alone
}

fn drain() -> u64 {
    let mut launches = 0;
    let drained = observer::drain(|_, _, count| launches += count);
    launches + drained.unfitted
}

/// Both callbacks of a driver call that gave `result`.
fn call(id: u32, params: *mut c_void, result: u32) {
    let mut result = Foreign::new(8).set(0, result.into());
    let mut mark = Foreign::new(8);
    for site in [API_ENTER, API_EXIT] {
        let data = Foreign::new(CALLBACK_DATA)
            .set(0, site.into())
            .point(16, params)
            .point(24, result.place())
            .set(40, 16)
            .point(56, mark.place());
        hand_over(domain::DRIVER_API, id, data);
    }
}

fn hand_over(domain: u32, id: u32, mut data: Foreign) {
    // SAFETY: the data have the layout that CUPTI documents for the id.
    unsafe { on_callback(ptr::null_mut(), domain, id, data.place()) };
}

/// The parameters of a launch in the plain form, cut where the form of the call ends.
fn plain_params(bytes: usize) -> Foreign {
    Foreign::new(bytes)
        .set(0, 0x1000)
        .set(8, 1 | 1 << 32)
        .set(16, 1 | 256 << 32)
        .set(24, 1 | 1 << 32)
}

/// Bytes of the parameters of each call that is listened to (generated_cuda_meta.h, CUDA 13.0).
fn sizes() -> impl Iterator<Item = (u32, usize)> {
    let all = |ids: &'static [u32], bytes| ids.iter().map(move |&id| (id, bytes));
    all(&launch_id::PLAIN, 64)
        .chain(all(&launch_id::COOPERATIVE, 56))
        .chain(all(&launch_id::EX, 32))
        .chain(all(&graph_id::LAUNCH, 16))
        .chain(graph_id::INSTANTIATE.into_iter().zip([40, 40, 24, 24, 24]))
        .chain(graph_id::UPDATE.into_iter().zip([32, 24]))
        .chain(graph_id::SET_PARAMS.into_iter().zip([24; 3]))
        .chain([(graph_id::DESTROY, 8)])
        .chain(all(&capture_id::BEGIN, 8))
        .chain(all(&capture_id::END, 16))
}

#[test]
fn nothing_is_read_beyond_the_parameters_of_any_call() {
    let _alone = measuring();
    for (id, bytes) in sizes() {
        for result in [0, 700] {
            call(id, Foreign::new(bytes).place(), result);
        }
        call(id, ptr::null_mut(), 0);
    }
    let unknown = 9999;
    call(unknown, Foreign::new(8).place(), 0);
    // Of those with their parameters, the plain and the cooperative ones launch without a
    // configuration.
    assert_eq!(drain(), 4);
}

#[test]
fn a_launch_in_each_form_counts_once_and_a_refused_one_not() {
    let _alone = measuring();
    for (ids, bytes) in [(launch_id::PLAIN, 64), (launch_id::COOPERATIVE, 56)] {
        for id in ids {
            call(id, plain_params(bytes).place(), 0);
            call(id, plain_params(bytes).place(), 1);
        }
    }
    assert_eq!(drain(), 4);
}

#[test]
fn the_attributes_of_a_launch_are_read_as_far_as_they_go() {
    let _alone = measuring();
    let unknown_attribute = 4321;
    let mut attributes = Foreign::new(2 * LAUNCH_ATTRIBUTE)
        .set(0, unknown_attribute)
        .set(LAUNCH_ATTRIBUTE, CLUSTER_DIMENSION.into())
        .set(LAUNCH_ATTRIBUTE + 8, 2 | 1 << 32)
        .set(LAUNCH_ATTRIBUTE + 16, 1);
    for (place, count) in [(attributes.place(), 2), (attributes.place(), 0), (ptr::null_mut(), 2)] {
        let mut config = Foreign::new(LAUNCH_CONFIG)
            .set(0, 4 | 1 << 32)
            .set(8, 1 | 256 << 32)
            .set(16, 1 | 1 << 32)
            .point(40, place)
            .set(48, count);
        let mut params = Foreign::new(32).point(0, config.place()).set(8, 0x2000);
        call(launch_id::EX[0], params.place(), 0);
    }
    let mut clusters = Vec::new();
    observer::drain(|shape, _, count| clusters.extend([(shape[4] >> 48, count)]));
    clusters.sort_unstable();
    assert_eq!(clusters, [(1, 2), (2, 1)]);
}

#[test]
fn what_is_absent_is_no_fault() {
    let _alone = measuring();
    for (domain, id) in [
        (domain::DRIVER_API, launch_id::PLAIN[0]),
        (domain::RESOURCE, resource_id::CONTEXT_DESTROY_STARTING),
    ] {
        // SAFETY: null is among what the function takes.
        unsafe { on_callback(ptr::null_mut(), domain, id, ptr::null()) };
    }
    let mut params = plain_params(64);
    for site in [API_ENTER, API_EXIT, 7] {
        let without_result =
            Foreign::new(CALLBACK_DATA).set(0, site.into()).point(16, params.place());
        hand_over(domain::DRIVER_API, launch_id::PLAIN[0], without_result);
    }
    for id in [
        resource_id::CONTEXT_DESTROY_STARTING,
        resource_id::MODULE_LOADED,
        resource_id::MODULE_UNLOAD_STARTING,
        4321,
    ] {
        hand_over(domain::RESOURCE, id, Foreign::new(RESOURCE_DATA));
    }
    assert_eq!(drain(), 0, "a launch without a result was not accepted");
}

/// Host threads launch and load modules while the worker drains, wishes for windows and takes the
/// wish back.
#[test]
fn callbacks_and_the_worker_lose_no_launch_between_them() {
    const THREADS: u64 = 4;
    const LAUNCHES: u64 = if cfg!(miri) { 20 } else { 2000 };
    let _alone = measuring();
    let instructions = [Function::Instructions].into_iter().collect();
    let counted: u64 = std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    for turn in 0..LAUNCHES {
                        let function = 0x1000 * (1 + thread) + turn % 8;
                        call(launch_id::PLAIN[0], plain_params(64).set(0, function).place(), 0);
                        if turn % 64 == thread {
                            let id = resource_id::MODULE_UNLOAD_STARTING;
                            hand_over(domain::RESOURCE, id, Foreign::new(RESOURCE_DATA));
                        }
                    }
                })
            })
            .collect();
        let mut counted = 0;
        while !hosts.iter().all(|host| host.is_finished()) {
            let _armed = observer::window().arm([1].into_iter(), instructions, true);
            counted += drain();
            let _outcome = observer::window().take();
            let _disarmed = observer::window().disarm();
        }
        counted
    });
    assert_eq!(counted + drain(), THREADS * LAUNCHES);
}
