//! One thread's launches.

use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::driver::{Driver, DriverError, Handle};
use crate::report::Report;

/// Launches the shapes in turn, as often or as long as asked for, and adds to the report.
pub(crate) fn launch_all(
    driver: &Driver,
    context: Handle,
    arguments: &Arguments,
    launches: u64,
    report: &mut Report,
) -> Result<(), DriverError> {
    driver.enter(context)?;
    let started = Instant::now();
    let end = arguments.seconds.map(|seconds| started + Duration::from_secs_f64(seconds));
    let mut launched = 0_u64;
    let mut loaded = load(driver, arguments)?;
    let may_go_on = |launched| match end {
        Some(end) => Instant::now() < end,
        None => launched < launches,
    };
    while may_go_on(launched) {
        let turn = usize::try_from(launched).unwrap_or(0) % arguments.kernels.len();
        if arguments.reload && launched > 0 && turn == 0 {
            driver.unload_module(loaded.0)?;
            loaded = load(driver, arguments)?;
        }
        let (Some(shape), Some(function)) = (arguments.kernels.get(turn), loaded.1.get(turn))
        else {
            break;
        };
        match driver.launch(arguments.api, arguments.cluster, *function, shape) {
            Ok(()) => report.launched(turn),
            Err(_) => report.refused(),
        }
        launched += 1;
        keep_pace(arguments.rate, started, launched);
    }
    driver.synchronize()
}

fn load(driver: &Driver, arguments: &Arguments) -> Result<(Handle, Vec<Handle>), DriverError> {
    let module = driver.load_module()?;
    let functions: Result<Vec<Handle>, DriverError> =
        arguments.kernels.iter().map(|shape| driver.function(module, shape)).collect();
    Ok((module, functions?))
}

fn keep_pace(rate: Option<f64>, started: Instant, launched: u64) {
    let Some(rate) = rate else { return };
    #[expect(clippy::cast_precision_loss, reason = "far fewer launches than 2^53")]
    let due = started + Duration::from_secs_f64(launched as f64 / rate);
    std::thread::sleep(due.saturating_duration_since(Instant::now()));
}
