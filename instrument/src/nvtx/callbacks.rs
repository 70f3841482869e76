//! What NVTX's functions do here, on the program's threads.
//!
//! Handles of domains and strings are never pointers: they hold the number of a name and a tag that
//! says which they are, so that any value can be asked about.
#![allow(unsafe_code, reason = "NVTX hands over pointers")]

use std::ffi::{c_char, c_int, c_void};

use crate::guard::{Entry, guard};
use crate::names::{NAMES, NameId};
use crate::nvtx::types::{
    COLOR_ARGB, EventAttributes, Function, KNOWN_VERSION, NO_PUSH_POP_TRACKING, core, core2,
    message_type, payload_type,
};
use crate::scopes::skipped::{Reason, count};
use crate::scopes::{self, Label, Payload, WideCharacter, name_of_text, name_of_wide_text};

/// A function and the place in its table.
pub struct Callback(pub u32, pub Function);

// SAFETY: the pointer is that of a function.
unsafe impl Sync for Callback {}

/// Names each function with the place it takes.
macro_rules! table {
    ($($module:ident::$id:ident => $function:ident),+ $(,)?) => {
        [$(Callback($module::$id, $function as Function)),+]
    };
}

/// The functions without a domain.
pub static CORE: [Callback; 15] = table![
    core::MARK_EX => mark_ex,
    core::MARK_A => mark_text,
    core::MARK_W => mark_wide,
    core::RANGE_START_EX => range_start_ex,
    core::RANGE_START_A => range_start_text,
    core::RANGE_START_W => range_start_wide,
    core::RANGE_END => range_end,
    core::RANGE_PUSH_EX => range_push_ex,
    core::RANGE_PUSH_A => range_push_text,
    core::RANGE_PUSH_W => range_push_wide,
    core::RANGE_POP => range_pop,
    core::NAME_CATEGORY_A => name_category_text,
    core::NAME_CATEGORY_W => name_category_wide,
    core::NAME_OS_THREAD_A => name_thread_text,
    core::NAME_OS_THREAD_W => name_thread_wide,
];

/// The functions with a domain.
pub static CORE2: [Callback; 12] = table![
    core2::DOMAIN_MARK_EX => domain_mark_ex,
    core2::DOMAIN_RANGE_START_EX => domain_range_start_ex,
    core2::DOMAIN_RANGE_END => domain_range_end,
    core2::DOMAIN_RANGE_PUSH_EX => domain_range_push_ex,
    core2::DOMAIN_RANGE_POP => domain_range_pop,
    core2::DOMAIN_NAME_CATEGORY_A => domain_name_category_text,
    core2::DOMAIN_NAME_CATEGORY_W => domain_name_category_wide,
    core2::DOMAIN_REGISTER_STRING_A => domain_register_text,
    core2::DOMAIN_REGISTER_STRING_W => domain_register_wide,
    core2::DOMAIN_CREATE_A => domain_create_text,
    core2::DOMAIN_CREATE_W => domain_create_wide,
    core2::DOMAIN_DESTROY => domain_destroy,
];

/// Tags of handles, in their upper half.
const DOMAIN: u64 = 0x5747_444f;
const STRING: u64 = 0x5747_5354;

fn handle(tag: u64, name: NameId) -> *const c_void {
    std::ptr::without_provenance((tag << 32 | u64::from(name.number())) as usize)
}

/// The name that a handle stands for; none, and counted, where it is none of ours.
fn name_of_handle(tag: u64, handle: *const c_void) -> NameId {
    let number = handle.addr() as u64;
    let name = NameId::from_number((number & 0xffff_ffff) as u32);
    if number >> 32 == tag && NAMES.knows(name) {
        return name;
    }
    count(Reason::Malformed);
    NameId::NONE
}

/// No handle means the default domain.
fn domain_of(handle: *const c_void) -> NameId {
    if handle.is_null() { NameId::NONE } else { name_of_handle(DOMAIN, handle) }
}

