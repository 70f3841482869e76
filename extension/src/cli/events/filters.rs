//! Which records of a trace are wanted, as arguments.

use clap::Args;
use regex::RegexSet;
use warpgauge_formats::trace::Id;

use crate::traces::filter::{Filter, Length, Window};

/// The heading under which they stand.
const HEADING: &str = "Filters of traces";

/// What is wanted of a trace. All that is asked must hold; of several of one kind one is enough.
#[derive(Debug, Args)]
pub(super) struct Filters {
    /// Events that run between two times, if only in part: 1.5s..2s behind the first event, or
    /// instants such as 2026-01-31T12:00:00.5Z or @ and nanoseconds since the epoch; either may be
    /// left out
    #[arg(help_heading = HEADING, long = "window", value_name = "START..END")]
    windows: Vec<Window>,
    /// Events on this device
    #[arg(help_heading = HEADING, long = "device", value_name = "N", allow_negative_numbers = true)]
    devices: Vec<i64>,
    /// Events on this stream
    #[arg(help_heading = HEADING, long = "stream", value_name = "N", allow_negative_numbers = true)]
    streams: Vec<i64>,
    /// Events on this thread, besides those on the devices and streams
    #[arg(help_heading = HEADING, long = "thread", value_name = "ID")]
    threads: Vec<String>,
    /// Events of this category: cpu_op, kernel, gpu_memcpy
    #[arg(help_heading = HEADING, long = "category", value_name = "NAME")]
    categories: Vec<String>,
    /// Events whose name this regular expression matches, anywhere
    #[arg(help_heading = HEADING, long = "name", value_name = "REGEX", value_parser = pattern)]
    names: Vec<String>,
    /// Slices that run so long: 10us
    #[arg(help_heading = HEADING, long, value_name = "TIME")]
    min_duration: Option<Length>,
}

fn pattern(text: &str) -> Result<String, regex::Error> {
    regex::Regex::new(text).map(|_| text.to_owned())
}

impl Filters {
    /// Whether nothing is asked.
    pub(super) fn is_empty(&self) -> bool {
        self.filter().is_ok_and(|filter| filter.is_empty())
    }

    /// The filter that they mean.
    ///
    /// # Errors
    /// Where the expressions are too large together.
    pub(super) fn filter(&self) -> Result<Filter, regex::Error> {
        let thread = |id: &String| match id.parse() {
            Ok(number) => Id::Number(number),
            Err(_) => Id::Text(id.clone().into()),
        };
        Ok(Filter {
            windows: self.windows.clone(),
            devices: self.devices.clone(),
            streams: self.streams.clone(),
            threads: self.threads.iter().map(thread).collect(),
            categories: self.categories.clone(),
            names: RegexSet::new(&self.names)?,
            min_duration: self.min_duration,
        })
    }
}
