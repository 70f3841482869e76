//! A window: one launch, or one launch of a graph, measured alone on the host's thread that makes it.
//!
//! There is one window in the process at a time (`window/handover.rs`). Everyone else who launches into the
//! same context meanwhile leaves a mark, and the measurement is thrown away: its counters would hold
//! their launch as well.
//!
//! A launch that is not for a window costs two loads and a store at its entry, two loads at its
//! exit; while a window is wished for, its shape and one load more. Within a window there is no such
//! care: it synchronises the context and allocates.

mod handover;

/// The atomics of `handover`: others where every order of its steps is tried.
mod atomic {
    pub(super) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
}

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use warpgauge_wire::{Function, FunctionSet};

use self::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use self::handover::{Handover, Order};
use crate::collective::is_collective;
use crate::cupti::FailedCall;
use crate::driver::Driver;
use crate::launch::KEY_WORDS;
use crate::meter::{Counters, Meter};

/// How many shapes a window may be armed for at once: 8 KiB.
pub const MAX_WANTED: usize = 1024;

/// As many modules loaded since a window was armed make a burst: the program is starting up, and
/// patching would meet first launches.
pub const BURST_OF_MODULE_LOADS: u32 = 8;

/// What became of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The shape that was wished for, as [`crate::launch::Launch::key`].
    pub shape: [u64; KEY_WORDS],
    /// Whether a graph launched it, with others.
    pub by_graph: bool,
    /// The device that it ran on.
    pub device: u32,
    /// The functions that were counted for.
    pub functions: FunctionSet,
    /// When the launching thread was stopped.
    pub opened_at: Instant,
    /// How long it was held up.
    pub took: Duration,
    /// What was measured, or why nothing was.
    pub result: Result<Vec<Part>, Refusal>,
}

/// Launches that a window cannot tell from each other: the one of a plain launch, or all those of
/// one function in a graph.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Part {
    /// Each shape once, with its number of launches.
    pub shapes: Vec<([u64; KEY_WORDS], u64)>,
    /// What they counted together.
    pub counters: Counters,
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
    /// What was counted bears the name of no kernel in the graph.
    Unattributed,
    /// A call of CUPTI's failed.
    Failed(FailedCall),
    /// Waiting for the device failed with this `CUresult`; the program will hear of it, too.
    DeviceFailed,
}

/// What tells a launch from others, when a window looks at it.
#[derive(Debug, Clone)]
pub struct Entering<'a> {
    /// Its shape, or one of a graph's, that is wanted.
    pub shape: [u64; KEY_WORDS],
    /// Its context.
    pub context: u64,
    /// Its stream, as the driver's functions take it.
    pub stream: u64,
    /// What it runs.
    pub work: Work,
    /// The driver.
    pub driver: &'a Driver,
    /// The counters.
    pub meter: &'a Meter,
}

/// What a launch runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// The kernel of this handle.
    Kernel(u64),
    /// A graph's kernels: handle, shape, number of launches. Their names are known to the driver,
    /// and none waits for others.
    Graph(Vec<(u64, [u64; KEY_WORDS], u64)>),
}

/// The window of a process.
#[derive(Debug)]
pub struct Window {
    handover: Handover<MAX_WANTED>,
    /// Whether graphs may be measured.
    graphs: AtomicBool,
    context_gone: AtomicBool,
    captures: AtomicU32,
    module_loads: AtomicU32,
    module_loads_when_armed: AtomicU32,
    /// Of the window that is busy or done. Whoever is to touch it by the state is alone, so nobody
    /// ever waits for this lock.
    record: Mutex<Option<Record>>,
}

#[derive(Debug)]
struct Record {
    number: u64,
    work: Work,
    outcome: Outcome,
}