/// What an event's attributes say.
///
/// # Safety
/// `attributes` is null or valid, and so are the pointers in it.
unsafe fn label(domain: NameId, attributes: *const EventAttributes) -> Label {
    if attributes.is_null() {
        count(Reason::Malformed);
        return Label { domain, ..Label::default() };
    }
    // SAFETY: version and size are the first fields of every version; nobody promises alignment.
    let [version, size] = unsafe { attributes.cast::<[u16; 2]>().read_unaligned() };
    if u32::from(version) > KNOWN_VERSION || usize::from(size) < size_of::<EventAttributes>() {
        count(Reason::Malformed);
        return Label { domain, ..Label::default() };
    }
    // SAFETY: the size says that all fields are there.
    let attributes = unsafe { attributes.read_unaligned() };
    Label {
        // SAFETY: passed on from the caller.
        name: unsafe { message(&attributes) },
        domain,
        category: attributes.category,
        payload: payload(&attributes),
        color: (attributes.color_type == COLOR_ARGB).then_some(attributes.color),
    }
}

/// # Safety
/// The message is what its type says.
unsafe fn message(attributes: &EventAttributes) -> NameId {
    match attributes.message_type {
        message_type::UNKNOWN => NameId::NONE,
        // SAFETY: passed on from the caller.
        message_type::ASCII => unsafe { name_of_text(attributes.message.cast()) },
        // SAFETY: as above.
        message_type::UNICODE => unsafe { name_of_wide_text(attributes.message.cast()) },
        message_type::REGISTERED => name_of_handle(STRING, attributes.message),
        _ => {
            count(Reason::Malformed);
            NameId::NONE
        }
    }
}

/// The number that a program attached. One of an unknown type, such as a pointer to the schemas of
/// NVTX's payload extension, is left out.
fn payload(attributes: &EventAttributes) -> Payload {
    let bits = attributes.payload;
    // A smaller type takes the lower bytes.
    let lower = (bits & 0xffff_ffff) as u32;
    match attributes.payload_type {
        payload_type::UNSIGNED_INT64 => Payload::Unsigned(bits),
        payload_type::INT64 => Payload::Signed(bits.cast_signed()),
        payload_type::DOUBLE => Payload::Float(f64::from_bits(bits)),
        payload_type::UNSIGNED_INT32 => Payload::Unsigned(lower.into()),
        payload_type::INT32 => Payload::Signed(lower.cast_signed().into()),
        payload_type::FLOAT => Payload::Float(f32::from_bits(lower).into()),
        payload_type::UNKNOWN => Payload::None,
        _ => {
            count(Reason::UnknownPayload);
            Payload::None
        }
    }
}

/// Runs the body of a function that only matters while somebody listens.
fn recorded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    if !scopes::is_recording() {
        return otherwise;
    }
    guard(Entry::Scope, otherwise, body)
}

/// A label with a name alone.
fn named(name: NameId) -> Label {
    Label { name, ..Label::default() }
}

/// What NVTX's push and pop answer: the level, or a negative number.
fn level(level: Option<u16>) -> c_int {
    level.map_or(-1, c_int::from)
}

unsafe extern "C" fn mark_ex(attributes: *const EventAttributes) {
    // SAFETY: passed on from the caller, as in all that follow.
    unsafe { domain_mark_ex(std::ptr::null(), attributes) };
}

unsafe extern "C" fn mark_text(message: *const c_char) {
    // SAFETY: see above.
    recorded((), || scopes::mark(named(unsafe { name_of_text(message) })));
}

unsafe extern "C" fn mark_wide(message: *const WideCharacter) {
    // SAFETY: see above.
    recorded((), || scopes::mark(named(unsafe { name_of_wide_text(message) })));
}

unsafe extern "C" fn range_start_ex(attributes: *const EventAttributes) -> u64 {
    // SAFETY: see above.
    unsafe { domain_range_start_ex(std::ptr::null(), attributes) }
}

unsafe extern "C" fn range_start_text(message: *const c_char) -> u64 {
    // SAFETY: see above.
    recorded(0, || scopes::begin_range(named(unsafe { name_of_text(message) })))
}

unsafe extern "C" fn range_start_wide(message: *const WideCharacter) -> u64 {
    // SAFETY: see above.
    recorded(0, || scopes::begin_range(named(unsafe { name_of_wide_text(message) })))
}

extern "C" fn range_end(number: u64) {
    recorded((), || scopes::end_range(number));
}

unsafe extern "C" fn range_push_ex(attributes: *const EventAttributes) -> c_int {
    // SAFETY: see above.
    unsafe { domain_range_push_ex(std::ptr::null(), attributes) }
}

unsafe extern "C" fn range_push_text(message: *const c_char) -> c_int {
    recorded(NO_PUSH_POP_TRACKING, || {
        // SAFETY: see above.
        level(scopes::begin(named(unsafe { name_of_text(message) })))
    })
}

