//! A window: one launch, measured alone, on the host's thread that makes it.
//!
//! ```text
//!            arm (worker)       claim (host, at the launch's entry)       close (host, at its exit)
//!   idle ──────────────> armed ──────────────────────────────────> busy ─────────────────────> done
//!    ^                     │ disarm (worker)                                                      │
//!    └─────────────────────┴──────────────────────────────────────────────── take (worker) ───────┘
//! ```
//!
//! There is one window in the process at a time. Whoever takes the step to `busy` has it to himself
//! until `done`. Everyone else who launches into the same context meanwhile leaves a mark, and the
//! measurement is thrown away: its counters would hold their launch as well.
//!
//! A launch that is not for a window costs two loads and a store at its entry, two loads at its
//! exit. Within a window there is no such care: it synchronises the context and allocates.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use warpgauge_wire::{Function, FunctionSet};

use crate::collective::is_collective;
use crate::cupti::FailedCall;
use crate::driver::Driver;
use crate::launch::{KEY_WORDS, Launch};
use crate::meter::{Counters, Meter};

/// How many shapes a window may be armed for at once.
pub const MAX_WANTED: usize = 16;

/// As many modules loaded since a window was armed make a burst: the program is starting up, and
/// patching would meet first launches.
pub const BURST_OF_MODULE_LOADS: u32 = 8;

const IDLE: u8 = 0;
const ARMED: u8 = 1;
const BUSY: u8 = 2;
const DONE: u8 = 3;

/// What a launch's entry leaves for its exit: the window that it opened (`OPENED`) or the one that
/// was last when it entered.
const OPENED: u64 = 1;

/// What became of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// The shape of the launch, as [`Launch::key`].
    pub shape: [u64; KEY_WORDS],
    /// The device that it ran on.
    pub device: u32,
    /// The functions that were counted for.
    pub functions: FunctionSet,
    /// How long the launching thread was held up.
    pub took: Duration,
    /// What was measured, or why nothing was.
    pub result: Result<Counters, Refusal>,
}

/// Why a window measured nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A kernel that may wait for another process or device: never measured.
    Collective,
    /// The driver is too old to name the kernel, so nobody knows whether it is collective.
    Nameless,
    /// The stream, or another one, is being captured into a graph.
    Capturing,
    /// Modules are being loaded.
    Loading,
    /// Counters of the launch's device are not known (yet).
    UnknownDevice,
    /// Another thread launched into the context meanwhile.
    Disturbed,
    /// The driver refused the launch.
    NotLaunched,
    /// The context was destroyed meanwhile.
    ContextGone,
    /// The patches counted nothing, which no launch can do.
    Empty,
    /// A call of CUPTI's failed.
    Failed(FailedCall),
    /// Waiting for the device failed with this `CUresult`; the program will hear of it, too.
    DeviceFailed,
}

/// What tells one launch from others, when a window looks at it.
#[derive(Debug, Clone, Copy)]
pub struct Entering<'a> {
    /// The launch.
    pub launch: Launch,
    /// Its shape.
    pub shape: [u64; KEY_WORDS],
    /// Its stream, as the driver's functions take it.
    pub stream: u64,
    /// The driver.
    pub driver: &'a Driver,
    /// The counters.
    pub meter: &'a Meter,
}

/// The window of a process.
#[derive(Debug)]
pub struct Window {
    state: AtomicU8,
    /// Hashes of the shapes that are wanted; 0 for none.
    wanted: [AtomicU64; MAX_WANTED],
    functions: AtomicU8,
    lazily: AtomicBool,
    /// Number of windows opened so far.
    opened: AtomicU64,
    /// The context of the last one.
    context: AtomicU64,
    context_gone: AtomicBool,
    /// The last window that another launch met.
    disturbed: AtomicU64,
    captures: AtomicU32,
    module_loads: AtomicU32,
    module_loads_when_armed: AtomicU32,
    /// Of the window that is busy or done. Whoever is to touch it by the state is alone, so nobody
    /// ever waits for this lock.
    record: Mutex<Option<Record>>,
}

#[derive(Debug, Clone, Copy)]
struct Record {
    number: u64,
    opened_at: Instant,
    outcome: Outcome,
}

