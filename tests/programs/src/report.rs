//! What was launched, as one line of JSON.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use crate::arguments::Shape;

/// Launches per shape, and those that the driver refused.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    counts: Vec<u64>,
    refused: u64,
}

impl Report {
    pub(crate) fn new(shapes: usize) -> Self {
        Self { counts: vec![0; shapes], refused: 0 }
    }

    pub(crate) fn launched(&mut self, shape: usize) {
        if let Some(count) = self.counts.get_mut(shape) {
            *count += 1;
        }
    }

    pub(crate) fn refused(&mut self) {
        self.refused += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.refused += other.refused;
    }

    /// `{"pid":7,"refused":0,"instructions":96,"launches":[{"kernel":"saxpy","grid":[1,1,1],...,"count":3}]}`
    pub(crate) fn print(&self, shapes: &[Shape], executed_instructions: Option<u64>) {
        let mut line = format!(r#"{{"pid":{},"refused":{}"#, std::process::id(), self.refused);
        if let Some(instructions) = executed_instructions {
            // Writing to a string does not fail.
            let _written = write!(line, r#","instructions":{instructions}"#);
        }
        let mut separator = r#","launches":["#;
        for (shape, count) in shapes.iter().zip(&self.counts) {
            let Shape { kernel, grid, block, shared } = shape;
            // Writing to a string does not fail.
            let _written = write!(
                line,
                r#"{separator}{{"kernel":{kernel:?},"grid":{grid:?},"block":{block:?},"shared":{shared},"count":{count}}}"#
            );
            separator = ",";
        }
        line.push_str("]}\n");
        let mut output = io::stdout().lock();
        // A reader that has gone does not change what the program was asked to do.
        let _printed = output.write_all(line.as_bytes()).and_then(|()| output.flush());
    }
}
