//! What a log holds, summed up in bounded memory.

mod copies;
mod devices;
mod kernels;
mod scopes;
mod sources;

use std::collections::BTreeMap;

use warpgauge_formats::event::{Device, Event, What};
use warpgauge_formats::finding::{Finding, Severity, Sink};

use super::clock::Clock;
use super::reader::{FileEnd, Follow};
use super::unknown::Unknown;

pub use self::copies::{Copies, CopyTotals};
pub use self::devices::{Devices, Peak};
pub use self::kernels::{KernelTotals, Kernels};
pub use self::scopes::{Node, Scopes};
pub use self::sources::{SourceTotals, Sources};

/// The sums of a log. Feed it with a reader.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Events by the name of what happened.
    pub events: BTreeMap<&'static str, u64>,
    /// The first and last instant.
    pub clock: Clock,
    /// Sessions and processes.
    pub sources: Sources,
    /// Kernels by name.
    pub kernels: Kernels,
    /// Scopes as a tree.
    pub scopes: Scopes,
    /// Copies by kind.
    pub copies: Copies,
    /// Devices by index.
    pub devices: Devices,
    /// What the reader does not know.
    pub unknown: Unknown,
    /// Lines, rows and fields that were not taken.
    pub refused: u64,
    /// Those that were taken, but cannot be right.
    pub suspect: u64,
    /// The first that was refused, and the file in which that was.
    pub first_refused: Option<(String, Finding)>,
    /// Files that were read, and when each was last written to.
    pub files: Vec<(String, FileEnd)>,
    file: String,
    lines_before: u64,
}

impl Statistics {
    /// The file in which `finding` stands.
    fn place(&self, finding: Finding) -> (String, Finding) {
        let line = finding.line.saturating_sub(self.lines_before);
        (self.file.clone(), Finding { line, ..finding })
    }

    fn devices(&mut self, event: &Event<'_>, devices: &[Device<'_>]) {
        let time = match &event.what {
            What::Start(start) => start.time,
            What::Sampling(sampling) => sampling.time,
            What::Scope(scope) => scope.time,
            What::System(system) => system.time,
            _ => return,
        };
        devices.iter().for_each(|device| self.devices.note(time, device));
    }
}

impl Sink for Statistics {
    fn event(&mut self, _: u64, event: &Event<'_>) {
        let Some(source) = self.sources.note(event) else { return };
        *self.events.entry(event.what.name()).or_default() += 1;
        self.clock.note(event);
        match &event.what {
            What::Kernel(kernel) => self.kernels.note(&kernel.name, kernel.duration.0),
            What::Copy(copy) => self.copies.note(copy),
            What::Scope(scope) => {
                self.scopes.note(source, scope);
                self.devices(event, &scope.devices);
            }
            What::System(system) => self.devices(event, &system.devices),
            What::Start(start) => self.devices(event, &start.devices),
            What::Sampling(sampling) => self.devices(event, &sampling.devices),
            What::End(_) | What::KernelDetails(_) | What::Profile(_) => {}
        }
    }

    fn finding(&mut self, finding: Finding) {
        if finding.severity == Severity::Suspect {
            self.suspect += 1;
            return;
        }
        self.refused += 1;
        if self.first_refused.is_none() {
            self.first_refused = Some(self.place(finding));
        }
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.unknown.note(line, name);
    }
}

impl Follow for Statistics {
    fn file_begins(&mut self, name: &str, lines_before: u64) {
        name.clone_into(&mut self.file);
        self.lines_before = lines_before;
    }

    fn file_ends(&mut self, end: FileEnd) {
        self.files.push((self.file.clone(), end));
    }
}
