//! The two formats behind one face: events in, lines for one or three files out.

use warpgauge_formats::event::{Event, Source, Start, What};
use warpgauge_formats::gpu_flight::{Channel, Channels, Columnar, Details};
use warpgauge_formats::gpumon;
use warpgauge_formats::time::Timestamp;

use crate::events::settings::Format;

/// Lines that wait to be written, one buffer for each file.
pub type Lines = Vec<Vec<u8>>;

/// A writer of one format.
#[derive(Debug)]
pub enum Form {
    /// gpumon: one file, whose first line names the process.
    Gpumon(gpumon::Writer),
    /// GPU Flight: a file for each channel, each beginning with the session's first line.
    GpuFlight(Box<Columnar>),
}

impl Form {
    /// A writer that has written nothing.
    #[must_use]
    pub fn new(format: Format) -> Self {
        match format {
            Format::Gpumon => Self::Gpumon(gpumon::Writer::new()),
            Format::GpuFlight => Self::GpuFlight(Box::new(Columnar::new(Details::All))),
        }
    }

    /// The stems of the files' names.
    #[must_use]
    pub fn stems(&self, app: &str, pid: u32) -> Vec<String> {
        match self {
            Self::Gpumon(_) => vec![format!("gpumon_{app}_{pid}")],
            Self::GpuFlight(_) => {
                Channel::ALL.map(|channel| format!("{app}-{pid}.{}", channel.name())).into()
            }
        }
    }

    /// The file that an event goes to, by its place among the stems.
    #[must_use]
    pub fn place_of(&self, what: &What<'_>) -> usize {
        match (self, what) {
            (Self::GpuFlight(_), What::Scope(_)) => Channel::Scope as usize,
            (Self::GpuFlight(_), What::System(_)) => Channel::System as usize,
            _ => 0,
        }
    }

    /// Takes an event; its lines may wait for [`Self::flush`].
    pub fn write(&mut self, event: &Event<'_>, lines: &mut Lines) {
        match self {
            Self::Gpumon(writer) => {
                if let Some(lines) = lines.first_mut() {
                    writer.write(event, lines);
                }
            }
            Self::GpuFlight(writer) => writer.write(event, &mut Waiting(lines)),
        }
    }

    /// Makes lines of everything.
    pub fn flush(&mut self, lines: &mut Lines) {
        if let Self::GpuFlight(writer) = self {
            writer.flush(&mut Waiting(lines));
        }
    }

    /// A file has begun anew, or some of its lines are lost.
    pub fn rotated(&mut self, place: usize) {
        if let (Self::GpuFlight(writer), Some(channel)) = (self, Channel::ALL.get(place)) {
            writer.rotated(*channel);
        }
    }

    /// Events and parts of events that the format cannot hold.
    #[must_use]
    pub fn left_out(&self) -> &warpgauge_formats::loss::Losses {
        match self {
            Self::Gpumon(writer) => writer.losses(),
            Self::GpuFlight(writer) => writer.losses(),
        }
    }

    /// The session's first line.
    pub fn begin(&mut self, source: &Source<'_>, time: i64, lines: &mut Lines) {
        let start = Start { time: Timestamp(time), ..Start::default() };
        self.write(&Event { source: source.clone(), what: What::Start(start) }, lines);
    }

    /// The session's last line in each file, with more members at its end, each behind a comma.
    pub fn end(&mut self, source: &Source<'_>, time: i64, more: &str, lines: &mut Lines) {
        let end = Event { source: source.clone(), what: What::End(Timestamp(time)) };
        self.write(&end, lines);
        for lines in lines.iter_mut() {
            if lines.ends_with(b"}\n") {
                lines.truncate(lines.len() - 2);
                lines.extend_from_slice(more.as_bytes());
                lines.extend_from_slice(b"}\n");
            }
        }
    }
}

/// Takes the lines of each channel.
struct Waiting<'l>(&'l mut Lines);

impl Channels for Waiting<'_> {
    fn write(&mut self, channel: Channel, lines: &[u8]) {
        if let Some(waiting) = self.0.get_mut(channel as usize) {
            waiting.extend_from_slice(lines);
        }
    }
}
