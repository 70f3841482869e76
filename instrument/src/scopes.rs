//! Scopes: what a program says about itself, through NVTX ([`crate::nvtx`]) or our own functions
//! ([`crate::api`]).
//!
//! ```text
//! nvtxRangePush ──> nvtx ──┐
//!                          ├──> begin, end, mark ──> ScopeRecord ──> sink
//! warpgauge_scope_begin ───┘      │           │
//!                               names   stack.rs, ranges.rs
//! ```
//!
//! Everything here happens on the program's threads: no allocation, no lock, no file. A name becomes
//! a number that means it for the life of the process ([`crate::names`]). Where nobody listens
//! ([`set_sink`]), an event costs one look at a pointer. What cannot be recorded as it was said is
//! counted ([`skipped`]).
#![allow(unsafe_code, reason = "the sink is a function behind an atomic pointer")]

pub mod labels;
pub mod ranges;
pub mod skipped;
pub mod stack;
mod text;

use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence};

use nix::libc;

use self::labels::Labels;
use self::ranges::{Range, Ranges};
use self::skipped::{Reason, count};
use self::stack::{Open, Popped, Stack};
pub use self::text::{WideCharacter, name_of_text, name_of_wide_text};
use crate::names::{NAMES, NameId};

/// What happened to a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// It began.
    Begin = 0,
    /// It ended.
    End = 1,
    /// Nothing began or ended: a point in time with a name.
    Mark = 2,
}

/// A number that the program attached to an event.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub enum Payload {
    /// None.
    #[default]
    None,
    /// An unsigned one.
    Unsigned(u64),
    /// A signed one.
    Signed(i64),
    /// One with a fraction.
    Float(f64),
}

/// An event as the sink gets it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScopeRecord {
    /// Nanoseconds since 1970 (`CLOCK_REALTIME`).
    pub time_ns: i64,
    /// When the scope began: of an end, its beginning; else the same as `time_ns`.
    pub begun_ns: i64,
    /// The kernel's number of the thread (gettid(2)).
    pub thread: u32,
    /// What happened.
    pub phase: Phase,
    /// The same for the beginning and the end of one scope; rises in the order of beginnings.
    pub instance: u64,
    /// The scope's name, of [`crate::names::NAMES`].
    pub name: NameId,
    /// The NVTX domain's name; [`NameId::NONE`] for the default one.
    pub domain: NameId,
    /// The program's number for a group of scopes of the domain ([`category_name`]); 0 for none.
    pub category: u32,
    /// How many scopes were open on the thread; 0 for what spans threads.
    pub depth: u16,
    /// It may end on another thread, and need not lie within others (NVTX's start/end ranges).
    pub spans_threads: bool,
    /// The number that the program attached. An end has none.
    pub payload: Payload,
    /// Alpha, red, green, blue, from the highest byte down. An end has none.
    pub color: Option<u32>,
}

/// Takes records, on the thread that made them. It must not allocate, lock or block, and it is never
/// entered again on a thread that is in it.
pub type Sink = fn(&ScopeRecord);

/// What is known of a scope or mark when it begins.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Label {
    /// See [`ScopeRecord::name`]; these are its other fields.
    pub name: NameId,
    /// The domain's name.
    pub domain: NameId,
    /// The program's number for a group of scopes.
    pub category: u32,
    /// The program's number for this one.
    pub payload: Payload,
    /// How it would be drawn.
    pub color: Option<u32>,
}

static SINK: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// How many sinks there have been: what began under another one has no end here.
static ERA: AtomicU32 = AtomicU32::new(0);

static OWN_DOMAIN: AtomicU32 = AtomicU32::new(0);
static RANGES: Ranges = Ranges::new();
static CATEGORIES: Labels = Labels::new();
static THREADS: Labels = Labels::new();
static NEXT_INSTANCE: AtomicU64 = AtomicU64::new(1);