unsafe extern "C" fn range_push_wide(message: *const WideCharacter) -> c_int {
    recorded(NO_PUSH_POP_TRACKING, || {
        // SAFETY: see above.
        level(scopes::begin(named(unsafe { name_of_wide_text(message) })))
    })
}

extern "C" fn range_pop() -> c_int {
    domain_range_pop(std::ptr::null())
}

unsafe extern "C" fn name_category_text(category: u32, name: *const c_char) {
    // SAFETY: see above.
    unsafe { domain_name_category_text(std::ptr::null(), category, name) };
}

unsafe extern "C" fn name_category_wide(category: u32, name: *const WideCharacter) {
    // SAFETY: see above.
    unsafe { domain_name_category_wide(std::ptr::null(), category, name) };
}

unsafe extern "C" fn name_thread_text(thread: u32, name: *const c_char) {
    // SAFETY: see above.
    guard(Entry::Scope, (), || scopes::name_thread(thread, unsafe { name_of_text(name) }));
}

unsafe extern "C" fn name_thread_wide(thread: u32, name: *const WideCharacter) {
    // SAFETY: see above.
    guard(Entry::Scope, (), || scopes::name_thread(thread, unsafe { name_of_wide_text(name) }));
}

unsafe extern "C" fn domain_mark_ex(domain: *const c_void, attributes: *const EventAttributes) {
    // SAFETY: see above.
    recorded((), || scopes::mark(unsafe { label(domain_of(domain), attributes) }));
}

unsafe extern "C" fn domain_range_start_ex(
    domain: *const c_void,
    attributes: *const EventAttributes,
) -> u64 {
    // SAFETY: see above.
    recorded(0, || scopes::begin_range(unsafe { label(domain_of(domain), attributes) }))
}

extern "C" fn domain_range_end(_domain: *const c_void, number: u64) {
    range_end(number);
}

unsafe extern "C" fn domain_range_push_ex(
    domain: *const c_void,
    attributes: *const EventAttributes,
) -> c_int {
    recorded(NO_PUSH_POP_TRACKING, || {
        // SAFETY: see above.
        level(scopes::begin(unsafe { label(domain_of(domain), attributes) }))
    })
}

extern "C" fn domain_range_pop(domain: *const c_void) -> c_int {
    recorded(NO_PUSH_POP_TRACKING, || level(scopes::end(domain_of(domain))))
}

unsafe extern "C" fn domain_name_category_text(
    domain: *const c_void,
    category: u32,
    name: *const c_char,
) {
    guard(Entry::Scope, (), || {
        // SAFETY: see above.
        scopes::name_category(domain_of(domain), category, unsafe { name_of_text(name) });
    });
}

unsafe extern "C" fn domain_name_category_wide(
    domain: *const c_void,
    category: u32,
    name: *const WideCharacter,
) {
    guard(Entry::Scope, (), || {
        // SAFETY: see above.
        scopes::name_category(domain_of(domain), category, unsafe { name_of_wide_text(name) });
    });
}

/// A string's handle is that of its name; the domain does not matter.
unsafe extern "C" fn domain_register_text(
    _domain: *const c_void,
    text: *const c_char,
) -> *const c_void {
    // SAFETY: see above.
    guard(Entry::Scope, std::ptr::null(), || handle(STRING, unsafe { name_of_text(text) }))
}

unsafe extern "C" fn domain_register_wide(
    _domain: *const c_void,
    text: *const WideCharacter,
) -> *const c_void {
    // SAFETY: see above.
    guard(Entry::Scope, std::ptr::null(), || handle(STRING, unsafe { name_of_wide_text(text) }))
}

/// A domain's handle is that of its name, before anybody listens too: it is made once.
unsafe extern "C" fn domain_create_text(name: *const c_char) -> *const c_void {
    // SAFETY: see above.
    guard(Entry::Scope, std::ptr::null(), || handle(DOMAIN, unsafe { name_of_text(name) }))
}

unsafe extern "C" fn domain_create_wide(name: *const WideCharacter) -> *const c_void {
    // SAFETY: see above.
    guard(Entry::Scope, std::ptr::null(), || handle(DOMAIN, unsafe { name_of_wide_text(name) }))
}

/// Scopes that are still open in a domain end as they would have.
extern "C" fn domain_destroy(_domain: *const c_void) {}
