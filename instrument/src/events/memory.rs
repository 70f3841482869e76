//! How much memory of a device is in use while a scope is open.
//!
//! Read where a context is current and alive for certain: behind a launch, on the thread that
//! launched, once in an interval ([decision 10](../../../docs/decisions/0010-events-from-the-module.md)).
//! A driver that takes long to answer is not asked again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use nix::unistd::gettid;

use crate::driver::Driver;
use crate::events::clock::wall_clock;
use crate::events::record::{MemoryRecord, Record};
use crate::events::{is_on, push};

/// An answer that takes longer is the last one: a thread of the program's waits for it.
const LONGEST: i64 = 1_000_000;

/// Open scopes of all threads.
static OPEN: AtomicI64 = AtomicI64::new(0);
/// Nanoseconds between two readings; 0 for none.
static INTERVAL: AtomicU64 = AtomicU64::new(0);
/// When the next reading is due, nanoseconds since the epoch.
static DUE: AtomicI64 = AtomicI64::new(0);
static WAS_SLOW: AtomicBool = AtomicBool::new(false);
static DRIVER: OnceLock<Driver> = OnceLock::new();

/// From now on memory is read once in an interval; never where that is 0.
pub fn allow(interval: Duration) {
    OPEN.store(0, Ordering::Relaxed);
    INTERVAL.store(u64::try_from(interval.as_nanos()).unwrap_or(0), Ordering::Relaxed);
}

/// The driver is in the process.
pub fn find_driver() {
    if DRIVER.get().is_none()
        && let Ok(driver) = Driver::of_this_process()
    {
        DRIVER.get_or_init(|| driver);
    }
}

/// A scope was opened, or closed.
pub(super) fn scopes_changed(by: i64) {
    OPEN.fetch_add(by, Ordering::Relaxed);
}

/// A thread has launched a kernel, in a context that is current to it, and no stream is captured.
pub fn after_launch() {
    if OPEN.load(Ordering::Relaxed) <= 0 || !is_on() {
        return;
    }
    let interval = INTERVAL.load(Ordering::Relaxed).cast_signed();
    if interval == 0 || WAS_SLOW.load(Ordering::Relaxed) {
        return;
    }
    let (now, due) = (wall_clock(), DUE.load(Ordering::Relaxed));
    // A clock that went back must not keep us waiting for longer than an interval.
    if now < due && due - now <= interval {
        return;
    }
    let next = now.saturating_add(interval);
    if DUE.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        // Another thread reads.
        return;
    }
    let Some(driver) = DRIVER.get() else { return };
    let (Ok(device), Ok((free, total))) = (driver.current_device(), driver.memory()) else {
        return;
    };
    if wall_clock().saturating_sub(now) > LONGEST {
        WAS_SLOW.store(true, Ordering::Relaxed);
    }
    push(&Record::Memory(MemoryRecord {
        time_ns: now,
        thread: gettid().as_raw().cast_unsigned(),
        device: device.cast_unsigned(),
        used_bytes: total.saturating_sub(free),
        total_bytes: total,
    }));
}

/// Whether readings have ended because one took too long.
#[must_use]
pub fn was_slow() -> bool {
    WAS_SLOW.load(Ordering::Relaxed)
}
