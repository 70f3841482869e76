//! What a launch costs on the host's thread: both callbacks, beside a function that returns at once,
//! with one thread and with two, that launch the same kernels or each its own.
//!
//! `cargo bench -p warpgauge-instrument`; the aim is under 60 ns for a launch in the steady state. A
//! line is four launches.
#![allow(unsafe_code, reason = "the callbacks take CUPTI's structures")]

use std::ffi::c_void;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use divan::Bencher;
use warpgauge_instrument::cupti::callbacks::on_callback;
use warpgauge_instrument::cupti::symbols::Callback;
use warpgauge_instrument::cupti::types::{
    API_ENTER, API_EXIT, CallbackData, LaunchParams, domain, launch_id,
};
use warpgauge_instrument::lifecycle::{LIFECYCLE, State};
use warpgauge_instrument::observer;
use warpgauge_wire::Function;

fn main() {
    LIFECYCLE.change(State::Off, State::Armed);
    LIFECYCLE.change(State::Armed, State::Measuring);
    divan::main();
}

unsafe extern "C" fn empty(_: *mut c_void, domain: u32, id: u32, data: *const c_void) {
    black_box((domain, id, data));
}

/// Makes both callbacks of a launch of one of four kernels, as a program in a loop does.
fn launch(bencher: Bencher<'_, '_>, callback: Callback, first: impl Fn() -> u64 + Sync) {
    bencher.with_inputs(&first).bench_refs(|first| {
        for function in *first..*first + 4 {
            // SAFETY: the structures hold numbers and pointers alone, for which zero is a value.
            let mut params: LaunchParams = unsafe { std::mem::zeroed() };
            params.f = (function * 16) as *mut _;
            (params.gridDimX, params.blockDimX) = (108, 256);
            (params.blockDimY, params.blockDimZ) = (1, 1);
            let (mut result, mut word) = (0_u32, 0_u64);
            // SAFETY: as above; the enumeration's zero is the entry.
            let mut data: CallbackData = unsafe { std::mem::zeroed() };
            data.context = 16 as *mut _;
            data.functionParams = (&raw const params).cast();
            data.functionReturnValue = (&raw mut result).cast();
            data.correlationData = &raw mut word;
            for site in [API_ENTER, API_EXIT] {
                // SAFETY: the site is the first field, a number.
                unsafe { (&raw mut data).cast::<u32>().write(site) };
                let data = (&raw const data).cast();
                let id = launch_id::PLAIN[0];
                // SAFETY: the data are those of a launch.
                unsafe { callback(std::ptr::null_mut(), domain::DRIVER_API, id, data) };
            }
            black_box(word);
        }
    });
}

/// A number for each thread.
fn own() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static FIRST: u64 = 4 * NEXT.fetch_add(1, Ordering::Relaxed);
    }
    FIRST.with(|first| *first)
}

/// An empty callback, for comparison.
#[divan::bench(threads = [1, 2], sample_size = 1000)]
fn empty_callback(bencher: Bencher<'_, '_>) {
    launch(bencher, empty, || 1);
}

/// Ours; all threads launch the same four kernels.
#[divan::bench(threads = [1, 2], sample_size = 1000)]
fn counted_same_kernels(bencher: Bencher<'_, '_>) {
    launch(bencher, on_callback, || 1);
}

/// Ours; each thread has four kernels of its own.
#[divan::bench(threads = [1, 2], sample_size = 1000)]
fn counted_own_kernels(bencher: Bencher<'_, '_>) {
    launch(bencher, on_callback, own);
}

/// Ours, while windows are wished for that never come.
#[divan::bench(threads = [1, 2], sample_size = 1000)]
fn counted_while_a_window_is_wished_for(bencher: Bencher<'_, '_>) {
    let instructions = [Function::Instructions].into_iter().collect();
    observer::window().arm([1].into_iter(), instructions, false);
    launch(bencher, on_callback, || 1);
    observer::window().disarm();
}
