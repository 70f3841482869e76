//! What the log says about kernels: the most launched ones, with what was measured of them.
//!
//! ```text
//! kernels: 120000 launches of 14 kernels; 98.2 % of them of a shape that was measured
//! kernels: 80000 on device 0, 40000 on device 1
//! kernels: 1. 80000 launches (66.7 %), occupancy 75 %, 1200 instructions: gemm(float*, float*)
//! ```
//!
//! When the process is taken off the list, when it exits, and once an hour in between: a few lines
//! each time, whatever the program does.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::time::{Duration, Instant};

use warpgauge_wire::Function;

use crate::estimator::Knowledge;
use crate::kernel_names::{Kernel, shown};
use crate::launch::KEY_WORDS;
use crate::log::Log;
use crate::observer;
use crate::probes::{COUNTED, COUNTED_PROBES};
use crate::sampling::Sampling;

/// At most so often while the process stays listed.
const INTERVAL: Duration = Duration::from_secs(3600);

/// The kernels that are named.
const MOST_NAMED: usize = 10;

/// Kernels that are kept apart; launches of others count together.
const MAX_KERNELS: usize = 4096;

/// Launches by kernel since the process was listed.
#[derive(Debug)]
pub struct Kernels {
    mangled_names: bool,
    /// Counted since the names were last looked up.
    fresh: HashMap<Kernel, Count>,
    /// The linker's names of the kernels that may still be launched.
    names: HashMap<Kernel, Box<[u8]>>,
    counts: HashMap<Box<[u8]>, Count>,
    /// Kernels whose name could not be told, or that found no room.
    others: Count,
    /// Launches by the device's ordinal.
    by_device: BTreeMap<u32, u64>,
    next_report: Instant,
}

#[derive(Debug, Default, Clone, Copy)]
struct Count {
    launches: u64,
    /// Launches whose occupancy is known, and the sum of these occupancies in percent.
    occupied: u64,
    occupancy: f64,
}

impl Count {
    fn add(&mut self, more: &Self) {
        self.launches = self.launches.saturating_add(more.launches);
        self.occupied = self.occupied.saturating_add(more.occupied);
        self.occupancy += more.occupancy;
    }
}

impl Kernels {
    /// Nothing counted. Names are shown as the linker sees them if `mangled_names`.
    #[must_use]
    pub fn new(mangled_names: bool, now: Instant) -> Self {
        Self {
            mangled_names,
            fresh: HashMap::new(),
            names: HashMap::new(),
            counts: HashMap::new(),
            others: Count::default(),
            by_device: BTreeMap::new(),
            next_report: now + INTERVAL,
        }
    }

    /// Counts launches of a shape ([`crate::launch::Launch::key`]).
    pub fn count(&mut self, shape: &[u64; KEY_WORDS], occupancy: Option<f64>, launches: u64) {
        #[expect(clippy::cast_precision_loss, reason = "a mean needs no more digits")]
        let occupied = occupancy.map(|percent| (launches, percent * launches as f64));
        let (occupied, occupancy) = occupied.unwrap_or_default();
        let count = Count { launches, occupied, occupancy };
        self.fresh.entry(kernel_of(shape)).or_default().add(&count);
        let [context, ..] = *shape;
        if let Some(device) = observer::contexts().device_of(context) {
            *self.by_device.entry(device).or_default() += launches;
        }
    }

    /// Looks up the names of what was counted.
    pub fn settle(&mut self) {
        self.names.extend(observer::kernel_names().take());
        for (kernel, count) in self.fresh.drain() {
            let Some(name) = self.names.get(&kernel) else {
                self.others.add(&count);
                continue;
            };
            if let Some(known) = self.counts.get_mut(name) {
                known.add(&count);
            } else if self.counts.len() < MAX_KERNELS {
                self.counts.insert(name.clone(), count);
            } else {
                self.others.add(&count);
            }
        }
        if self.names.len() > MAX_KERNELS {
            // Handles of earlier generations mean nothing any more.
            let newest = self.names.keys().map(|(_, generation)| *generation).max();
            self.names.retain(|(_, generation), _| Some(*generation) == newest);
        }
    }

    /// Says what there is to say if it is time for it.
    pub fn report_if_due(&mut self, sampling: &Sampling, now: Instant, log: &mut Log) {
        if now >= self.next_report {
            self.report(sampling, true, log);
            self.next_report = now + INTERVAL;
        }
    }

