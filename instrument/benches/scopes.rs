//! What a scope costs on the program's thread: push and pop through NVTX's tables, beside functions
//! that return at once.
//!
//! `cargo bench -p warpgauge-instrument --bench scopes`; the aim is under 150 ns for an event, which
//! is half of what is shown.
#![allow(unsafe_code, reason = "NVTX's functions take pointers")]

use std::ffi::{c_char, c_int, c_void};
use std::hint::black_box;
use std::ptr;

use divan::Bencher;
use warpgauge_instrument::events::record::Record;
use warpgauge_instrument::events::ring::Ring;
use warpgauge_instrument::nvtx::callbacks::{CORE, CORE2, Callback};
use warpgauge_instrument::nvtx::types::{EventAttributes, Function, core, core2, message_type};
use warpgauge_instrument::scopes::{self, ScopeRecord};

fn main() {
    divan::main();
}

type Push = unsafe extern "C" fn(*const c_char) -> c_int;
type Pop = unsafe extern "C" fn() -> c_int;
type PushIn = unsafe extern "C" fn(*const c_void, *const EventAttributes) -> c_int;
type PopIn = unsafe extern "C" fn(*const c_void) -> c_int;
type Create = unsafe extern "C" fn(*const c_char) -> *const c_void;
type Register = unsafe extern "C" fn(*const c_void, *const c_char) -> *const c_void;

fn function(table: &[Callback], id: u32) -> Function {
    table.iter().find(|Callback(known, _)| *known == id).map_or(ptr::null(), |entry| entry.1)
}

/// A function of NVTX's tables, as its type.
macro_rules! function {
    ($table:ident, $id:expr, $type:ty) => {
        // SAFETY: the function with this number has this type.
        unsafe { std::mem::transmute::<Function, $type>(function(&$table, $id)) }
    };
}

unsafe extern "C" fn empty_push(name: *const c_char) -> c_int {
    black_box(name);
    0
}

extern "C" fn empty_pop() -> c_int {
    black_box(0)
}

fn nowhere(record: &ScopeRecord) {
    black_box(record);
}

static RING: Ring<1024> = Ring::new();

fn into_a_ring(record: &ScopeRecord) {
    RING.push(&Record::Scope(*record).to_words());
    // What the writer does, so that there is always room.
    black_box(RING.pop());
}

const NAMES: [&std::ffi::CStr; 4] =
    [c"forward", c"backward", c"optimizer.step", c"DataLoader: wait for the next batch of images"];

/// Four scopes, of names as programs have them.
fn scopes(bencher: Bencher<'_, '_>, push: Push, pop: Pop) {
    bencher.bench(|| {
        for name in NAMES {
            // SAFETY: the name ends in a zero.
            black_box(unsafe { push(name.as_ptr()) });
            // SAFETY: may be called at any time.
            black_box(unsafe { pop() });
        }
    });
}

#[divan::bench(threads = [1, 2], sample_size = 1000)]
fn a_four_scopes_with_empty_functions(bencher: Bencher<'_, '_>) {
    scopes(bencher, empty_push, empty_pop);
}

#[divan::bench(threads = [1, 2], sample_size = 1000)]
fn b_four_scopes_that_nobody_listens_to(bencher: Bencher<'_, '_>) {
    scopes::switch_off();
    let (push, pop) =
        (function!(CORE, core::RANGE_PUSH_A, Push), function!(CORE, core::RANGE_POP, Pop));
    scopes(bencher, push, pop);
}

#[divan::bench(threads = [1, 2], sample_size = 1000)]
fn c_four_scopes_that_are_recorded(bencher: Bencher<'_, '_>) {
    scopes::set_sink(nowhere);
    let (push, pop) =
        (function!(CORE, core::RANGE_PUSH_A, Push), function!(CORE, core::RANGE_POP, Pop));
    scopes(bencher, push, pop);
}

#[divan::bench(threads = [1], sample_size = 1000)]
fn d_four_scopes_through_a_ring(bencher: Bencher<'_, '_>) {
    scopes::set_sink(into_a_ring);
    let (push, pop) =
        (function!(CORE, core::RANGE_PUSH_A, Push), function!(CORE, core::RANGE_POP, Pop));
    scopes(bencher, push, pop);
}

#[divan::bench(threads = [1, 2], sample_size = 1000)]
fn e_four_scopes_with_domain_and_registered_name(bencher: Bencher<'_, '_>) {
    scopes::set_sink(nowhere);
    let create = function!(CORE2, core2::DOMAIN_CREATE_A, Create);
    let register = function!(CORE2, core2::DOMAIN_REGISTER_STRING_A, Register);
    let push = function!(CORE2, core2::DOMAIN_RANGE_PUSH_EX, PushIn);
    let pop = function!(CORE2, core2::DOMAIN_RANGE_POP, PopIn);
    // SAFETY: the name ends in a zero.
    let domain = unsafe { create(c"training".as_ptr()) }.addr();
    let names = NAMES.map(|name| {
        // SAFETY: as above.
        unsafe { register(ptr::null(), name.as_ptr()) }.addr()
    });
    bencher.bench(|| {
        for name in names {
            let attributes = EventAttributes {
                version: 3,
                size: 48,
                category: 0,
                color_type: 0,
                color: 0,
                payload_type: 0,
                reserved: 0,
                payload: 0,
                message_type: message_type::REGISTERED,
                message: ptr::without_provenance(name),
            };
            let domain = ptr::without_provenance(domain);
            // SAFETY: the attributes are valid.
            black_box(unsafe { push(domain, &raw const attributes) });
            // SAFETY: may be called at any time.
            black_box(unsafe { pop(domain) });
        }
    });
}