impl Window {
    /// A window that is idle.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: AtomicU8::new(IDLE),
            wanted: [const { AtomicU64::new(0) }; MAX_WANTED],
            functions: AtomicU8::new(0),
            lazily: AtomicBool::new(false),
            opened: AtomicU64::new(0),
            context: AtomicU64::new(0),
            context_gone: AtomicBool::new(false),
            disturbed: AtomicU64::new(0),
            captures: AtomicU32::new(0),
            module_loads: AtomicU32::new(0),
            module_loads_when_armed: AtomicU32::new(0),
            record: Mutex::new(None),
        }
    }

    /// Asks for a window around the next launch of one of these shapes ([`Launch::key`], hashed by
    /// [`hash`]). False unless the window is idle. For the worker.
    pub fn arm(
        &self,
        shapes: impl Iterator<Item = u64>,
        functions: FunctionSet,
        lazily: bool,
    ) -> bool {
        if self.state.load(Ordering::Acquire) != IDLE {
            return false;
        }
        let mut shapes = shapes;
        for place in &self.wanted {
            place.store(shapes.next().unwrap_or(0), Ordering::Relaxed);
        }
        self.functions.store(functions.bits(), Ordering::Relaxed);
        self.lazily.store(lazily, Ordering::Relaxed);
        self.module_loads_when_armed
            .store(self.module_loads.load(Ordering::Relaxed), Ordering::Relaxed);
        self.state.store(ARMED, Ordering::Release);
        true
    }

    /// Takes the wish back. False while a window is open: it has to end first. For the worker.
    pub fn disarm(&self) -> bool {
        let disarmed =
            self.state.compare_exchange(ARMED, IDLE, Ordering::AcqRel, Ordering::Acquire);
        disarmed != Err(BUSY)
    }

    /// Whether a window is open now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) == BUSY
    }

    /// What became of the last window; once. For the worker.
    pub fn take(&self) -> Option<Outcome> {
        if self.state.load(Ordering::Acquire) != DONE {
            return None;
        }
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        if self.disturbed.load(Ordering::Acquire) == record.number && record.outcome.result.is_ok()
        {
            record.outcome.result = Err(Refusal::Disturbed);
        }
        self.state.store(IDLE, Ordering::Release);
        Some(record.outcome)
    }

    /// How many modules were loaded since the library looks.
    #[must_use]
    pub fn module_loads(&self) -> u32 {
        self.module_loads.load(Ordering::Relaxed)
    }

    /// A module was loaded. Nothing of CUPTI's may be called here.
    pub fn module_loaded(&self) {
        self.module_loads.fetch_add(1, Ordering::Relaxed);
    }

    /// A stream begins to be captured into a graph.
    pub fn capture_begins(&self) {
        self.captures.fetch_add(1, Ordering::AcqRel);
    }

    /// A capture has ended. One that began before we looked is not counted.
    pub fn capture_ended(&self) {
        let _none_left = self
            .captures
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
    }

    /// Whether any stream is being captured.
    #[must_use]
    pub fn is_capturing_anywhere(&self) -> bool {
        self.captures.load(Ordering::Relaxed) > 0
    }

    /// A context is about to be destroyed.
    pub fn context_destroyed(&self, context: u64) {
        if self.is_open() && self.context.load(Ordering::Acquire) == context {
            self.context_gone.store(true, Ordering::Release);
        }
    }

    /// The mark of a launch that enters; kept for [`Self::leaving`]. Opens a window where this
    /// launch is wanted; `shape` is asked then alone.
    pub fn entering<'a>(&self, context: u64, look: impl FnOnce() -> Option<Entering<'a>>) -> u64 {
        let number = self.opened.load(Ordering::Acquire);
        match self.state.load(Ordering::Acquire) {
            ARMED => {}
            BUSY => {
                self.disturb(context, number);
                return number << 1;
            }
            _ => return number << 1,
        }
        let Some(entering) = look() else { return number << 1 };
        let hash = hash(&entering.shape);
        let wanted = self.wanted.iter().any(|place| place.load(Ordering::Relaxed) == hash);
        if !wanted
            || self
                .state
                .compare_exchange(ARMED, BUSY, Ordering::AcqRel, Ordering::Acquire)
                .is_err()
        {
            return number << 1;
        }
        // Until `done`, this thread alone touches the window.
        let number = number + 1;
        self.context_gone.store(false, Ordering::Relaxed);
        self.context.store(context, Ordering::Release);
        self.opened.store(number, Ordering::Release);
        self.open(number, &entering)
    }

    fn open(&self, number: u64, entering: &Entering<'_>) -> u64 {
        let opened_at = Instant::now();
        let functions = FunctionSet::from_bits(self.functions.load(Ordering::Relaxed));
        let device = entering.driver.current_device().ok().and_then(|d| u32::try_from(d).ok());
        let opened = match device {
            Some(device) => self.prepare(entering, device, functions),
            None => Err(Refusal::UnknownDevice),
        };
        let outcome = Outcome {
            shape: entering.shape,
            device: device.unwrap_or(0),
            functions,
            took: opened_at.elapsed(),
            result: opened.map(|()| Counters::default()),
        };
        let record = Record { number, opened_at, outcome };
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
        if outcome.result.is_err() {
            self.state.store(DONE, Ordering::Release);
            return number << 1;
        }
        number << 1 | OPENED
    }

    fn prepare(
        &self,
        entering: &Entering<'_>,
        device: u32,
        functions: FunctionSet,
    ) -> Result<(), Refusal> {
        let Entering { launch, stream, driver, meter, .. } = *entering;
        let loads = self.module_loads.load(Ordering::Relaxed);
        let before = self.module_loads_when_armed.load(Ordering::Relaxed);
        if loads.wrapping_sub(before) >= BURST_OF_MODULE_LOADS {
            return Err(Refusal::Loading);
        }
        match driver.with_name(launch.function, |name| is_collective(name.to_bytes())) {
            None => return Err(Refusal::Nameless),
            Some(true) => return Err(Refusal::Collective),
            Some(false) => {}
        }
        // To wait for the device would spoil a capture, whichever stream it is of.
        if self.captures.load(Ordering::Acquire) > 0 || driver.is_capturing(stream) != Ok(false) {
            return Err(Refusal::Capturing);
        }
        let metrics = meter.metrics(device, functions);
        if metrics.is_empty() {
            return Err(Refusal::UnknownDevice);
        }
        driver.synchronize().map_err(|_| Refusal::DeviceFailed)?;
        meter.sass.set_config(device, &metrics).map_err(Refusal::Failed)?;
        if let Err(failed) = meter.sass.enable(launch.context, self.lazily.load(Ordering::Relaxed))
        {
            // The first failure is the one to tell.
            let _unset = meter.sass.unset_config(device);
            return Err(Refusal::Failed(failed));
        }
        Ok(())
    }

    /// A launch leaves with the mark of its entry. Closes the window that it opened.
    pub fn leaving(
        &self,
        mark: u64,
        context: u64,
        accepted: bool,
        driver: Option<&Driver>,
        meter: Option<&Meter>,
    ) {
        let number = self.opened.load(Ordering::Acquire);
        let busy = self.state.load(Ordering::Acquire) == BUSY;
        if mark == (number << 1 | OPENED) && busy {
            if let Some((driver, meter)) = driver.zip(meter) {
                self.close(accepted, driver, meter);
            }
        } else if busy || mark >> 1 != number {
            // A window opened while this launch was on its way.
            self.disturb(context, number);
        }
    }

    fn disturb(&self, context: u64, number: u64) {
        if self.context.load(Ordering::Acquire) == context {
            self.disturbed.store(number, Ordering::Release);
        }
    }

    /// Gives up the window that is open, if one is: nobody will tell of the end of its launch.
    pub fn abandon(&self) {
        let _was_not_open =
            self.state.compare_exchange(BUSY, IDLE, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Another kind of work enters a context: a graph.
    pub fn other_work(&self, context: u64) {
        if self.is_open() {
            self.disturb(context, self.opened.load(Ordering::Acquire));
        }
    }

    fn close(&self, accepted: bool, driver: &Driver, meter: &Meter) {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = record.as_mut() {
            let outcome = &mut record.outcome;
            let measured = self.measure(driver, meter, outcome);
            outcome.result = if accepted { measured } else { Err(Refusal::NotLaunched) };
            outcome.took = record.opened_at.elapsed();
        }
        drop(record);
        self.state.store(DONE, Ordering::Release);
    }

    /// Takes the counters out and the patches off, whatever fails on the way.
    fn measure(
        &self,
        driver: &Driver,
        meter: &Meter,
        outcome: &Outcome,
    ) -> Result<Counters, Refusal> {
        let device = outcome.device;
        let context = self.context.load(Ordering::Acquire);
        if self.context_gone.load(Ordering::Acquire) {
            // What belongs to the context went with it.
            let _unset = meter.sass.unset_config(device);
            return Err(Refusal::ContextGone);
        }
        let mut counters = Counters::default();
        let synchronized = driver.synchronize().map_err(|_| Refusal::DeviceFailed);
        let counted = synchronized.and_then(|()| {
            let add = |metric, value| meter.add(device, &mut counters, metric, value);
            meter.sass.collect(context, add).map_err(Refusal::Failed)
        });
        let disabled = meter.sass.disable(context).map_err(Refusal::Failed);
        let unset = meter.sass.unset_config(device).map_err(Refusal::Failed);
        counted.and(disabled).and(unset)?;
        // Instructions come first among the counters, and every kernel executes one at least.
        let [[instructions, _], ..] = counters;
        if outcome.functions.contains(Function::Instructions) && instructions == 0 {
            return Err(Refusal::Empty);
        }
        Ok(counters)
    }
}

impl Default for Window {
    fn default() -> Self {
        Self::new()
    }
}

/// A shape as one number that is not 0.
#[must_use]
pub fn hash(shape: &[u64; KEY_WORDS]) -> u64 {
    crate::ledger::hash(shape) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instructions() -> FunctionSet {
        [Function::Instructions].into_iter().collect()
    }

    #[test]
    fn a_window_is_armed_once_and_can_be_disarmed_until_it_opens() {
        let window = Window::new();
        assert!(window.disarm(), "an idle one needs nothing");
        assert!(window.arm([1].into_iter(), instructions(), true));
        assert!(!window.arm([2].into_iter(), instructions(), true));
        assert!(window.disarm());
        assert!(window.arm([2].into_iter(), instructions(), true));
        assert_eq!(window.take(), None);
    }

    /// A launch that entered before a window opened and leaves after it may have run inside.
    #[test]
    fn a_launch_on_its_way_when_a_window_opens_disturbs_it() {
        let window = Window::new();
        let mark = window.entering(16, || None);
        // As `open` does it.
        window.context.store(16, Ordering::Release);
        window.opened.store(1, Ordering::Release);
        window.state.store(BUSY, Ordering::Release);
        let outcome = Outcome {
            shape: [0; KEY_WORDS],
            device: 0,
            functions: instructions(),
            took: Duration::ZERO,
            result: Ok(Counters::default()),
        };
        *window.record.lock().unwrap() =
            Some(Record { number: 1, opened_at: Instant::now(), outcome });
        window.state.store(DONE, Ordering::Release);
        window.leaving(mark, 16, true, None, None);
        assert_eq!(window.take().unwrap().result, Err(Refusal::Disturbed));
    }

    #[test]
    fn launches_into_other_contexts_do_not_disturb() {
        let window = Window::new();
        window.context.store(16, Ordering::Release);
        window.opened.store(1, Ordering::Release);
        window.state.store(BUSY, Ordering::Release);
        let mark = window.entering(32, || None);
        window.leaving(mark, 32, true, None, None);
        window.other_work(32);
        assert_eq!(window.disturbed.load(Ordering::Acquire), 0);
        let mark = window.entering(16, || None);
        assert_eq!(mark & OPENED, 0);
        assert_eq!(window.disturbed.load(Ordering::Acquire), 1);
    }

    #[test]
    fn captures_are_counted_and_one_from_before_we_looked_is_not() {
        let window = Window::new();
        window.capture_ended();
        assert!(!window.is_capturing_anywhere());
        window.capture_begins();
        window.capture_begins();
        window.capture_ended();
        assert!(window.is_capturing_anywhere());
        window.capture_ended();
        assert!(!window.is_capturing_anywhere());
    }
}
