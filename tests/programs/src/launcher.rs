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
    let mut pace = Pace::begin(arguments, launches);
    let mut loaded = load(driver, arguments)?;
    while pace.may_go_on() {
        let launched = pace.launched;
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
        pace.launched();
    }
    driver.synchronize()
}

fn load(driver: &Driver, arguments: &Arguments) -> Result<(Handle, Vec<Handle>), DriverError> {
    let module = driver.load_module()?;
    let functions: Result<Vec<Handle>, DriverError> =
        arguments.kernels.iter().map(|shape| driver.function(module, shape)).collect();
    Ok((module, functions?))
}

/// How many launches there were, and when the next one is due.
pub(crate) struct Pace {
    started: Instant,
    end: Option<Instant>,
    most: u64,
    rate: Option<f64>,
    launched: u64,
}

impl Pace {
    /// None so far, of so many where the arguments do not give a time.
    pub(crate) fn begin(arguments: &Arguments, most: u64) -> Self {
        let started = Instant::now();
        let end = arguments.seconds.map(|seconds| started + Duration::from_secs_f64(seconds));
        Self { started, end, most, rate: arguments.rate, launched: 0 }
    }

    /// Whether there is to be another one.
    pub(crate) fn may_go_on(&self) -> bool {
        match self.end {
            Some(end) => Instant::now() < end,
            None => self.launched < self.most,
        }
    }

    /// There was one; waits until the next one is due.
    pub(crate) fn launched(&mut self) {
        self.launched += 1;
        let Some(rate) = self.rate else { return };
        #[expect(clippy::cast_precision_loss, reason = "far fewer launches than 2^53")]
        let due = self.started + Duration::from_secs_f64(self.launched as f64 / rate);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}