impl Window {
    /// A window that is idle.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            handover: Handover {
                state: AtomicU8::new(0),
                wanted: [const { AtomicU64::new(0) }; MAX_WANTED],
                functions: AtomicU8::new(0),
                lazily: AtomicBool::new(false),
                opened: AtomicU64::new(0),
                context: AtomicU64::new(0),
                disturbed: AtomicU64::new(0),
            },
            graphs: AtomicBool::new(true),
            context_gone: AtomicBool::new(false),
            captures: AtomicU32::new(0),
            module_loads: AtomicU32::new(0),
            module_loads_when_armed: AtomicU32::new(0),
            record: Mutex::new(None),
        }
    }

    /// Asks for a window around the next launch of one of these shapes
    /// ([`crate::launch::Launch::key`], hashed by [`hash`]). False unless the window is idle. For
    /// the worker.
    pub fn arm(
        &self,
        shapes: impl Iterator<Item = u64>,
        functions: FunctionSet,
        lazily: bool,
    ) -> bool {
        let loads = self.module_loads.load(Ordering::Relaxed);
        self.module_loads_when_armed.store(loads, Ordering::Relaxed);
        self.handover.arm(shapes, functions.bits(), lazily)
    }

    /// From now on graphs are left alone.
    pub fn spare_graphs(&self) {
        self.graphs.store(false, Ordering::Relaxed);
    }

    /// Takes the wish back. False while a window is open: it has to end first. For the worker.
    pub fn disarm(&self) -> bool {
        self.handover.disarm()
    }

    /// Whether a window is open now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.handover.is_open()
    }

    /// What became of the last window; once. For the worker.
    pub fn take(&self) -> Option<Outcome> {
        self.handover.take(|was_disturbed| {
            let record = self.record.lock().unwrap_or_else(PoisonError::into_inner).take()?;
            let mut outcome = record.outcome;
            if was_disturbed(record.number) && outcome.result.is_ok() {
                outcome.result = Err(Refusal::Disturbed);
            }
            Some(outcome)
        })
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
        if self.is_open() && self.context() == context {
            self.context_gone.store(true, Ordering::Release);
        }
    }

    /// The context of the last window.
    fn context(&self) -> u64 {
        self.handover.context.load(Ordering::Acquire)
    }

    /// The mark of a launch that enters; kept for [`Self::leaving`]. Opens a window where this
    /// launch is wanted: `look` is called then alone, and asks which shapes are.
    pub fn entering<'a>(
        &self,
        context: u64,
        look: impl FnOnce(&dyn Fn(&[u64; KEY_WORDS]) -> bool) -> Option<Entering<'a>>,
    ) -> u64 {
        let (mark, may_open) = self.handover.entering(context);
        if !may_open {
            return mark;
        }
        let Some(entering) = look(&|shape| self.handover.is_wanted(hash(shape))) else {
            return mark;
        };
        // Until it is done, this thread alone touches the window.
        self.handover.open(context).map_or(mark, |order| self.open(order, entering))
    }

    /// The same for a graph.
    pub fn entering_by_graph<'a>(
        &self,
        context: u64,
        look: impl FnOnce(&dyn Fn(&[u64; KEY_WORDS]) -> bool) -> Option<Entering<'a>>,
    ) -> u64 {
        self.entering(context, |is_wanted| {
            if self.graphs.load(Ordering::Relaxed) { look(is_wanted) } else { None }
        })
    }

    fn open(&self, order: Order, entering: Entering<'_>) -> u64 {
        let opened_at = Instant::now();
        self.context_gone.store(false, Ordering::Relaxed);
        let functions = FunctionSet::from_bits(order.functions);
        let device = entering.driver.current_device().ok().and_then(|d| u32::try_from(d).ok());
        let opened = match device {
            Some(device) => self.prepare(&entering, device, functions, order.lazily),
            None => Err(Refusal::UnknownDevice),
        };
        let is_open = opened.is_ok();
        let Entering { shape, work, .. } = entering;
        let outcome = Outcome {
            shape,
            by_graph: matches!(work, Work::Graph(_)),
            device: device.unwrap_or(0),
            functions,
            opened_at,
            took: opened_at.elapsed(),
            result: opened.map(|()| Vec::new()),
        };
        let record = Record { number: order.number, work, outcome };
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
        if !is_open {
            self.handover.done();
            return order.mark_of_refused();
        }
        order.mark()
    }

    fn prepare(
        &self,
        entering: &Entering<'_>,
        device: u32,
        functions: FunctionSet,
        lazily: bool,
    ) -> Result<(), Refusal> {
        let Entering { context, stream, driver, meter, .. } = *entering;
        let loads = self.module_loads.load(Ordering::Relaxed);
        let before = self.module_loads_when_armed.load(Ordering::Relaxed);
        if loads.wrapping_sub(before) >= BURST_OF_MODULE_LOADS {
            return Err(Refusal::Loading);
        }
        if let Work::Kernel(function) = entering.work {
            match driver.with_name(function, |name| is_collective(name.to_bytes())) {
                None => return Err(Refusal::Nameless),
                Some(true) => return Err(Refusal::Collective),
                Some(false) => {}
            }
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
        if let Err(failed) = meter.sass.enable(context, lazily) {
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
        if self.handover.leaving(mark, context)
            && let Some((driver, meter)) = driver.zip(meter)
        {
            self.close(accepted, driver, meter);
        }
    }

    /// Gives up the window that is open, if one is: nobody will tell of the end of its launch.
    pub fn abandon(&self) {
        self.handover.abandon();
    }

    fn close(&self, accepted: bool, driver: &Driver, meter: &Meter) {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Record { work, outcome, .. }) = record.as_mut() {
            let measured = self.measure(driver, meter, outcome, work);
            outcome.result = if accepted { measured } else { Err(Refusal::NotLaunched) };
            outcome.took = outcome.opened_at.elapsed();
        }
        drop(record);
        self.handover.done();
    }

    /// Takes the counters out and the patches off, whatever fails on the way.
    fn measure(
        &self,
        driver: &Driver,
        meter: &Meter,
        outcome: &Outcome,
        work: &Work,
    ) -> Result<Vec<Part>, Refusal> {
        let device = outcome.device;
        let context = self.context();
        if self.context_gone.load(Ordering::Acquire) {
            // What belongs to the context went with it.
            let _unset = meter.sass.unset_config(device);
            return Err(Refusal::ContextGone);
        }
        let mut counts = Counts::default();
        let synchronized = driver.synchronize().map_err(|_| Refusal::DeviceFailed);
        let by_name = outcome.by_graph;
        let counted = synchronized.and_then(|()| {
            let add = |name: &CStr, metric, value| {
                meter.add(device, &mut counts.all, metric, value);
                if by_name {
                    let counters = counts.by_name.entry(name.to_owned()).or_default();
                    meter.add(device, counters, metric, value);
                }
            };
            meter.sass.collect(context, add).map_err(Refusal::Failed)
        });
        let disabled = meter.sass.disable(context).map_err(Refusal::Failed);
        let unset = meter.sass.unset_config(device).map_err(Refusal::Failed);
        counted.and(disabled).and(unset)?;
        let must_count = outcome.functions.contains(Function::Instructions);
        if must_count && has_none(&counts.all) {
            return Err(Refusal::Empty);
        }
        match work {
            Work::Kernel(_) => {
                Ok(vec![Part { shapes: vec![(outcome.shape, 1)], counters: counts.all }])
            }
            Work::Graph(kernels) => counts.parts(kernels, must_count, driver),
        }
    }
}

