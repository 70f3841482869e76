//! The ways in which a program lives and ends.
#![allow(unsafe_code, reason = "fork, exec and exit are C functions that end or double a process")]

use std::ffi::{CString, OsStr};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use nix::libc;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, execv, fork};

use crate::arguments::{Arguments, End, Mode, Pause};
use crate::copies::copy;
use crate::driver::{Driver, DriverError, Handle};
use crate::graph::launch_graphs;
use crate::hardship::{Hardships, Moment};
use crate::launcher::launch_all;
use crate::profiler::Profiler;
use crate::report::Report;
use crate::scopes::Scopes;
use crate::storm::Storm;

/// What ends a run early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error("{0}")]
    System(#[from] nix::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("a launching thread panicked")]
    Thread,
    #[error("a thread has no handle")]
    NoHandle,
    #[error("somebody took {0} bytes that were written to closed streams")]
    Streams(u64),
}

/// Does what the arguments ask for.
pub(crate) fn run(arguments: &Arguments) -> Result<(), RunError> {
    let driver = Driver::load()?;
    pause(arguments, Pause::Init);
    let mut hardships = Hardships::default();
    hardships.begin(&arguments.hardships, Moment::BeforeInit)?;
    driver.init()?;
    let context = driver.context(0)?;
    driver.enter(context)?;
    if let Some(wanted) = &arguments.profiler {
        Profiler::begin(wanted.clone(), arguments.rude)?;
    }
    hardships.begin(&arguments.hardships, Moment::BeforeLaunches)?;
    pause(arguments, Pause::Launch);
    copy(&driver, arguments.copies)?;
    if let Some(scopes) = Scopes::of_this_process()?.filter(|_| arguments.scopes > 0) {
        for _ in 0..arguments.scopes {
            scopes.begin("many");
            scopes.end();
        }
    }
    let storm = arguments.signals.map(|rate| Storm::begin(rate, arguments.restart));
    let mut report = Report::new(arguments.kernels.len());
    match arguments.mode {
        Mode::Plain | Mode::Threads => {
            if arguments.mode == Mode::Plain {
                let scopes = Scopes::of_this_process()?.zip(arguments.scope.as_deref());
                scopes.iter().for_each(|(scopes, name)| scopes.begin(name));
                launch_all(&driver, context, arguments, arguments.launches, &mut report)?;
                scopes.iter().for_each(|(scopes, _)| scopes.end());
            } else {
                launch_in_threads(&driver, context, arguments, &mut report)?;
            }
            let taken = hardships.end()?;
            storm.map(Storm::end).transpose()?;
            report.print(&arguments.kernels, driver.executed_instructions());
            if taken > 0 {
                return Err(RunError::Streams(taken));
            }
        }
        Mode::CutShort => cut_short(&driver, context, arguments)?,
        Mode::Graph | Mode::Capture => {
            launch_graphs(&driver, arguments, &mut report)?;
            report.print(&arguments.kernels, driver.executed_instructions());
        }
        Mode::Devices => {
            for ordinal in 0..arguments.devices {
                let context = driver.context(ordinal)?;
                launch_all(&driver, context, arguments, arguments.launches, &mut report)?;
            }
            report.print(&arguments.kernels, driver.executed_instructions());
        }
        Mode::Fork => fork_half_way(&driver, context, arguments, &mut report)?,
        Mode::Exec => {
            launch_all(&driver, context, arguments, arguments.launches / 2, &mut report)?;
            report.print(&arguments.kernels, driver.executed_instructions());
            pause(arguments, Pause::Exit);
            exec_plainly(arguments)?;
        }
        Mode::ExitNow => exit_from_a_thread(&driver, context, arguments, &mut report)?,
        Mode::Abrupt => {
            launch_all(&driver, context, arguments, arguments.launches, &mut report)?;
            report.print(&arguments.kernels, driver.executed_instructions());
            pause(arguments, Pause::Exit);
            // SAFETY: ends the process without running anything of it.
            unsafe { libc::_exit(arguments.exit_code.into()) };
        }
    }
    pause(arguments, Pause::Exit);
    Ok(())
}

/// Says "ready" and waits for a line, or for the end of standard input.
fn pause(arguments: &Arguments, point: Pause) {
    if !arguments.pauses.contains(&point) {
        return;
    }
    println!("ready");
    let _flushed = io::stdout().flush();
    let mut line = String::new();
    let _read = io::stdin().read_line(&mut line);
}

