//! Every order in which the steps of several threads can happen, in what the host's threads share
//! with ours. Built only with loom in place of the standard atomics:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p warpgauge-instrument --test interleavings --release \
//!     --target-dir target/loom
//! ```
#![cfg(loom)]
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise; the files under test are used in part"
)]

/// What the files under test take for their atomics.
mod atomic {
    pub use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
}

#[path = "../src/ledger/table.rs"]
mod table;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use crate::table::{Slot, Table};

/// One place, so that every key meets every other one, and two counters for it.
type Smallest = Table<1, 1, 2>;

const A: [u64; 1] = [7];
const B: [u64; 1] = [8];

fn table() -> Arc<Smallest> {
    let zero = || AtomicU64::new(0);
    Arc::new(Table {
        slots: std::array::from_fn(|_| Slot {
            meta: zero(),
            value: zero(),
            key: std::array::from_fn(|_| zero()),
        }),
        shards: std::array::from_fn(|_| std::array::from_fn(|_| zero())),
    })
}

/// Up to this many switches where a thread could have gone on: more finds no more here and takes
/// hours (Musuvathi and Qadeer, 2007: few are enough).
fn model(threads: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(threads);
}

/// As the ledger does it: count, or else put in. Gives 1 where neither is possible.
fn record(table: &Smallest, shard: usize, key: [u64; 1]) -> u64 {
    let value = key[0] * 10;
    match table.count(shard, &key, 1) {
        Some(found) => {
            assert_eq!(found, value, "a value belongs to its key");
            0
        }
        None => u64::from(!table.insert(shard, &key, value, 1)),
    }
}

/// Launches by key.
fn drain(table: &Smallest, forget_idle: bool, sums: &mut [u64; 2]) {
    table.drain(forget_idle, |key, value, count| {
        assert_eq!(value, key[0] * 10, "a value belongs to its key");
        sums[usize::from(*key == B)] += count;
    });
}

#[test]
fn two_threads_that_bring_the_same_key_and_one_that_drains_lose_nothing() {
    model(|| {
        let table = table();
        let threads: [_; 2] = std::array::from_fn(|shard| {
            let table = Arc::clone(&table);
            thread::spawn(move || record(&table, shard, A))
        });
        let mut sums = [0; 2];
        drain(&table, true, &mut sums);
        let unfitted: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        drain(&table, true, &mut sums);
        assert_eq!((sums[0] + unfitted, sums[1]), (2, 0));
    });
}

/// A is known and idle: while one thread counts it, the worker throws it out and another thread
/// puts B in its place.
#[test]
fn a_count_never_goes_to_the_key_that_takes_the_place() {
    model(|| {
        let table = table();
        assert_eq!(record(&table, 0, A), 0);
        let mut sums = [0; 2];
        drain(&table, false, &mut sums);
        let counting = {
            let table = Arc::clone(&table);
            thread::spawn(move || record(&table, 0, A))
        };
        let bringing = {
            let table = Arc::clone(&table);
            thread::spawn(move || record(&table, 1, B))
        };
        drain(&table, true, &mut sums);
        let (a, b) = (counting.join().unwrap(), bringing.join().unwrap());
        drain(&table, true, &mut sums);
        assert_eq!([sums[0] + a, sums[1] + b], [2, 1]);
    });
}

/// Threads that share a counter, while it is drained.
#[test]
fn a_counter_that_threads_share_loses_nothing() {
    model(|| {
        let table = table();
        assert_eq!(record(&table, 0, A), 0);
        let threads: [_; 2] = std::array::from_fn(|_| {
            let table = Arc::clone(&table);
            thread::spawn(move || record(&table, 0, A))
        });
        let mut sums = [0; 2];
        drain(&table, false, &mut sums);
        let unfitted: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        drain(&table, false, &mut sums);
        assert_eq!((sums[0], unfitted), (3, 0));
    });
}
