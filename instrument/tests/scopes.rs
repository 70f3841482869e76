//! What a program says through NVTX's tables and through our own functions, and what the sink gets.
//!
//! The tables are those that NVTX's header makes, in memory of their exact size. That the header's
//! own are the same is shown by programs that are compiled with it (`tests/scopes`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(unsafe_code, reason = "NVTX's functions take pointers")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use warpgauge_instrument::api::{
    warpgauge_attach, warpgauge_mark, warpgauge_range_begin, warpgauge_range_end,
    warpgauge_scope_begin, warpgauge_scope_end,
};
use warpgauge_instrument::names::{MAX_NAME_BYTES, NAMES, NameId};
use warpgauge_instrument::nvtx::types::{
    COLOR_ARGB, EventAttributes, ExportTableCallbacks, ExportTableVersion, Function,
    GetExportTable, core, core2, message_type, module, payload_type, table,
};
use warpgauge_instrument::nvtx::{self, InitializeInjectionNvtx2};
use warpgauge_instrument::scopes::stack::MAX_DEPTH;
use warpgauge_instrument::scopes::{self, Payload, Phase, ScopeRecord, skipped};

/// Entries of a table with the null at both ends.
const ENTRIES: usize = 17;

// NVTX as it lies in a shared object: variables for functions, tables of their addresses.
static FUNCTIONS: [[AtomicPtr<c_void>; ENTRIES]; 2] =
    [const { [const { AtomicPtr::new(ptr::null_mut()) }; ENTRIES] }; 2];
static SLOTS: [[AtomicPtr<*mut c_void>; ENTRIES]; 2] =
    [const { [const { AtomicPtr::new(ptr::null_mut()) }; ENTRIES] }; 2];
static VERSION: ExportTableVersion =
    ExportTableVersion { struct_size: 24, version: 3, reserved: 0, set_injection_version: None };
static CALLBACKS: ExportTableCallbacks =
    ExportTableCallbacks { struct_size: 16, get_module_table: Some(module_table) };

unsafe extern "C" fn export_table(id: u32) -> *const c_void {
    match id {
        table::VERSION => (&raw const VERSION).cast(),
        table::CALLBACKS => (&raw const CALLBACKS).cast(),
        _ => ptr::null(),
    }
}

unsafe extern "C" fn module_table(id: c_int, slots: *mut *mut *mut Function, n: *mut u32) -> c_int {
    let index = match id {
        module::CORE => 0,
        module::CORE2 => 1,
        _ => return 0,
    };
    // SAFETY: the place is the caller's.
    unsafe { *slots = SLOTS[index].as_ptr().cast_mut().cast() };
    // SAFETY: as above.
    unsafe { *n = ENTRIES as u32 - 1 };
    1
}

thread_local! {
    static RECORDS: std::cell::RefCell<Vec<ScopeRecord>> = const { std::cell::RefCell::new(Vec::new()) };
}

fn keep(record: &ScopeRecord) {
    RECORDS.with_borrow_mut(|records| records.push(*record));
}

/// The records of this thread since the last time.
fn records() -> Vec<ScopeRecord> {
    RECORDS.take()
}

fn attach() {
    static ONCE: Mutex<bool> = Mutex::new(false);
    let mut attached = ONCE.lock().unwrap();
    if *attached {
        return;
    }
    for (slots, functions) in SLOTS.iter().zip(&FUNCTIONS) {
        for entry in 1..ENTRIES - 1 {
            slots[entry].store(functions[entry].as_ptr(), Ordering::Relaxed);
        }
    }
    // SAFETY: the function gives out the tables.
    assert!(unsafe { nvtx::attach(export_table) });
    scopes::set_sink(keep);
    *attached = true;
}

/// Calls the function that lies in a table.
macro_rules! call {
    ($table:ident::$id:ident, fn($($type:ty),*) $(-> $answer:ty)?, $($argument:expr),*) => {{
        attach();
        let index = if stringify!($table) == "core" { 0 } else { 1 };
        // SAFETY: the function in this place has this type, and the arguments are what it takes.
        unsafe {
            let function = FUNCTIONS[index][$table::$id as usize].load(Ordering::Relaxed);
            assert!(!function.is_null(), stringify!($id));
            let function: unsafe extern "C" fn($($type),*) $(-> $answer)? =
                std::mem::transmute(function);
            function($($argument),*)
        }
    }};
}

