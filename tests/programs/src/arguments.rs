//! What to launch, how often, and how to end.

use std::ffi::CString;
use std::str::FromStr;

use clap::{Parser, ValueEnum};

/// Launches kernels and says at the end what it launched.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// What to launch, in turn: NAME=GRID:BLOCK or NAME=GRID:BLOCK:SHARED, such as saxpy=108:256 or tiled=4x4:16x16:1024
    #[arg(long = "kernel", default_value = "saxpy=1:256")]
    pub(crate) kernels: Vec<Shape>,
    /// Launches of each thread
    #[arg(long, default_value_t = 1)]
    pub(crate) launches: u64,
    /// Launch for this long instead of a number of times
    #[arg(long, conflicts_with = "launches")]
    pub(crate) seconds: Option<f64>,
    /// Launches per second and thread; as many as possible without it
    #[arg(long)]
    pub(crate) rate: Option<f64>,
    /// Threads that launch, in mode threads
    #[arg(long, default_value_t = 4)]
    pub(crate) threads: u32,
    /// How the program lives and ends
    #[arg(long, value_enum, default_value_t = Mode::Plain)]
    pub(crate) mode: Mode,
    /// The driver function that launches
    #[arg(long, value_enum, default_value_t = Api::Launch)]
    pub(crate) api: Api,
    /// Add a conditional node, in mode graph
    #[arg(long)]
    pub(crate) conditional: bool,
    /// Say that a node of the executable graph is changed, in mode graph with the stand-in
    #[arg(long)]
    pub(crate) change: bool,
    /// Devices to launch on, in mode devices
    #[arg(long, default_value_t = 1)]
    pub(crate) devices: i32,
    /// Copy 4 KiB to the device and back so many times before the launches
    #[arg(long, default_value_t = 0)]
    pub(crate) copies: u64,
    /// Launch inside a scope of this name, in mode plain
    #[arg(long)]
    pub(crate) scope: Option<String>,
    /// Open and close so many scopes before the launches
    #[arg(long, default_value_t = 0)]
    pub(crate) scopes: u64,
    /// Blocks per cluster along x, with --api ex
    #[arg(long)]
    pub(crate) cluster: Option<u32>,
    /// Load the module anew for each round of launches, which gives new functions at old addresses
    #[arg(long)]
    pub(crate) reload: bool,
    /// Say "ready" and wait for a line on standard input before this step; repeatable
    #[arg(long = "pause-before", value_enum)]
    pub(crate) pauses: Vec<Pause>,
    /// What the program does to itself; repeatable
    #[arg(long = "hardship", value_enum)]
    pub(crate) hardships: Vec<Hardship>,
    /// So many threads run at once, in mode threads; all of them without it
    #[arg(long)]
    pub(crate) at_once: Option<u32>,
    /// Bytes of a launching thread's stack, in mode threads
    #[arg(long)]
    pub(crate) stack: Option<usize>,
    /// Signals per second to every thread while it launches
    #[arg(long)]
    pub(crate) signals: Option<f64>,
    /// Calls that a signal interrupts are made again
    #[arg(long)]
    pub(crate) restart: bool,
    /// A profiler in the program has CUPTI's slot while this file is there
    #[arg(long)]
    pub(crate) profiler: Option<String>,
    /// That profiler ends CUPTI for everybody before it takes the slot
    #[arg(long)]
    pub(crate) rude: bool,
    /// How another thread ends the program, in mode cut-short
    #[arg(long, value_enum, default_value_t = End::Exit)]
    pub(crate) end: End,
    /// The exit code of a run that went well
    #[arg(long, default_value_t = 0)]
    pub(crate) exit_code: u8,
}

/// How the program lives and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// One thread, then return from main
    Plain,
    /// Several threads on one context
    Threads,
    /// Fork half way; the child exits at once, the parent goes on
    Fork,
    /// Replace the program half way by a run in plain mode
    Exec,
    /// Call exit() from another thread right after the last launch
    ExitNow,
    /// Launch a graph of nodes that are added one by one
    Graph,
    /// Launch a graph that is captured from a stream
    Capture,
    /// One thread that launches on each device in turn
    Devices,
    /// Call _exit() right after the last launch: no handler runs
    Abrupt,
    /// Several threads launch until the first one ends the program in their midst; no report
    CutShort,
}

/// How a program ends that does not return from main.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum End {
    /// exit(): handlers run
    Exit,
    /// _exit()
    Immediate,
    /// abort(), which is SIGABRT
    Abort,
}

/// What a program may do to itself. Those that are not said to come before cuInit come after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hardship {
    /// Before cuInit: close standard input, output and error, and go on writing to them
    ClosedStreams,
    /// Before cuInit: become nobody, who may start no thread (needs root)
    NoThreads,
    /// Go to another folder
    Chdir,
    /// Go where no file is (needs root)
    Chroot,
    /// Become nobody (needs root)
    Setuid,
    /// Forget the environment
    ClearEnvironment,
    /// Close every descriptor but the standard ones, thousands of times a second
    CloseFiles,
    /// Allow no descriptor more
    NoFiles,
    /// Allow no file to grow
    NoFileSize,
    /// Close the injected library, as often as it takes
    Unload,
    /// Cancel the threads of the injected library
    Cancel,
    /// Forbid every thread to open a file
    Sandbox,
}

/// The driver function that launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Api {
    Launch,
    LaunchPtsz,
    Cooperative,
    CooperativePtsz,
    Ex,
    ExPtsz,
}

/// A step before which the program waits to be told to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pause {
    Init,
    Launch,
    Exit,
}

/// A kernel and the shape of its launches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) kernel: CString,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub(crate) shared: u32,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not NAME=GRID:BLOCK[:SHARED]");
        let (kernel, shape) = text.split_once('=').ok_or_else(wrong)?;
        let mut parts = shape.split(':');
        let grid = parts.next().and_then(extent).ok_or_else(wrong)?;
        let block = parts.next().and_then(extent).ok_or_else(wrong)?;
        let shared = parts.next().map_or(Ok(0), str::parse).map_err(|_| wrong())?;
        let kernel = CString::new(kernel).map_err(|_| wrong())?;
        if parts.next().is_some() {
            return Err(wrong());
        }
        Ok(Self { kernel, grid, block, shared })
    }
}

/// `4`, `4x2` or `4x2x1`.
fn extent(text: &str) -> Option<[u32; 3]> {
    let mut lengths = [1; 3];
    let mut parts = text.split('x');
    for length in &mut lengths {
        match parts.next() {
            Some(part) => *length = part.parse().ok()?,
            None => break,
        }
    }
    parts.next().is_none().then_some(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_with_one_to_three_dimensions() {
        let shape: Shape = "tiled=4x2:16x16:1024".parse().unwrap();
        assert_eq!((shape.grid, shape.block, shape.shared), ([4, 2, 1], [16, 16, 1], 1024));
        assert_eq!("tiny=1:32".parse::<Shape>().unwrap().shared, 0);
        for wrong in ["tiny", "tiny=1", "tiny=1:a", "tiny=1:32:0:0", "tiny=1x1x1x1:32"] {
            assert!(wrong.parse::<Shape>().is_err(), "{wrong}");
        }
    }
}
