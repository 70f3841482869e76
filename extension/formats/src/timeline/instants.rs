//! What happens at one moment: sessions begin and end, sampling starts and stops, instructions are
//! sampled.

use super::Timeline;
use super::device_work::{integer, text};
use super::processes::Place;
use crate::event::{Profile, Sampling, Start, StaticDevice, Text};
use crate::time::Timestamp;
use crate::trace::{EventType, Id, Label, Labelled, Metadata, Record, TraceEvent, Track, Value};

impl Timeline<'_> {
    pub(super) fn session_start(&mut self, line: u64, source: Place, start: &Start<'_>) {
        let mut metadata = Metadata::new();
        text(&mut metadata, "log path", start.log_path.as_ref());
        integer(&mut metadata, "scope rate (ms)", start.scope_rate_ms);
        integer(&mut metadata, "system rate (ms)", start.system_rate_ms);
        self.instant(line, source, start.time, "session starts".into(), "session", metadata);
        for device in &start.static_devices {
            let process = self.processes.device(source, Some(device.index), line, self.next);
            self.device_label(line, process, static_metadata(device));
        }
        self.state(line, source, start.time, start.host.as_ref(), &start.devices);
    }

    pub(super) fn session_end(&mut self, line: u64, source: Place, time: Timestamp) {
        self.instant(line, source, time, "session ends".into(), "session", Metadata::new());
    }

    pub(super) fn sampling(&mut self, line: u64, source: Place, sampling: &Sampling<'_>) {
        let name = if sampling.began { "sampling starts" } else { "sampling stops" };
        let mut metadata = Metadata::new();
        text(&mut metadata, "name", sampling.name.as_ref());
        self.instant(line, source, sampling.time, name.into(), "session", metadata);
        self.state(line, source, sampling.time, sampling.host.as_ref(), &sampling.devices);
    }

    pub(super) fn sample(&mut self, line: u64, source: Place, sample: &Profile<'_>) {
        let timestamp = self.time(line, sample.time);
        let process = self.processes.device(source, sample.device, line, self.next);
        let words = [&sample.metric, &sample.stall_name, &sample.function];
        let name = words.into_iter().flatten().next().map_or("sample", |word| &**word);
        let mut metadata = Metadata::new();
        text(&mut metadata, "function", sample.function.as_ref());
        integer(&mut metadata, "pc offset", sample.pc_offset);
        text(&mut metadata, "metric", sample.metric.as_ref());
        integer(&mut metadata, "value", sample.value);
        integer(&mut metadata, "stall reason", sample.stall_reason);
        text(&mut metadata, "stall name", sample.stall_name.as_ref());
        integer(&mut metadata, "sample kind", sample.kind);
        text(&mut metadata, "scope", sample.scope.as_ref());
        if sample.scope_ended {
            metadata.push(("scope had ended".into(), Value::Boolean(true)));
        }
        text(&mut metadata, "source file", sample.source_file.as_ref());
        integer(&mut metadata, "source line", sample.source_line);
        let event = TraceEvent {
            event_type: EventType::Marker,
            category: Some("profile_sample".into()),
            name: name.into(),
            timestamp,
            track: Track { process, row: Id::Text("samples".into()) },
            device: sample.device,
            correlation: sample.correlation,
            metadata,
            extra: on_its_row(),
            ..TraceEvent::default()
        };
        self.record(line, &Record::Event(event));
    }

    /// Something that happened on a session's own row.
    pub(super) fn instant(
        &mut self,
        line: u64,
        source: Place,
        time: Timestamp,
        name: Text<'_>,
        category: &'static str,
        metadata: Metadata<'_>,
    ) {
        let timestamp = self.time(line, time);
        let (track, thread) = self.processes.host(source);
        let event = TraceEvent {
            event_type: EventType::Marker,
            category: Some(category.into()),
            name,
            timestamp,
            resource: track.row.number(),
            track,
            thread,
            metadata,
            extra: on_its_row(),
            ..TraceEvent::default()
        };
        self.record(line, &Record::Event(event));
    }

    /// What does not change about a device.
    pub(super) fn device_label(&mut self, line: u64, process: Id<'_>, metadata: Metadata<'_>) {
        let label = Label {
            timestamp: None,
            track: Track { process, row: Id::None },
            says: Labelled::Other { name: "device".into(), metadata },
        };
        self.record(line, &Record::Label(label));
    }
}

/// An instant is drawn on its row (Chrome's scope `t`), not across the whole process.
fn on_its_row() -> Metadata<'static> {
    vec![("s".into(), Value::Text("t".into()))]
}

fn static_metadata<'e>(device: &'e StaticDevice<'_>) -> Metadata<'e> {
    let mut metadata = Metadata::new();
    integer(&mut metadata, "id", Some(device.index));
    text(&mut metadata, "name", device.name.as_ref());
    text(&mut metadata, "uuid", device.uuid.as_ref());
    text(&mut metadata, "vendor", device.vendor.as_ref());
    // The names under which Kineto writes them in `deviceProperties`.
    integer(&mut metadata, "computeMajor", device.compute_major);
    integer(&mut metadata, "computeMinor", device.compute_minor);
    integer(&mut metadata, "l2CacheSize", device.l2_cache_bytes);
    integer(&mut metadata, "sharedMemPerBlock", device.shared_bytes_per_block);
    integer(&mut metadata, "regsPerBlock", device.registers_per_block);
    integer(&mut metadata, "numSms", device.multiprocessors);
    integer(&mut metadata, "warpSize", device.warp_size);
    metadata
}