fn push(name: &str) -> c_int {
    let name = CString::new(name).unwrap();
    call!(core::RANGE_PUSH_A, fn(*const c_char) -> c_int, name.as_ptr())
}

fn pop() -> c_int {
    call!(core::RANGE_POP, fn() -> c_int,)
}

fn domain(name: &str) -> *const c_void {
    let name = CString::new(name).unwrap();
    call!(core2::DOMAIN_CREATE_A, fn(*const c_char) -> *const c_void, name.as_ptr())
}

fn registered(name: &str) -> *const c_void {
    let name = CString::new(name).unwrap();
    let domain = ptr::null();
    call!(
        core2::DOMAIN_REGISTER_STRING_A,
        fn(*const c_void, *const c_char) -> *const c_void,
        domain,
        name.as_ptr()
    )
}

fn push_in(domain: *const c_void, attributes: *const EventAttributes) -> c_int {
    call!(
        core2::DOMAIN_RANGE_PUSH_EX,
        fn(*const c_void, *const EventAttributes) -> c_int,
        domain,
        attributes
    )
}

fn pop_in(domain: *const c_void) -> c_int {
    call!(core2::DOMAIN_RANGE_POP, fn(*const c_void) -> c_int, domain)
}

fn attributes(message_type: i32, message: *const c_void) -> EventAttributes {
    EventAttributes {
        version: 3,
        size: 48,
        category: 0,
        color_type: 0,
        color: 0,
        payload_type: 0,
        reserved: 0,
        payload: 0,
        message_type,
        message,
    }
}

fn written(name: NameId) -> String {
    let mut text = Vec::new();
    NAMES.copy(name, &mut text);
    String::from_utf8(text).unwrap()
}

fn skips(reason: skipped::Reason) -> u64 {
    skipped::counts().find(|(known, _)| *known == reason).unwrap().1
}

