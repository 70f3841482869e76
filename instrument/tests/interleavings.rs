//! Every order in which the steps of several threads can happen, in what the host's threads share
//! with ours. Built only with loom in place of the standard atomics:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p warpgauge-instrument --test interleavings \
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

#[path = "../src/window/handover.rs"]
mod handover;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use loom::thread;

use crate::handover::Handover;
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
    builder.preemption_bound = Some(3);
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

/// A window with what belongs to whoever has it alone.
struct Window {
    handover: Handover<1>,
    /// What a window counted for and brought; touched without a lock, as the state allows.
    record: UnsafeCell<Option<(u64, u8)>>,
    /// Whether kernels are patched, and how many ran that were.
    patched: AtomicBool,
    counted: AtomicU64,
}

// SAFETY: loom finds every access to the record that is not in order.
#[allow(unsafe_code, reason = "loom's cell is what checks it")]
unsafe impl Sync for Window {}

const CONTEXT: u64 = 16;
const HASH: u64 = 3;

fn window() -> Arc<Window> {
    let zero = || AtomicU64::new(0);
    Arc::new(Window {
        handover: Handover {
            state: AtomicU8::new(0),
            wanted: [zero()],
            functions: AtomicU8::new(0),
            lazily: AtomicBool::new(false),
            opened: zero(),
            context: zero(),
            disturbed: zero(),
        },
        record: UnsafeCell::new(None),
        patched: AtomicBool::new(false),
        counted: zero(),
    })
}

impl Window {
    /// A launch, as a host's thread makes it. Gives the functions of the window that it opened.
    fn launch(&self) -> Option<u8> {
        let (mut mark, may_open) = self.handover.entering(CONTEXT);
        let mut opened = None;
        if may_open
            && self.handover.is_wanted(HASH)
            && let Some(order) = self.handover.open(CONTEXT)
        {
            mark = order.mark();
            opened = Some(order);
            self.counted.store(0, Ordering::Relaxed);
            self.patched.store(true, Ordering::Release);
        }
        // The kernel runs.
        if self.patched.load(Ordering::Acquire) {
            self.counted.fetch_add(1, Ordering::AcqRel);
        }
        let closes = self.handover.leaving(mark, CONTEXT);
        assert_eq!(closes, opened.is_some(), "whoever opened a window closes it");
        let order = opened?;
        self.patched.store(false, Ordering::Release);
        let counted = self.counted.load(Ordering::Acquire);
        self.record.with_mut(|record| {
            // SAFETY: the window is this thread's until it is done.
            #[allow(unsafe_code, reason = "loom's cell checks it")]
            unsafe {
                *record = Some((order.number, u8::try_from(counted).unwrap()));
            }
        });
        self.handover.done();
        Some(order.functions)
    }

    /// What a window counted, where no other launch met it.
    fn take(&self) -> Option<Option<u8>> {
        self.handover.take(|was_disturbed| {
            let record = self.record.with_mut(|record| {
                // SAFETY: the window is over, so it is the worker's.
                #[allow(unsafe_code, reason = "loom's cell checks it")]
                unsafe {
                    (*record).take()
                }
            });
            let (number, counted) = record?;
            Some((!was_disturbed(number)).then_some(counted))
        })
    }
}

/// The worker takes its wish back and makes another one while a thread launches.
#[test]
fn a_window_counts_for_what_was_last_wished_and_is_handed_back_whole() {
    model(|| {
        let window = window();
        assert!(window.handover.arm([HASH].into_iter(), 1, true));
        let launching = {
            let window = Arc::clone(&window);
            thread::spawn(move || window.launch())
        };
        let mut armed_for = 1;
        if window.handover.disarm() && window.handover.arm([HASH].into_iter(), 2, false) {
            armed_for = 2;
        }
        let taken = window.take();
        let functions = launching.join().unwrap();
        let taken = taken.or_else(|| window.take());
        match functions {
            Some(functions) => {
                assert_eq!(functions, armed_for, "of the wish that holds");
                assert_eq!(taken, Some(Some(1)), "it counted its own launch");
            }
            None => assert_eq!(taken, None),
        }
        assert!(window.handover.disarm());
        assert!(window.handover.arm([HASH].into_iter(), 4, true), "idle again");
    });
}

/// Two threads launch what is wanted: one has the window, and if the other one's kernel ran inside,
/// the window is thrown away.
#[test]
fn a_window_that_holds_two_launches_is_never_believed() {
    model(|| {
        let window = window();
        assert!(window.handover.arm([HASH].into_iter(), 1, true));
        let threads: [_; 2] = std::array::from_fn(|_| {
            let window = Arc::clone(&window);
            thread::spawn(move || window.launch())
        });
        let opened = threads.into_iter().filter_map(|thread| thread.join().unwrap()).count();
        assert_eq!(opened, 1, "there is one window at a time");
        if let Some(Some(counted)) = window.take() {
            assert_eq!(counted, 1);
        }
    });
}
