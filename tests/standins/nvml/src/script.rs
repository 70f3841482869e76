//! The scripted devices.
//!
//! ```text
//! # a comment
//! driver version=580.95.05 nvml=13.580.95.05
//! device uuid=GPU-1 name=H100 total=1000 reserved=100 used=300 gpu=50 memory=20 temperature=60 power=300500 throttling=4
//! process pid=12 used=200
//! process pid=13 graphics
//! mig uuid=MIG-1 total=500 used=100
//! process pid=14 used=100
//! fault nvmlDeviceGetPowerUsage result=3 device=0
//! hang nvmlDeviceGetTemperature device=1
//! ```
//!
//! Bytes, percents, degrees Celsius and milliwatts. A process belongs to the device or the MIG
//! instance above it; one without `used` uses memory that the driver cannot tell. A device with a
//! MIG instance has MIG switched on. `grow=5 grows=2` behind a device: the first two times that its
//! processes are listed or counted, there are five more than the time before.
//!
//! `fault` has a function answer with that `nvmlReturn_t`, `hang` has it never answer; without
//! `device` for all devices. Of a MIG instance, the device is its parent.

use std::sync::OnceLock;

use crate::result::{Result, Return};

const BUILT_IN: &str = "device uuid=GPU-0 name=Stand-in total=1000 used=300 reserved=100\n";

/// All that the script says.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) driver: String,
    pub(crate) nvml: String,
    pub(crate) devices: Vec<Device>,
    faults: Vec<Fault>,
}

/// A device or a MIG instance.
#[derive(Debug, Default)]
pub(crate) struct Device {
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) total: u64,
    pub(crate) reserved: u64,
    pub(crate) used: u64,
    pub(crate) gpu: u32,
    pub(crate) memory: u32,
    pub(crate) temperature: u32,
    pub(crate) power: u32,
    pub(crate) throttling: u64,
    pub(crate) grow: u32,
    pub(crate) grows: u32,
    pub(crate) processes: Vec<Process>,
    pub(crate) instances: Vec<Device>,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) used: Option<u64>,
    pub(crate) graphics: bool,
}

#[derive(Debug)]
struct Fault {
    call: String,
    /// `None` never answers.
    result: Option<Return>,
    device: Option<usize>,
}

/// The script, read at the first call.
pub(crate) fn script() -> &'static Script {
    static SCRIPT: OnceLock<Script> = OnceLock::new();
    SCRIPT.get_or_init(|| {
        let path = std::env::var_os("STANDIN_NVML_SCRIPT");
        let text = path.and_then(|path| std::fs::read_to_string(path).ok());
        parse(text.as_deref().unwrap_or(BUILT_IN))
    })
}

impl Script {
    /// Plays the fault that the script has for a call, if it has one.
    pub(crate) fn play(&self, call: &str, device: Option<usize>) -> Result<()> {
        let fault = self
            .faults
            .iter()
            .find(|fault| fault.call == call && (fault.device.is_none() || fault.device == device));
        match fault.map(|fault| fault.result) {
            None => Ok(()),
            Some(Some(result)) => Err(result),
            Some(None) => loop {
                std::thread::park();
            },
        }
    }
}

fn parse(text: &str) -> Script {
    let mut script =
        Script { driver: "580.95.05".into(), nvml: "13.580.95.05".into(), ..Script::default() };
    for line in text.lines().map(str::trim) {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let what = words.next().unwrap_or("#");
        let words: Vec<_> = words.collect();
        let key = |key: &str| {
            let values = words.iter().filter_map(|word| word.split_once('='));
            values.filter(|(name, _)| *name == key).map(|(_, value)| value).next()
        };
        let number = |name: &str| key(name).and_then(|value| value.parse::<u64>().ok());
        let small = |name: &str| u32::try_from(number(name).unwrap_or(0)).unwrap_or(u32::MAX);
        let text = |name: &str| key(name).unwrap_or_default().to_owned();
        let place = number("device").and_then(|device| usize::try_from(device).ok());
        let call = || words.first().copied().unwrap_or_default().to_owned();
        let device = || Device {
            uuid: text("uuid"),
            name: text("name"),
            total: number("total").unwrap_or(0),
            reserved: number("reserved").unwrap_or(0),
            used: number("used").unwrap_or(0),
            gpu: small("gpu"),
            memory: small("memory"),
            temperature: small("temperature"),
            power: small("power"),
            throttling: number("throttling").unwrap_or(0),
            grow: small("grow"),
            grows: small("grows"),
            ..Device::default()
        };
        match what {
            "driver" => (script.driver, script.nvml) = (text("version"), text("nvml")),
            "device" => script.devices.push(device()),
            "mig" => {
                let parent = script.devices.last_mut();
                parent.into_iter().for_each(|parent| parent.instances.push(device()));
            }
            "process" => {
                let graphics = words.contains(&"graphics");
                let process = Process { pid: small("pid"), used: number("used"), graphics };
                if let Some(device) = script.devices.last_mut() {
                    let Device { instances, processes, .. } = device;
                    let list = instances.last_mut().map_or(processes, |mig| &mut mig.processes);
                    list.push(process);
                }
            }
            "fault" => {
                let result = Some(small("result"));
                script.faults.push(Fault { call: call(), result, device: place });
            }
            "hang" => script.faults.push(Fault { call: call(), result: None, device: place }),
            _ => {}
        }
    }
    script
}
