//! A program that says what it does.

use std::ffi::CString;

use warpgauge_scope::{Range, Scope, is_there, mark, name, scope};

fn main() {
    scope!("whole");
    {
        scope!("block");
        mark(c"mark");
    }
    let range = Range::begin(name!("range"));
    if let Ok(name) = CString::new(format!("device {}", 1)) {
        let _scope = Scope::begin(&name);
    }
    let ended = std::thread::spawn(move || drop(range)).join();
    println!("{} {}", is_there(), ended.is_ok());
}
