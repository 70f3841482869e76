//! What a launch costs on the host's thread: both callbacks, beside a function that returns at once.
//!
//! `cargo bench -p warpgauge-instrument`; the aim is under 60 ns for a launch in the steady state.
#![allow(unsafe_code, reason = "the callbacks take CUPTI's structures")]

use std::ffi::c_void;
use std::hint::black_box;

use divan::Bencher;
use warpgauge_instrument::cupti::callbacks::on_callback;
use warpgauge_instrument::cupti::symbols::Callback;
use warpgauge_instrument::cupti::types::{
    API_ENTER, API_EXIT, CallbackData, LaunchParams, domain, launch_id,
};
use warpgauge_instrument::lifecycle::{LIFECYCLE, State};

fn main() {
    LIFECYCLE.change(State::Off, State::Armed);
    LIFECYCLE.change(State::Armed, State::Measuring);
    divan::main();
}

unsafe extern "C" fn empty(_: *mut c_void, domain: u32, id: u32, data: *const c_void) {
    black_box((domain, id, data));
}

/// Makes both callbacks of a launch of one of four kernels, as a program in a loop does.
fn launch(bencher: Bencher<'_, '_>, callback: Callback) {
    bencher.with_inputs(|| ()).bench_refs(|()| {
        for function in 1..=4_u64 {
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

/// Four launches: an empty callback, for comparison.
#[divan::bench(threads = [1, 2], sample_size = 1000)]
fn four_launches_with_an_empty_callback(bencher: Bencher<'_, '_>) {
    launch(bencher, empty);
}

/// Four launches: ours.
#[divan::bench(threads = [1, 2], sample_size = 1000)]
fn four_launches_that_are_counted(bencher: Bencher<'_, '_>) {
    launch(bencher, on_callback);
}
