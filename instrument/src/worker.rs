//! The library's own thread, and the two moments at which others do its work: injection and exit.

#![allow(unsafe_code, reason = "libc has no binding of pthread_setcancelstate")]

use std::ffi::c_int;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError, TryLockError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow};

use crate::exit;
use crate::guard::{Entry, guard};
use crate::lifecycle::{LIFECYCLE, State};
use crate::log::Log;
use crate::mps;
use crate::session::{Moment, Session};
use crate::settings::Settings;

/// What the loader and CUPTI need to start up; pages that are not touched cost nothing.
const STACK_BYTES: usize = 512 << 10;

/// How long an exit, or a `cuInit`, waits for a worker that is in the middle of something.
const PATIENCE_AT_EXIT: Duration = Duration::from_secs(1);

/// Of pthread.h, on Linux.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

unsafe extern "C" {
    /// pthread_setcancelstate(3).
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

static SESSION: Mutex<Option<Session>> = Mutex::new(None);
static WORKER: OnceLock<Thread> = OnceLock::new();

/// Whether the settings ask for an event log, which is what scopes are for.
static IS_ABOUT_EVENTS: AtomicBool = AtomicBool::new(false);

/// Arms the library: called inside the host's `cuInit`. A process that is listed already is measured
/// from its first launch.
pub fn start() {
    if arm(true) {
        return;
    }
    // Scopes came first. Our thread does not touch CUDA before it is told of it, so it is soon done
    // with whatever it is at.
    if let Some(mut held) = hold_soon(PATIENCE_AT_EXIT)
        && let Some(session) = held.as_mut()
    {
        session.cuda_begins(Instant::now());
        session.step(Moment::InsideInit, Instant::now());
    }
    wake();
}

/// Arms the library before the first scope of a program, which may never use CUDA. False where the
/// settings ask for no event log: scopes are of no use then, and nothing is begun.
pub fn start_for_scopes() -> bool {
    let asked = Settings::of_this_process().0.events.format.is_some();
    if asked {
        arm(false);
    }
    asked && IS_ABOUT_EVENTS.load(Ordering::Acquire)
}

/// Arms the library if it is not yet; false where it is.
fn arm(has_cuda: bool) -> bool {
    static ONCE: Once = Once::new();
    let mut is_first = false;
    ONCE.call_once(|| {
        is_first = true;
        let (settings, complaints) = Settings::of_this_process();
        let mut log =
            Log::new(settings.logfile.clone(), settings.console_log_enabled, settings.verbose);
        for complaint in complaints {
            log.say(complaint);
        }
        log.say_details(format_args!("warpgauge {} is armed", env!("CARGO_PKG_VERSION")));
        if let Err(error) = exit::register() {
            log.say(format_args!("not armed: {error}"));
            return;
        }
        mps::pipe_of_this_process();
        LIFECYCLE.change(State::Off, State::Armed);
        IS_ABOUT_EVENTS.store(settings.events.format.is_some(), Ordering::Release);
        let mut session = Session::new(settings, log, Instant::now());
        if has_cuda {
            session.cuda_begins(Instant::now());
        }
        session.step(Moment::InsideInit, Instant::now());
        let mut held = hold();
        if let Err(error) = start_thread() {
            session.disable(&format!("no thread: {error}"));
        }
        *held = Some(session);
    });
    is_first
}

/// Starts the thread with every signal blocked: signals are the host's.
fn start_thread() -> io::Result<()> {
    let hosts_mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let started =
        thread::Builder::new().name("warpgauge".to_owned()).stack_size(STACK_BYTES).spawn(|| {
            // A program that cancels every thread it finds would unwind through our frames.
            let mut before = 0;
            // SAFETY: the number may be written.
            unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
            guard(Entry::Worker, (), work);
        });
    // The mask was valid a moment ago, so it can be set again.
    let _restored = hosts_mask.thread_set_mask();
    started.map(drop)
}

fn work() {
    WORKER.get_or_init(thread::current);
    loop {
        let pause = {
            let mut session = hold();
            let Some(session) = session.as_mut() else { return };
            let started = Instant::now();
            let pause = session.step(Moment::OwnThread, started);
            // Counted from where the step began, however long it took.
            let pause = pause.saturating_sub(started.elapsed());
            match LIFECYCLE.state() {
                State::Off => return,
                State::Disabled if session.has_published_everything() => return,
                State::Armed | State::Measuring | State::Disabled => pause,
            }
        };
        thread::park_timeout(pause);
    }
}

/// Has our thread look at once; from any thread, which does not wait.
pub fn wake() {
    if let Some(worker) = WORKER.get() {
        worker.unpark();
    }
}

fn hold() -> MutexGuard<'static, Option<Session>> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Publishes what is left. Called when the process exits, on whatever thread exits: plain files
/// alone, no call to CUDA or CUPTI, which may be gone already.
pub fn finish() {
    if LIFECYCLE.state() == State::Off {
        return;
    }
    LIFECYCLE.switch_off();
    wake();
    // If the worker is stuck in the loader, in CUPTI or on a disk, the host comes first.
    if let Some(mut held) = hold_soon(PATIENCE_AT_EXIT)
        && let Some(session) = held.as_mut()
    {
        session.finish();
    }
}

/// The session, as soon as the worker lets go of it; `None` where it does not for so long.
fn hold_soon(patience: Duration) -> Option<MutexGuard<'static, Option<Session>>> {
    let deadline = Instant::now() + patience;
    loop {
        match SESSION.try_lock() {
            Ok(session) => return Some(session),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return None,
        }
    }
}
