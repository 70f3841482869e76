//! A program that launches kernels, for the instrument to watch.
//!
//! It finds `libcuda.so.1` at run time, so the same program runs on a GPU and on the stand-in
//! driver. What it launched is its last line of output, as JSON, to be compared with what was
//! published.
//!
//! ```text
//! warpgauge-host --kernel saxpy=108:256:0 --kernel tiled=4x4:16x16:0 --launches 1000
//! ```

mod arguments;
mod copies;
mod driver;
mod graph;
mod hardship;
mod image;
mod launcher;
mod modes;
mod profiler;
mod report;
mod scopes;
mod storm;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match modes::run(&arguments) {
        Ok(()) => ExitCode::from(arguments.exit_code),
        Err(error) => {
            eprintln!("warpgauge-host: {error}");
            ExitCode::from(2)
        }
    }
}
