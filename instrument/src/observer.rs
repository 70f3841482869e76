//! Where the callbacks leave what they saw, and the worker picks it up.
//!
//! Both sides meet here alone. The callbacks' side ([`entering`], [`launched`], [`leaving`],
//! [`functions_changed`]) runs on the host's threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

use warpgauge_wire::{Function, FunctionSet};

use crate::contexts::Contexts;
use crate::driver::{Driver, DriverError};
use crate::graphs::Graphs;
use crate::kernel_names::KernelNames;
use crate::launch::{KEY_WORDS, Launch};
use crate::ledger::{Drained, Ledger};
use crate::meter::Meter;
use crate::probes::Calculated;
use crate::probes::occupancy::Occupancy;
use crate::window::{Entering, Window, Work};

static LEDGER: Ledger = Ledger::new();
static WINDOW: Window = Window::new();
static GRAPHS: Graphs = Graphs::new();
static CONTEXTS: Contexts = Contexts::new();
static NAMES: KernelNames = KernelNames::new();
static METER: OnceLock<Meter> = OnceLock::new();
static DRIVER: OnceLock<Driver> = OnceLock::new();
/// The functions asked for, as [`FunctionSet::bits`].
static WANTED: AtomicU8 = AtomicU8::new(0);
/// The `CUresult` with which the occupancy of a shape was last refused; 0 for none.
static REFUSAL: AtomicI32 = AtomicI32::new(0);

/// A call that launches, as its parameters say.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// The launch.
    pub launch: Launch,
    /// Its stream, as the driver's functions take it.
    pub stream: u64,
    /// Whether its blocks wait for each other, so that it must not be held up or patched.
    pub cooperative: bool,
}

/// The window of this process.
pub fn window() -> &'static Window {
    &WINDOW
}

/// The counters of windows, once the worker has made them.
pub fn meter() -> Option<&'static Meter> {
    METER.get()
}

/// Gives windows their counters; those that they have already stay.
pub fn meter_or(make: impl FnOnce() -> Meter) -> &'static Meter {
    METER.get_or_init(make)
}

/// The devices of the contexts that launched.
pub fn contexts() -> &'static Contexts {
    &CONTEXTS
}

/// A call enters that may launch. Gives the mark to be kept until it leaves.
pub fn entering(context: u64, arrival: impl FnOnce() -> Option<Arrival>) -> u64 {
    WINDOW.entering(context, |is_wanted| {
        let Arrival { launch, stream, .. } = arrival().filter(|arrival| !arrival.cooperative)?;
        let shape = LEDGER.shape_of(&launch);
        if !is_wanted(&shape) {
            return None;
        }
        let (driver, meter) = DRIVER.get().zip(METER.get())?;
        let work = Work::Kernel(launch.function);
        Some(Entering { shape, context, stream, work, driver, meter })
    })
}

/// The call leaves with the mark that it was given.
pub fn leaving(mark: u64, context: u64, accepted: bool) {
    WINDOW.leaving(mark, context, accepted, DRIVER.get(), METER.get());
}

/// A launch that the driver has accepted and that has not returned to its caller.
pub fn launched(arrival: &Arrival) {
    if WINDOW.is_capturing_anywhere()
        && DRIVER.get().is_some_and(|driver| driver.is_capturing(arrival.stream) == Ok(true))
    {
        // It went into a graph; what runs is the graph.
        return;
    }
    LEDGER.record(&arrival.launch, 1, occupancy);
}

/// The graphs of this process.
pub fn graphs() -> &'static Graphs {
    &GRAPHS
}

/// A graph is about to be launched on a stream. Gives the mark to be kept until the call leaves.
pub fn graph_enters(executable: u64, context: u64, stream: u64) -> u64 {
    WINDOW.entering_by_graph(context, |is_wanted| {
        let is_launch_wanted = |launch: &Launch| is_wanted(&LEDGER.shape_of(launch));
        let launches = GRAPHS.wanted(executable, context, is_launch_wanted)?;
        let kernels: Vec<_> = launches
            .iter()
            .map(|(launch, times)| (launch.function, LEDGER.shape_of(launch), *times))
            .collect();
        let shape = kernels.iter().map(|(_, shape, _)| *shape).find(|shape| is_wanted(shape))?;
        let (driver, meter) = DRIVER.get().zip(METER.get())?;
        let work = Work::Graph(kernels);
        Some(Entering { shape, context, stream, work, driver, meter })
    })
}

/// A graph was instantiated or updated.
pub fn graph_instantiated(executable: u64, graph: u64) {
    if let Some(driver) = DRIVER.get() {
        GRAPHS.instantiated(executable, graph, driver);
    }
}

/// A graph was launched, and the launch has not returned to its caller.
pub fn graph_launched(executable: u64, context: u64) {
    GRAPHS.launched(executable, context, |launch, times| LEDGER.record(launch, times, occupancy));
}

/// The names of the kernels that were launched.
pub fn kernel_names() -> &'static KernelNames {
    &NAMES
}

fn occupancy(launch: &Launch) -> Option<f64> {
    let driver = DRIVER.get()?;
    if let Ok(device) = driver.current_device() {
        CONTEXTS.note(launch.context, device.cast_unsigned());
    }
    let [_, function, _, _, _, generation] = LEDGER.shape_of(launch);
    driver.with_name(function, |name| NAMES.note((function, generation), name.to_bytes()));
    let wanted = FunctionSet::from_bits(WANTED.load(Ordering::Relaxed));
    if !wanted.contains(Function::Occupancy) {
        return None;
    }
    match Occupancy.at_first_launch(driver, launch) {
        Ok(percent) => Some(percent),
        Err(DriverError::Call { code, .. }) => {
            REFUSAL.store(code, Ordering::Relaxed);
            None
        }
        Err(_) => None,
    }
}

/// A module or a context is about to go, and with it the meaning of kernel handles.
pub fn functions_changed() {
    LEDGER.forget_functions();
}

/// Says what to measure from now on, before the first callback comes. What was learnt about kernel
/// handles is forgotten: they may have changed hands while nobody looked.
pub fn measure(functions: FunctionSet, driver: Driver) {
    DRIVER.get_or_init(|| driver);
    WANTED.store(functions.bits(), Ordering::Relaxed);
    LEDGER.forget_functions();
}

/// Takes out what was counted; for one thread at a time. See [`Ledger::drain`].
pub fn drain(each: impl FnMut(&[u64; KEY_WORDS], Option<f64>, u64)) -> Drained {
    LEDGER.drain(each)
}

/// The `CUresult` with which the driver last refused to tell an occupancy; once.
pub fn take_refusal() -> Option<i32> {
    match REFUSAL.swap(0, Ordering::Relaxed) {
        0 => None,
        code => Some(code),
    }
}
