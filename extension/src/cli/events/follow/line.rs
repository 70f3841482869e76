//! An event as one line for people.
//!
//! ```text
//! 2024-02-01T15:08:42.000000001Z  trainer/4242  kernel      gemm  12.300 us  128x1x1 of 256x1x1
//! 2024-02-01T15:08:42.000100001Z  trainer/4242  scope_end   step  8.100 ms
//! 2024-02-01T15:08:42.000200001Z  trainer/4242  copy        HtoD  40.000 us  4.0 KiB
//! ```

use std::borrow::Cow;
use std::io::{self, Write};

use warpgauge_formats::event::{Device, Dim3, Event, Kernel, Source, What};
use warpgauge_formats::time::{Span, Timestamp};

use super::filter::name;
use crate::cli::events::units::{bytes, instant, time};
use crate::cli::printable::printable;
use crate::cli::screen::Screen;

/// Letters of a name that are shown at least, however narrow the terminal is.
const SHORTEST_NAME: usize = 24;

/// How lines look.
pub(super) struct Lines {
    color: bool,
    /// Letters of a line; `None` where the output is no terminal.
    width: Option<usize>,
}

/// Styles of the terminal (ECMA-48, "Select Graphic Rendition").
const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const CYAN: &str = "\x1b[36m";
const GREEN: &str = "\x1b[32m";
const PLAIN: &str = "\x1b[0m";

impl Lines {
    pub(super) fn new(screen: &Screen) -> Self {
        Self { color: screen.color, width: screen.width.map(usize::from) }
    }

    pub(super) fn write(&self, event: &Event<'_>, out: &mut dyn Write) -> io::Result<()> {
        let what = &event.what;
        let time_of = began(what).map_or_else(|| "-".to_owned(), instant);
        let source = source(&event.source);
        let kind = format!("{:<14}", what.name());
        let duration = duration(what).map(|span| time(span.0.into())).unwrap_or_default();
        let more = more(what);
        let known = [time_of.as_str(), &source, &kind, &duration, &more];
        let taken: usize = known.iter().map(|part| part.chars().count() + 2).sum();
        let name = name(what).map(printable).unwrap_or_default();
        let name = self.shortened(&name, taken);
        let parts = [
            (DIM, time_of.as_str()),
            (CYAN, &source),
            (GREEN, &kind),
            (BOLD, &name),
            ("", &duration),
            (DIM, &more),
        ];
        let mut separator = "";
        for (style, part) in parts.into_iter().filter(|(_, part)| !part.is_empty()) {
            out.write_all(separator.as_bytes())?;
            match self.color && !style.is_empty() {
                true => write!(out, "{style}{part}{PLAIN}")?,
                false => out.write_all(part.as_bytes())?,
            }
            separator = "  ";
        }
        writeln!(out)
    }

    /// A name that fits the line with what else stands in it.
    fn shortened<'n>(&self, name: &'n str, taken: usize) -> Cow<'n, str> {
        let Some(width) = self.width else { return Cow::Borrowed(name) };
        let room = width.saturating_sub(taken).max(SHORTEST_NAME);
        match name.char_indices().nth(room) {
            None => Cow::Borrowed(name),
            Some(_) => Cow::Owned(name.chars().take(room - 1).chain(['…']).collect()),
        }
    }
}

/// `app/pid`; where the log does not say, the session in place of the program.
fn source(source: &Source<'_>) -> String {
    let who = source.app.as_deref().or(source.session.as_deref()).filter(|who| !who.is_empty());
    let who = printable(who.unwrap_or("-"));
    source.pid.map_or_else(|| who.to_string(), |pid| format!("{who}/{pid}"))
}

fn began(what: &What<'_>) -> Option<Timestamp> {
    Some(match what {
        What::Start(start) => start.time,
        What::End(time) => *time,
        What::Sampling(sampling) => sampling.time,
        What::Kernel(kernel) => kernel.start,
        What::Copy(copy) => copy.start,
        What::Scope(scope) => scope.time,
        What::Profile(sample) => sample.time,
        What::System(system) => system.time,
        What::KernelDetails(_) => return None,
    })
}

fn duration(what: &What<'_>) -> Option<Span> {
    match what {
        What::Kernel(kernel) => Some(kernel.duration),
        What::Copy(copy) => Some(copy.duration),
        What::Scope(scope) => scope.duration,
        _ => None,
    }
}