/// What is kept for each thread that ever said something. Nothing in it has to be dropped, so it
/// can be used until the very end of a thread.
struct Thread {
    /// The thread is in here; only a signal handler can see it.
    busy: AtomicBool,
    state: RefCell<ThreadState>,
}

struct ThreadState {
    /// 0 until it is asked for.
    id: u32,
    era: u32,
    stack: Stack,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            busy: AtomicBool::new(false),
            state: RefCell::new(ThreadState { id: 0, era: 0, stack: Stack::new() }),
        }
    };
}

/// Gives every record from now on to `sink`.
pub fn set_sink(sink: Sink) {
    ERA.fetch_add(1, Ordering::Relaxed);
    SINK.store(sink as *mut (), Ordering::Release);
}

/// Stops recording, until another sink is set; safe in a fork handler.
pub fn switch_off() {
    SINK.store(ptr::null_mut(), Ordering::Release);
}

/// Whether anybody listens.
pub fn is_recording() -> bool {
    !SINK.load(Ordering::Relaxed).is_null()
}

fn sink() -> Option<Sink> {
    let sink = SINK.load(Ordering::Acquire);
    if sink.is_null() {
        return None;
    }
    // SAFETY: what is not null was stored as a Sink.
    Some(unsafe { std::mem::transmute::<*mut (), Sink>(sink) })
}

/// Begins a scope on this thread. Its level among the open scopes of its domain, from 0; `None`
/// where it is not recorded.
pub fn begin(label: Label) -> Option<u16> {
    on_thread(|thread, sink| {
        let time = now_ns();
        let open = Open {
            instance: next_instance(),
            begun_ns: time,
            name: label.name,
            domain: label.domain,
            category: label.category,
            ..Open::default()
        };
        let Some(open) = thread.stack.push(open) else {
            count(Reason::TooDeep);
            return None;
        };
        sink(&ScopeRecord {
            depth: open.depth,
            ..record(Phase::Begin, time, open.instance, thread.id, &label)
        });
        Some(open.level)
    })
}

/// Ends the last scope of a domain on this thread, and gives its level.
pub fn end(domain: NameId) -> Option<u16> {
    on_thread(|thread, sink| {
        let time = now_ns();
        match thread.stack.pop(domain) {
            Popped::Scope(open) => {
                let label =
                    Label { name: open.name, domain, category: open.category, ..Label::default() };
                sink(&ScopeRecord {
                    begun_ns: open.begun_ns,
                    depth: open.depth,
                    ..record(Phase::End, time, open.instance, thread.id, &label)
                });
                Some(open.level)
            }
            // Its beginning was counted.
            Popped::Beyond => None,
            Popped::Nothing => {
                count(Reason::EndWithoutBegin);
                None
            }
        }
    })
}

/// Marks a point in time.
pub fn mark(label: Label) {
    on_thread(|thread, sink| {
        let record = record(Phase::Mark, now_ns(), next_instance(), thread.id, &label);
        sink(&ScopeRecord { depth: thread.stack.depth(), ..record });
        Some(())
    });
}

/// Begins a range that any thread may end. Its number is 0 where it is not recorded.
pub fn begin_range(label: Label) -> u64 {
    let number = on_thread(|thread, sink| {
        let time = now_ns();
        let range = Range {
            instance: next_instance(),
            begun_ns: time,
            name: label.name,
            domain: label.domain,
            category: label.category,
        };
        let Some(number) = RANGES.begin(&range) else {
            count(Reason::TooManyRanges);
            return None;
        };
        sink(&ScopeRecord {
            spans_threads: true,
            ..record(Phase::Begin, time, range.instance, thread.id, &label)
        });
        Some(number)
    });
    number.unwrap_or(0)
}