/// Counts are the process's: whoever compares them is alone.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    attach();
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn scopes_on_a_thread_lie_within_each_other() {
    let _alone = alone();
    assert_eq!((push("outer"), push("inner"), pop(), pop()), (0, 1, 1, 0));
    let records = records();
    let seen: Vec<_> =
        records.iter().map(|r| (r.phase, written(r.name), r.depth, r.spans_threads)).collect();
    let outer = |phase| (phase, "outer".to_owned(), 0, false);
    let inner = |phase| (phase, "inner".to_owned(), 1, false);
    assert_eq!(
        seen,
        [outer(Phase::Begin), inner(Phase::Begin), inner(Phase::End), outer(Phase::End)]
    );
    assert_eq!(
        (records[0].instance, records[1].instance),
        (records[3].instance, records[2].instance)
    );
    assert!(records[0].instance < records[1].instance);
    assert_eq!(records[3].begun_ns, records[0].time_ns);
    assert!(records.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
    assert_eq!(records[0].thread, nix::unistd::gettid().as_raw().cast_unsigned());
}

#[test]
fn an_event_keeps_its_domain_category_color_and_payload() {
    let _alone = alone();
    let training = domain("training");
    let name = registered("step");
    for (kind, bits, payload) in [
        (payload_type::UNSIGNED_INT64, u64::MAX, Payload::Unsigned(u64::MAX)),
        (payload_type::INT64, u64::MAX, Payload::Signed(-1)),
        (payload_type::DOUBLE, 0.5_f64.to_bits(), Payload::Float(0.5)),
        (payload_type::UNSIGNED_INT32, 0xffff_ffff_ffff_ffff, Payload::Unsigned(0xffff_ffff)),
        (payload_type::INT32, 0xffff_fffe, Payload::Signed(-2)),
        (payload_type::FLOAT, u64::from(0.25_f32.to_bits()), Payload::Float(0.25)),
        (0, 7, Payload::None),
        (0x7fff_0000, 7, Payload::None),
    ] {
        let event = EventAttributes {
            category: 11,
            color_type: COLOR_ARGB,
            color: 0xff76_b900,
            payload_type: kind,
            payload: bits,
            ..attributes(message_type::REGISTERED, name)
        };
        assert_eq!(push_in(training, &event), 0);
        assert_eq!(pop_in(training), 0);
        let [begin, end] = records().try_into().unwrap();
        assert_eq!(
            (written(begin.name), written(begin.domain)),
            ("step".into(), "training".into())
        );
        assert_eq!((begin.category, begin.color, begin.payload), (11, Some(0xff76_b900), payload));
        assert_eq!((end.name, end.domain, end.category), (begin.name, begin.domain, 11));
        assert_eq!((end.color, end.payload), (None, Payload::None));
    }
}

#[test]
fn domains_interleave_and_each_ends_its_own() {
    let _alone = alone();
    let other = domain("other");
    let event = attributes(message_type::REGISTERED, registered("in other"));
    assert_eq!((push("a"), push_in(other, &event), pop(), pop_in(other)), (0, 0, 0, 0));
    let names: Vec<_> = records().iter().map(|record| written(record.name)).collect();
    assert_eq!(names, ["a", "in other", "a", "in other"]);
}

#[test]
fn a_range_ends_on_another_thread() {
    let _alone = alone();
    let number = call!(core::RANGE_START_A, fn(*const c_char) -> u64, c"request".as_ptr());
    assert_ne!(number, 0);
    let [begin] = records().try_into().unwrap();
    let end = std::thread::spawn(move || {
        call!(core::RANGE_END, fn(u64), number);
        records()
    });
    let [end] = end.join().unwrap().try_into().unwrap();
    assert_eq!((end.phase, end.instance, end.name), (Phase::End, begin.instance, begin.name));
    assert_eq!((end.begun_ns, end.spans_threads), (begin.time_ns, true));
    assert_ne!(end.thread, begin.thread);
    let before = skips(skipped::Reason::EndWithoutBegin);
    call!(core2::DOMAIN_RANGE_END, fn(*const c_void, u64), ptr::null(), number);
    assert_eq!((records(), skips(skipped::Reason::EndWithoutBegin)), (vec![], before + 1));
}

#[test]
fn marks_and_names_of_categories_and_threads() {
    let _alone = alone();
    let wide = [0x65, 0x301, 0x1f525, 0];
    call!(core::MARK_W, fn(*const c_int), wide.as_ptr());
    call!(core::MARK_A, fn(*const c_char), c"\xff".as_ptr());
    let [first, second] = records().try_into().unwrap();
    assert_eq!((first.phase, written(first.name)), (Phase::Mark, "e\u{301}\u{1f525}".into()));
    let mut bytes = Vec::new();
    assert!(NAMES.copy(second.name, &mut bytes));
    assert_eq!(bytes, [0xff], "bytes are kept as they came");
    let training = domain("training");
    call!(
        core2::DOMAIN_NAME_CATEGORY_A,
        fn(*const c_void, u32, *const c_char),
        training,
        3,
        c"io".as_ptr()
    );
    call!(core::NAME_OS_THREAD_A, fn(u32, *const c_char), 77, c"loader".as_ptr());
    let domain = NAMES.intern(b"training");
    assert_eq!(scopes::category_name(domain, 3).map(written), Some("io".into()));
    assert_eq!(scopes::category_name(NameId::NONE, 3), None);
    assert_eq!(scopes::thread_name(77).map(written), Some("loader".into()));
}

#[test]
fn what_is_malformed_is_recorded_without_a_name_and_keeps_the_balance() {
    let _alone = alone();
    let good = registered("good");
    let before = skips(skipped::Reason::Malformed);
    let garbage = ptr::without_provenance(0xdead_beef_0000_0001_usize);
    let wrong = [
        attributes(message_type::ASCII, ptr::null()),
        attributes(message_type::UNICODE, ptr::null()),
        attributes(message_type::REGISTERED, ptr::null()),
        attributes(message_type::REGISTERED, garbage),
        attributes(99, garbage),
        EventAttributes { size: 40, ..attributes(message_type::REGISTERED, good) },
        EventAttributes { version: 9, ..attributes(message_type::REGISTERED, good) },
    ];
    for event in &wrong {
        assert_eq!(push_in(ptr::null(), event), 0);
        assert_eq!(pop_in(ptr::null()), 0);
    }
    assert_eq!(push_in(ptr::null(), ptr::null()), 0);
    assert_eq!(pop_in(garbage), 0, "a domain that is none stands for the default one");
    let names: Vec<_> = records().iter().map(|record| record.name).collect();
    assert_eq!(names, [NameId::NONE; 16]);
    assert_eq!(skips(skipped::Reason::Malformed), before + 9);
}

#[test]
fn ends_without_a_beginning_and_depths_without_an_end_are_counted() {
    let _alone = alone();
    let before = skips(skipped::Reason::EndWithoutBegin);
    assert_eq!((pop(), pop()), (-1, -1));
    assert_eq!((records().len(), skips(skipped::Reason::EndWithoutBegin)), (0, before + 2));
    let before = skips(skipped::Reason::TooDeep);
    let deepest = (0..MAX_DEPTH + 5).map(|_| push("deep")).filter(|level| *level == -1).count();
    assert_eq!((deepest, skips(skipped::Reason::TooDeep)), (5, before + 5));
    (0..5).for_each(|_| assert_eq!(pop(), -1));
    (0..MAX_DEPTH).rev().for_each(|level| assert_eq!(pop(), level as c_int));
    assert_eq!(records().len(), 2 * MAX_DEPTH);
}

#[test]
fn a_name_of_a_megabyte_is_cut_and_thousands_of_domains_fit_or_are_counted() {
    let _alone = alone();
    let before = skips(skipped::Reason::LongName);
    push(&"x".repeat(1 << 20));
    pop();
    assert_eq!(written(records()[0].name).len(), MAX_NAME_BYTES);
    assert_eq!(skips(skipped::Reason::LongName), before + 1);
    for number in 0..5000 {
        let domain = domain(&format!("domain {number}"));
        assert!(!domain.is_null());
        push_in(domain, &attributes(message_type::UNKNOWN, ptr::null()));
        pop_in(domain);
    }
    let records = records();
    assert_eq!(records.len(), 10_000);
    assert!(records.iter().all(|record| record.depth == 0));
}

#[test]
fn our_own_functions_and_nvtx_do_not_end_each_others_scopes() {
    let _alone = alone();
    // SAFETY: the names end in a zero.
    unsafe { warpgauge_scope_begin(c"ours".as_ptr()) };
    push("nvtx");
    warpgauge_scope_end();
    pop();
    // SAFETY: as above.
    let number = unsafe { warpgauge_range_begin(c"range".as_ptr()) };
    // SAFETY: null is no name.
    unsafe { warpgauge_mark(ptr::null()) };
    warpgauge_range_end(number);
    warpgauge_range_end(0);
    let seen: Vec<_> = records()
        .iter()
        .map(|record| {
            format!("{:?} {} {}", record.phase, written(record.domain), written(record.name))
        })
        .collect();
    assert_eq!(
        seen,
        [
            "Begin warpgauge ours",
            "Begin  nvtx",
            "End warpgauge ours",
            "End  nvtx",
            "Begin warpgauge range",
            "Mark warpgauge ",
            "End warpgauge range",
        ]
    );
}

#[test]
fn scopes_that_began_for_another_sink_do_not_end_for_this_one() {
    let _alone = alone();
    push("before");
    records();
    scopes::switch_off();
    assert_eq!((push("unheard"), pop()), (-2, -2), "nobody listens: NVTX's word for it");
    scopes::set_sink(keep);
    assert_eq!((push("after"), pop(), pop()), (0, 0, -1));
    assert_eq!(records().len(), 2);
}

unsafe extern "C" fn newer_table(id: u32) -> *const c_void {
    static NEWER: ExportTableVersion = ExportTableVersion { version: 4, ..VERSION };
    if id == table::VERSION { (&raw const NEWER).cast() } else { ptr::null() }
}

unsafe extern "C" fn no_table(_id: u32) -> *const c_void {
    ptr::null()
}

#[test]
fn what_is_of_another_version_is_left_alone() {
    let before = skips(skipped::Reason::UnknownVersion);
    for get_table in [None, Some(no_table as GetExportTable), Some(newer_table)] {
        // SAFETY: the functions give out tables, or none.
        assert_eq!(unsafe { InitializeInjectionNvtx2(get_table) }, 0);
    }
    assert_eq!(skips(skipped::Reason::UnknownVersion), before + 2);
    assert_eq!(warpgauge_attach(2), 0);
}