/// What else of an event helps a reader.
fn more(what: &What<'_>) -> String {
    match what {
        What::Kernel(kernel) => shape(kernel),
        What::KernelDetails(details) => {
            details.correlation.map(|id| format!("correlation {id}")).unwrap_or_default()
        }
        What::Copy(copy) => bytes(copy.bytes.into()),
        What::Profile(sample) => {
            let metric = sample.metric.as_deref().or(sample.stall_name.as_deref());
            let value = sample.value.map(|value| value.to_string()).unwrap_or_default();
            let words = format!("{} {value}", printable(metric.unwrap_or_default()));
            words.trim().to_owned()
        }
        What::Start(start) => devices(&start.devices),
        What::Sampling(sampling) => devices(&sampling.devices),
        What::Scope(scope) => devices(&scope.devices),
        What::System(system) => devices(&system.devices),
        What::End(_) => String::new(),
    }
}

/// Blocks of the grid, and threads of a block.
fn shape(kernel: &Kernel<'_>) -> String {
    let of = |dim: Dim3| dim.map(|extent| extent.to_string()).join("x");
    match (kernel.grid, kernel.block) {
        (Some(grid), Some(block)) => format!("{} of {}", of(grid), of(block)),
        _ => String::new(),
    }
}

fn devices(devices: &[Device<'_>]) -> String {
    let all: Vec<_> = devices.iter().map(device).collect();
    all.join("; ")
}

fn device(device: &Device<'_>) -> String {
    let reading = |value: Option<i64>| value.filter(|value| *value >= 0);
    let memory = match (reading(device.used_mib), reading(device.total_mib)) {
        (Some(used), Some(total)) => Some(format!("{used}/{total} MiB")),
        (used, _) => used.map(|used| format!("{used} MiB")),
    };
    let watts = reading(device.power_milliwatts).map(|power| format!("{} W", power / 1_000));
    let readings = [
        reading(device.gpu_percent).map(|share| format!("{share} %")),
        memory,
        reading(device.temperature_celsius).map(|degrees| format!("{degrees} C")),
        watts,
    ];
    let readings: Vec<_> = readings.into_iter().flatten().collect();
    format!("gpu {}: {}", device.index, readings.join(", "))
}

#[cfg(test)]
mod tests {
    use warpgauge_formats::event::{Phase, Scope};

    use super::*;

    fn shown(color: bool, width: Option<u16>, what: What<'_>) -> String {
        let source = Source { pid: Some(7), app: Some("train".into()), session: None };
        let mut out = vec![];
        let lines = Lines::new(&Screen::new(color, width, false));
        lines.write(&Event { source, what }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn kernel(name: &str) -> What<'_> {
        What::Kernel(Kernel {
            start: Timestamp(1_706_800_122_000_000_001),
            duration: Span(12_300),
            name: name.into(),
            grid: Some([128, 1, 1]),
            block: Some([256, 1, 1]),
            ..Kernel::default()
        })
    }

    #[test]
    fn a_kernel_is_one_line_without_colours_where_there_are_none() {
        assert_eq!(
            shown(false, None, kernel("ge\x1b[2Jmm")),
            "2024-02-01T15:08:42.000000001Z  train/7  kernel          ge\\u{1b}[2Jmm  12.300 us  128x1x1 of 256x1x1\n"
        );
        assert!(shown(true, None, kernel("gemm")).contains("\x1b[1mgemm\x1b[0m"));
    }

    #[test]
    fn a_long_name_gives_way_to_the_terminal_and_nothing_else_does() {
        let name = "x".repeat(500);
        let line = shown(false, Some(120), kernel(&name));
        assert_eq!(line.trim_end().chars().count(), 120);
        assert!(line.contains("x…  12.300 us  128x1x1 of 256x1x1"), "{line}");
        assert!(shown(false, None, kernel(&name)).contains(&name));
    }

    #[test]
    fn what_a_log_does_not_say_takes_no_place() {
        let device =
            Device { index: 1, used_mib: Some(5), gpu_percent: Some(-1), ..Device::default() };
        let scope = Scope {
            phase: Phase::Sample,
            time: Timestamp(5),
            name: "step".into(),
            devices: vec![device],
            ..Scope::default()
        };
        assert_eq!(
            shown(false, None, What::Scope(scope)),
            "0.000000005 s  train/7  scope_sample    step  gpu 1: 5 MiB\n"
        );
    }
}
