//! A process without the library: every call does nothing.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::ffi::CString;

use warpgauge_scope::{Range, Scope, is_there, mark, name, scope};

#[test]
fn without_the_library_every_call_does_nothing() {
    scope!("whole test");
    assert!(!is_there());
    let range = Range::begin(name!("range"));
    mark(c"mark");
    let dynamic = CString::new(format!("step {}", 1)).unwrap();
    drop(Scope::begin(&dynamic));
    std::thread::spawn(move || drop(range)).join().unwrap();
}
