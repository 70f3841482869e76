//! Scopes of the program: what opens, closes or is marked, as one record each.
//!
//! Whoever hears of a scope (NVTX, the user's calls) makes a [`ScopeRecord`] on the thread of the
//! program and gives it to [`emit`]. Where it goes is the event log's business ([`crate::events`]),
//! which sets the sink when it is switched on; until then a record costs one load.

use std::sync::OnceLock;

use crate::names::NameId;

/// What happened to a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// It opened.
    Begin = 0,
    /// It closed.
    End = 1,
    /// A moment was marked; there is nothing to close.
    Mark = 2,
}

/// What the program gave along with a scope.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Payload {
    /// Nothing.
    #[default]
    None,
    /// A number without a sign.
    Unsigned(u64),
    /// A number with a sign.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
}

/// One thing that happened to a scope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScopeRecord {
    /// When: nanoseconds since the epoch, `CLOCK_REALTIME`.
    pub time_ns: i64,
    /// The kernel's id of the thread that said so.
    pub thread: u32,
    /// What happened.
    pub phase: Phase,
    /// Tells one run of a scope from every other in this process; begin and end share it.
    pub instance: u64,
    /// The scope's name, of [`crate::names::NAMES`].
    pub name: NameId,
    /// The domain that the scope belongs to; none for the default one.
    pub domain: NameId,
    /// The program's number for the kind of scope; 0 for none.
    pub category: u32,
    /// How many scopes were open around it on its thread.
    pub depth: u16,
    /// What the program gave along.
    pub payload: Payload,
}

/// Takes records on the program's threads: never waits, locks or allocates.
pub type Sink = fn(&ScopeRecord);

static SINK: OnceLock<Sink> = OnceLock::new();

/// Says where records go, for the life of the process; the first one to say so wins.
pub fn set_sink(sink: Sink) {
    SINK.get_or_init(|| sink);
}

/// Hands a record on; nothing happens where nobody wants any.
pub fn emit(record: &ScopeRecord) {
    if let Some(sink) = SINK.get() {
        sink(record);
    }
}
