//! Memory does not grow with the file. A process of its own, because it looks at what the process
//! has had.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "../telemetry/endless.rs"]
mod endless;

use std::io::Read;

use endless::{Count, endless_list, largest_memory};
use warpgauge_formats::telemetry::{Options, load};

/// What reading a file of any size may take.
const MOST: u64 = 48 << 20;

#[test]
fn files_far_larger_than_the_memory_that_they_take_are_read() {
    let mut list = Count::default();
    load(endless_list(MOST + (12 << 20)), None, &Options::default(), &mut list).unwrap();
    assert!(list.events > 90_000 && list.refused == 0, "{list:?}");

    // What an object holds beside its events is passed over, even where it is larger than any value
    // that is read whole.
    const BESIDE: u64 = 20 << 20;
    let head = "{\"profile\":".as_bytes();
    let object = head.chain(endless_list(BESIDE)).chain(",\"events\":".as_bytes());
    let object = object.chain(endless_list(BESIDE)).chain("}".as_bytes());
    let mut events = Count::default();
    load(object, None, &Options::default(), &mut events).unwrap();
    assert!(events.events > 30_000 && events.refused == 0, "{events:?}");

    if let Some(memory) = largest_memory() {
        assert!(memory < MOST, "{memory} bytes");
    }
}
