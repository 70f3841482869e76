//! Whatever a process makes /proc say of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpgauge::procfs::cgroup::Membership;
use warpgauge::procfs::{Stat, Status};

fuzz_target!(|text: &[u8]| {
    let _stat = Stat::parse(text);
    let _status = Status::parse(text);
    if let Ok(text) = std::str::from_utf8(text) {
        let _membership = Membership::parse(text);
    }
});