    /// Says what there is to say. Only a thread with room on its stack may demangle.
    pub fn report(&self, sampling: &Sampling, may_demangle: bool, log: &mut Log) {
        let mut counts: Vec<(&[u8], &Count)> =
            self.counts.iter().map(|(name, count)| (name.as_ref(), count)).collect();
        let total = counts.iter().fold(self.others.launches, |sum, (_, c)| sum + c.launches);
        if total == 0 {
            return;
        }
        let mut line = format!("kernels: {total} launches of {} kernels", counts.len());
        if let Some(launches) = sampling.launches() {
            let percent = percent(launches.measured, launches.surveyed);
            add(&mut line, format_args!("; {percent} % of them of a shape that was measured"));
        }
        log.say(line);
        if self.by_device.len() > 1 {
            let devices = self.by_device.iter();
            let devices: Vec<_> =
                devices.map(|(device, n)| format!("{n} on device {device}")).collect();
            log.say(format_args!("kernels: {}", devices.join(", ")));
        }
        counts.sort_by(|a, b| b.1.launches.cmp(&a.1.launches).then(a.0.cmp(b.0)));
        counts.truncate(MOST_NAMED);
        let mut means = self.means(sampling, &counts);
        for (place, (name, count)) in counts.iter().enumerate() {
            let percent = percent(count.launches, total);
            let mut line =
                format!("kernels: {}. {} launches ({percent} %)", place + 1, count.launches);
            if count.occupied > 0 {
                #[expect(clippy::cast_precision_loss, reason = "a mean needs no more digits")]
                let mean = count.occupancy / count.occupied as f64;
                add(&mut line, format_args!(", occupancy {mean:.1} %"));
            }
            let means = means.remove(name).unwrap_or_default();
            for (probe, mean) in COUNTED.iter().zip(means) {
                match (probe.function(), mean.value()) {
                    (_, None) => {}
                    (Function::Instructions, Some(mean)) => {
                        add(&mut line, format_args!(", {mean:.0} instructions"));
                    }
                    (function, Some(mean)) => {
                        add(&mut line, format_args!(", {function} {mean:.1} %"))
                    }
                }
            }
            let name = shown(name, may_demangle && !self.mangled_names);
            log.say(format_args!("{line}: {name}"));
        }
        let named: u64 = counts.iter().map(|(_, count)| count.launches).sum();
        if named < total {
            log.say(format_args!("kernels: {} launches of others", total - named));
        }
    }

    /// The means of what was measured, of the kernels of these names: per shape, weighing its share
    /// of the launches.
    fn means(
        &self,
        sampling: &Sampling,
        wanted: &[(&[u8], &Count)],
    ) -> HashMap<&[u8], [Mean; COUNTED_PROBES]> {
        let wanted: HashSet<&[u8]> = wanted.iter().map(|(name, _)| *name).collect();
        let mut means: HashMap<&[u8], [Mean; COUNTED_PROBES]> = HashMap::new();
        for (key, shape) in sampling.shapes() {
            let Some(name) = self.names.get(&kernel_of(key)).map(AsRef::as_ref) else { continue };
            if !wanted.contains(name) {
                continue;
            }
            for (mean, knowledge) in means.entry(name).or_default().iter_mut().zip(shape.knowledge)
            {
                mean.add(&knowledge, shape.share);
            }
        }
        means
    }
}

/// A weighted mean.
#[derive(Debug, Default, Clone, Copy)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, knowledge: &Knowledge, share: f64) {
        if let Knowledge::Value { mean, .. } = knowledge {
            // A shape that was not launched for long still counts where it is the only one.
            let weight = share.max(1e-100);
            self.sum += weight * mean;
            self.weight += weight;
        }
    }

    fn value(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

fn kernel_of(shape: &[u64; KEY_WORDS]) -> Kernel {
    let [_, function, _, _, _, generation] = *shape;
    (function, generation)
}

fn percent(part: u64, whole: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    format!("{percent:.1}")
}

fn add(line: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _written = line.write_fmt(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn report_of(kernels: &Kernels) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::new(Some(path.clone()), false, false);
        kernels.report(&Sampling::new(&Settings::default(), Instant::now()), true, &mut log);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| line.splitn(3, ' ').skip(2).collect()).collect()
    }

    #[test]
    fn the_most_launched_kernels_are_named_and_the_others_counted() {
        let now = Instant::now();
        let mut kernels = Kernels::new(false, now);
        assert_eq!(report_of(&kernels), [""; 0], "nothing was launched");
        for function in 0..30_u64 {
            let name = format!("_Z2k{}v", function % 10).into_bytes();
            // The same kernel of a module that was loaded again is one kernel.
            kernels.names.insert((function, function / 15), name.into());
            kernels.count(&[1, function, 0, 0, 0, function / 15], Some(50.0), function + 1);
        }
        kernels.count(&[1, 99, 0, 0, 0, 0], None, 7);
        kernels.settle();
        let lines = report_of(&kernels);
        assert_eq!(lines[0], "kernels: 472 launches of 10 kernels");
        assert_eq!(lines[1], "kernels: 1. 60 launches (12.7 %), occupancy 50.0 %: k9()");
        assert_eq!(lines.len(), 1 + MOST_NAMED + 1);
        assert_eq!(lines.last().unwrap(), "kernels: 7 launches of others");
    }

    #[test]
    fn names_and_kernels_are_bounded() {
        let mut kernels = Kernels::new(true, Instant::now());
        for function in 0..3 * MAX_KERNELS as u64 {
            let kernel = (function, function / 100);
            kernels.names.insert(kernel, format!("k{function}").into_bytes().into());
            kernels.count(&[1, function, 0, 0, 0, function / 100], None, 1);
            if function % 100 == 0 {
                kernels.settle();
            }
        }
        kernels.settle();
        assert!(kernels.names.len() <= MAX_KERNELS && kernels.counts.len() <= MAX_KERNELS);
        let lines = report_of(&kernels);
        assert!(lines[0].starts_with(&format!("kernels: {} launches", 3 * MAX_KERNELS)));
        assert!(lines.len() <= MOST_NAMED + 2, "{lines:?}");
    }
}