/// What a window counted.
#[derive(Debug, Default)]
struct Counts {
    all: Counters,
    by_name: BTreeMap<CString, Counters>,
}

impl Counts {
    /// A graph's kernels by the names of their functions, with what bears that name.
    fn parts(
        mut self,
        kernels: &[(u64, [u64; KEY_WORDS], u64)],
        must_count: bool,
        driver: &Driver,
    ) -> Result<Vec<Part>, Refusal> {
        let mut shapes: BTreeMap<CString, BTreeMap<[u64; KEY_WORDS], u64>> = BTreeMap::new();
        for (function, shape, times) in kernels {
            let name = driver.with_name(*function, CStr::to_owned).ok_or(Refusal::Unattributed)?;
            *shapes.entry(name).or_default().entry(*shape).or_default() += times;
        }
        let mut parts = Vec::new();
        for (name, shapes) in shapes {
            let counters = self.by_name.remove(&name).unwrap_or_default();
            if !must_count || !has_none(&counters) {
                parts.push(Part { shapes: shapes.into_iter().collect(), counters });
            }
        }
        if parts.is_empty() { Err(Refusal::Unattributed) } else { Ok(parts) }
    }
}

/// Whether no instruction was counted. Every kernel executes one at least.
fn has_none(counters: &Counters) -> bool {
    // They come first among the counters.
    let [[instructions, _], ..] = *counters;
    instructions == 0
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
mod tests;
