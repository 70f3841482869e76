//! The scripted device.
//!
//! ```text
//! # a comment
//! device name=H100 compute_capability=9.0 multiprocessors=132 warps=64 blocks=32 registers=65536 shared=233472
//! kernel saxpy registers=32 shared=0 instructions=12
//! ```
//!
//! One word is `key=value`; what is left out keeps the value of an H100 or of a small kernel.
//! `shared` is in bytes: per multiprocessor for a device, static per block for a kernel. Several
//! `device` lines are several devices. What one warp of a kernel does:
//!
//! ```text
//! instructions=12   executed instructions
//! global=2 lines=8  those that access global memory, and the cache lines that they touch
//! branches=4 divergent=1
//! spread=0.5        data-dependent: a launch executes between 0.5 and 1.5 of these, evenly spread
//! drift=0.001       each launch executes by so much of these more than the one before
//! duration=1000     nanoseconds that it runs, as its activity record says
//! ```

use std::ffi::CString;
use std::sync::OnceLock;

const BUILT_IN: &str = "\
device name=Stand-in
kernel tiny registers=16
kernel saxpy registers=32 instructions=12 global=3 lines=12 branches=4 divergent=1
kernel register_heavy registers=64 instructions=200
kernel tiled registers=40 shared=16384 instructions=90
";

/// A device: the limits of one multiprocessor, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) name: CString,
    pub(crate) compute_capability: (i32, i32),
    pub(crate) multiprocessors: u32,
    pub(crate) warps: u32,
    pub(crate) blocks: u32,
    pub(crate) registers: u32,
    pub(crate) shared: u32,
}

/// A kernel, found by its name in every module.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kernel {
    pub(crate) name: CString,
    pub(crate) registers: u32,
    pub(crate) shared: u32,
    pub(crate) instructions: u64,
    pub(crate) global: u64,
    pub(crate) lines: u64,
    pub(crate) branches: u64,
    pub(crate) divergent: u64,
    pub(crate) spread: f64,
    pub(crate) drift: f64,
    pub(crate) duration: u64,
}

impl Kernel {
    /// A kernel that does next to nothing.
    pub(crate) fn named(name: CString) -> Self {
        Self {
            name,
            registers: 16,
            shared: 0,
            instructions: 1,
            global: 0,
            lines: 0,
            branches: 0,
            divergent: 0,
            spread: 0.0,
            drift: 0.0,
            duration: 1000,
        }
    }
}

/// What the machine pretends to be.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Script {
    pub(crate) devices: Vec<Device>,
    pub(crate) kernels: Vec<Kernel>,
}

impl Script {
    /// The script of this process: the file named by `STANDIN_CUDA_SCRIPT`, else the built-in one.
    /// A faulty script is a machine without devices, which no test can overlook.
    pub(crate) fn of_this_process() -> &'static Self {
        static SCRIPT: OnceLock<Script> = OnceLock::new();
        SCRIPT.get_or_init(|| {
            let text = match std::env::var_os("STANDIN_CUDA_SCRIPT") {
                Some(path) => std::fs::read_to_string(path).unwrap_or_default(),
                None => BUILT_IN.to_owned(),
            };
            Self::parse(&text).unwrap_or_else(|line| {
                eprintln!("STANDIN_CUDA_SCRIPT: line {line} is neither a device nor a kernel");
                Self::default()
            })
        })
    }

    /// Reads a script; the error is the number of the line that is wrong.
    fn parse(text: &str) -> Result<Self, usize> {
        let mut script = Self::default();
        for (index, line) in text.lines().enumerate() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let understood = match words.next() {
                None => Some(()),
                Some("device") => device(words).map(|device| script.devices.push(device)),
                Some("kernel") => kernel(words).map(|kernel| script.kernels.push(kernel)),
                Some(_) => None,
            };
            understood.ok_or(index + 1)?;
        }
        Ok(script)
    }
}

fn device<'a>(words: impl Iterator<Item = &'a str>) -> Option<Device> {
    let mut device = Device {
        name: c"Stand-in".to_owned(),
        compute_capability: (9, 0),
        multiprocessors: 132,
        warps: 64,
        blocks: 32,
        registers: 65536,
        shared: 228 * 1024,
    };
    for word in words {
        let (key, value) = word.split_once('=')?;
        match key {
            "name" => device.name = CString::new(value).ok()?,
            "compute_capability" => {
                let (major, minor) = value.split_once('.')?;
                device.compute_capability = (major.parse().ok()?, minor.parse().ok()?);
            }
            "multiprocessors" => device.multiprocessors = value.parse().ok()?,
            "warps" => device.warps = value.parse().ok()?,
            "blocks" => device.blocks = value.parse().ok()?,
            "registers" => device.registers = value.parse().ok()?,
            "shared" => device.shared = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(device)
}

fn kernel<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Kernel> {
    let name = CString::new(words.next()?).ok()?;
    let mut kernel = Kernel::named(name);
    for word in words {
        let (key, value) = word.split_once('=')?;
        match key {
            "registers" => kernel.registers = value.parse().ok()?,
            "shared" => kernel.shared = value.parse().ok()?,
            "instructions" => kernel.instructions = value.parse().ok()?,
            "global" => kernel.global = value.parse().ok()?,
            "lines" => kernel.lines = value.parse().ok()?,
            "branches" => kernel.branches = value.parse().ok()?,
            "divergent" => kernel.divergent = value.parse().ok()?,
            "spread" => kernel.spread = value.parse().ok()?,
            "drift" => kernel.drift = value.parse().ok()?,
            "duration" => kernel.duration = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_script_is_understood() {
        let script = Script::parse(BUILT_IN).unwrap();
        assert_eq!(script.devices.len(), 1);
        let saxpy = script.kernels.iter().find(|kernel| kernel.name.as_c_str() == c"saxpy");
        assert_eq!(saxpy.unwrap().instructions, 12);
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert_eq!(Script::parse("device\n\nkernel k registers=many\n"), Err(3));
        assert_eq!(Script::parse("gadget\n"), Err(1));
    }
}