fn launch_in_threads(
    driver: &Driver,
    context: Handle,
    arguments: &Arguments,
    report: &mut Report,
) -> Result<(), RunError> {
    let mut left = arguments.threads;
    while left > 0 {
        let wave = left.min(arguments.at_once.unwrap_or(left));
        left -= wave;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..wave)
                .map(|_| {
                    let mut own = Report::new(arguments.kernels.len());
                    let mut builder = std::thread::Builder::new();
                    if let Some(bytes) = arguments.stack {
                        builder = builder.stack_size(bytes);
                    }
                    builder.spawn_scoped(scope, move || {
                        launch_all(driver, context, arguments, arguments.launches, &mut own)?;
                        Ok::<Report, DriverError>(own)
                    })
                })
                .collect();
            for thread in threads {
                report.merge(&thread?.join().map_err(|_| RunError::Thread)??);
            }
            Ok::<(), RunError>(())
        })?;
    }
    Ok(())
}

/// Ends the program while other threads launch.
fn cut_short(driver: &Driver, context: Handle, arguments: &Arguments) -> Result<(), RunError> {
    let code = arguments.exit_code.into();
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads {
            let mut own = Report::new(arguments.kernels.len());
            scope.spawn(move || launch_all(driver, context, arguments, u64::MAX, &mut own));
        }
        std::thread::sleep(Duration::from_secs_f64(arguments.seconds.unwrap_or(1.0) / 2.0));
        match arguments.end {
            // SAFETY: handlers run while the other threads launch, as in any program that ends so.
            End::Exit => unsafe { libc::exit(code) },
            // SAFETY: nothing of the program runs any more.
            End::Immediate => unsafe { libc::_exit(code) },
            // SAFETY: raises SIGABRT, as a failed assertion in C does.
            End::Abort => unsafe { libc::abort() },
        }
    })
}

fn fork_half_way(
    driver: &Driver,
    context: Handle,
    arguments: &Arguments,
    report: &mut Report,
) -> Result<(), RunError> {
    let half = arguments.launches / 2;
    launch_all(driver, context, arguments, half, report)?;
    // SAFETY: the child calls nothing but sleep and exit.
    match unsafe { fork() }? {
        ForkResult::Child => {
            // Long enough for a flush, if a thread of the parent's had come along.
            std::thread::sleep(Duration::from_millis(1200));
            // SAFETY: runs the exit handlers, which is what this mode is for.
            unsafe { libc::exit(0) };
        }
        ForkResult::Parent { child } => {
            launch_all(driver, context, arguments, arguments.launches - half, report)?;
            waitpid(child, None)?;
        }
    }
    report.print(&arguments.kernels, driver.executed_instructions());
    Ok(())
}

/// Runs the same program again, without the options that led here.
fn exec_plainly(arguments: &Arguments) -> Result<(), RunError> {
    let mut words = vec![CString::from(c"warpgauge-host")];
    let own: Vec<_> = std::env::args_os().skip(1).collect();
    let mut own = own.iter();
    while let Some(word) = own.next() {
        match word.as_os_str().to_str() {
            Some("--mode" | "--pause-before" | "--launches") => drop(own.next()),
            Some(word) if word.starts_with("--mode=") || word.starts_with("--launches=") => {}
            _ => words.extend(c_string(word)),
        }
    }
    let rest = arguments.launches - arguments.launches / 2;
    words.extend(c_string(OsStr::new(&format!("--launches={rest}"))));
    execv(c"/proc/self/exe", &words)?;
    Ok(())
}

fn c_string(word: &OsStr) -> Option<CString> {
    CString::new(word.as_bytes()).ok()
}

fn exit_from_a_thread(
    driver: &Driver,
    context: Handle,
    arguments: &Arguments,
    report: &mut Report,
) -> Result<(), RunError> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            launch_all(driver, context, arguments, arguments.launches, report)?;
            report.print(&arguments.kernels, driver.executed_instructions());
            // SAFETY: ends the process while the main thread waits; its handlers run here.
            unsafe { libc::exit(arguments.exit_code.into()) };
            #[expect(unreachable_code, reason = "gives the closure its type")]
            Ok::<(), DriverError>(())
        });
        thread.join().map_err(|_| RunError::Thread)??;
        Ok(())
    })
}
