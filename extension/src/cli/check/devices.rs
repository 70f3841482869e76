//! What the management library and the devices say, and what they do not.

use super::{Level, Remarks};
use crate::devices::fault::Fault;
use crate::devices::{Library, sampling};
use crate::setup::Setup;

const ABOUT: &str = "devices";

pub(super) fn check(setup: &Setup, remarks: &mut Remarks) {
    let Some(sampling) = sampling::begin(&setup.config.devices) else {
        return remarks.add(Level::Note, ABOUT, "devices.enabled is false: no device is asked");
    };
    let sample = sampling.finish();
    match &sample.library {
        Library::Absent(words) => remarks.add(
            Level::Note,
            ABOUT,
            format!(
                "no management library (NVML), so no figures of devices; name it in devices.library if there is one: {words}"
            ),
        ),
        Library::Unusable => {}
        Library::Loaded(versions) => {
            let instances = sample.devices.iter().filter(|device| device.parent.is_some()).count();
            let gpus = sample.devices.len() - instances;
            let divided = match instances {
                0 => String::new(),
                instances => format!(" and {instances} MIG instances"),
            };
            let (driver, nvml) = (&versions.driver, &versions.nvml);
            let message = format!("{gpus} GPUs{divided}; driver {driver}, NVML {nvml}");
            remarks.add(Level::Good, ABOUT, message);
        }
    }
    for (reason, skip) in sample.faults.iter() {
        let level = if Fault::is_normal_reason(reason) { Level::Note } else { Level::Warning };
        let (count, example) = (skip.count, &skip.example);
        remarks.add(level, ABOUT, format!("{count} x {reason}, the first: {example}"));
    }
    if let Some(output) = &setup.config.telemetry.output
        && output.parent().is_some_and(|folder| !folder.is_dir())
    {
        let message = format!("there is no folder for {}; make it", output.display());
        remarks.add(Level::Error, "telemetry.output", message);
    }
}
