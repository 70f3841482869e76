//! The ways in which a program lives and ends.
#![allow(unsafe_code, reason = "fork, exec and exit are C functions that end or double a process")]

use std::ffi::{CString, OsStr};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use nix::libc;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, execv, fork};

use crate::arguments::{Arguments, Mode, Pause};
use crate::driver::{Driver, DriverError, Handle};
use crate::graph::launch_graphs;
use crate::launcher::launch_all;
use crate::report::Report;

/// What ends a run early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error("{0}")]
    System(#[from] nix::Error),
    #[error("a launching thread panicked")]
    Thread,
}

/// Does what the arguments ask for.
pub(crate) fn run(arguments: &Arguments) -> Result<(), RunError> {
    let driver = Driver::load()?;
    pause(arguments, Pause::Init);
    driver.init()?;
    let context = driver.context(0)?;
    driver.enter(context)?;
    pause(arguments, Pause::Launch);
    let mut report = Report::new(arguments.kernels.len());
    match arguments.mode {
        Mode::Plain => {
            launch_all(&driver, context, arguments, arguments.launches, &mut report)?;
            report.print(&arguments.kernels, driver.executed_instructions());
        }
        Mode::Threads => {
            launch_in_threads(&driver, context, arguments, &mut report)?;
            report.print(&arguments.kernels, driver.executed_instructions());
        }
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
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.threads)
            .map(|_| {
                let mut own = Report::new(arguments.kernels.len());
                scope.spawn(move || {
                    launch_all(driver, context, arguments, arguments.launches, &mut own)?;
                    Ok::<Report, DriverError>(own)
                })
            })
            .collect();
        for thread in threads {
            report.merge(&thread.join().map_err(|_| RunError::Thread)??);
        }
        Ok(())
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