/// Ends the range of a number that [`begin_range`] gave. 0 stands for one that was not recorded.
pub fn end_range(number: u64) {
    if number == 0 {
        return;
    }
    on_thread(|thread, sink| {
        let time = now_ns();
        let Some(range) = RANGES.end(number) else {
            count(Reason::EndWithoutBegin);
            return None;
        };
        let label = Label {
            name: range.name,
            domain: range.domain,
            category: range.category,
            ..Label::default()
        };
        sink(&ScopeRecord {
            begun_ns: range.begun_ns,
            spans_threads: true,
            ..record(Phase::End, time, range.instance, thread.id, &label)
        });
        Some(())
    });
}

fn record(phase: Phase, time: i64, instance: u64, thread: u32, label: &Label) -> ScopeRecord {
    ScopeRecord {
        time_ns: time,
        begun_ns: time,
        thread,
        phase,
        instance,
        name: label.name,
        domain: label.domain,
        category: label.category,
        depth: 0,
        spans_threads: false,
        payload: label.payload,
        color: label.color,
    }
}

/// Runs `body` for this thread, unless nobody listens or the thread is in here already.
fn on_thread<T>(body: impl FnOnce(&mut ThreadState, Sink) -> Option<T>) -> Option<T> {
    let sink = sink()?;
    THREAD.with(|thread| {
        if thread.busy.load(Ordering::Relaxed) {
            count(Reason::Interrupted);
            return None;
        }
        thread.busy.store(true, Ordering::Relaxed);
        // A signal handler of this thread sees the flag before anything is touched.
        compiler_fence(Ordering::SeqCst);
        let answer = thread.state.try_borrow_mut().ok().and_then(|mut state| {
            state.make_current();
            body(&mut state, sink)
        });
        compiler_fence(Ordering::SeqCst);
        thread.busy.store(false, Ordering::Relaxed);
        answer
    })
}

impl ThreadState {
    fn make_current(&mut self) {
        if self.id == 0 {
            // SAFETY: the call takes nothing and always succeeds.
            let id = unsafe { libc::syscall(libc::SYS_gettid) };
            self.id = u32::try_from(id).unwrap_or(0);
        }
        let era = ERA.load(Ordering::Relaxed);
        if self.era != era {
            self.era = era;
            self.stack.clear();
        }
    }
}

fn next_instance() -> u64 {
    NEXT_INSTANCE.fetch_add(1, Ordering::Relaxed)
}

/// The time now, in nanoseconds since 1970.
fn now_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time may be written.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    time.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec)
}

/// The number of a name. One that is too long is cut; where there is no room for a new one, it is
/// [`NameId::NONE`]. Both are counted.
pub fn intern(name: &[u8]) -> NameId {
    let cut = text::cut(name);
    if cut.len() < name.len() {
        count(Reason::LongName);
    }
    let id = NAMES.intern(cut);
    if id == NameId::NONE && !cut.is_empty() {
        count(Reason::TooManyNames);
    }
    id
}

/// The domain of scopes that come through our own functions, apart from NVTX's: neither ends what
/// the other began.
pub fn own_domain() -> NameId {
    let known = OWN_DOMAIN.load(Ordering::Relaxed);
    if known != 0 {
        return NameId::from_number(known);
    }
    let domain = NAMES.intern(b"warpgauge");
    OWN_DOMAIN.store(domain.number(), Ordering::Relaxed);
    domain
}

/// Names a category of a domain.
pub fn name_category(domain: NameId, category: u32, name: NameId) {
    if !CATEGORIES.set(u64::from(domain.number()) << 32 | u64::from(category), name) {
        count(Reason::TooManyLabels);
    }
}

/// What the program calls a category of a domain.
#[must_use]
pub fn category_name(domain: NameId, category: u32) -> Option<NameId> {
    CATEGORIES.get(u64::from(domain.number()) << 32 | u64::from(category))
}

/// Names a thread, by the kernel's number.
pub fn name_thread(thread: u32, name: NameId) {
    if !THREADS.set(thread.into(), name) {
        count(Reason::TooManyLabels);
    }
}

/// What the program calls a thread.
#[must_use]
pub fn thread_name(thread: u32) -> Option<NameId> {
    THREADS.get(thread.into())
}
